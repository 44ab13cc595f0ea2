"""How a crawl stands: totals over all starts, what was tallied, what troubles it, what politeness allows."""
