"""A crawl that is killed again and again, compared with one that was left alone."""
