"""Counts what request logs and archives say, after the crawl or beside it."""
