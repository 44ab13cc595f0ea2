"""The request log and the robots.txt copies, appended as the crawl goes."""
