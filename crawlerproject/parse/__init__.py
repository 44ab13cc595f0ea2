"""From a response to what the crawl uses of it: its headers, links, and the URLs of sitemaps and feeds."""
