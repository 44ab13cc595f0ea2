"""A crawl seen from outside, while it runs or after: nothing here writes to it."""
