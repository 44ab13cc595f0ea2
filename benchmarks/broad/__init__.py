"""A broad crawl of pages that differ, on a web without an end."""
