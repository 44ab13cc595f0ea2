"""What engines of others make of our files, beside what we make of them: ``make bench-engines``."""
