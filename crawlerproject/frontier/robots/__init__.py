"""robots.txt as the frontier needs it: the rules of busy hosts in memory, answers on their way in, redirects."""
