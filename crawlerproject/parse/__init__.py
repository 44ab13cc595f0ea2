"""From an answer to what the crawl wants of it: a ``Page``, its links, the URLs of sitemaps and feeds."""
