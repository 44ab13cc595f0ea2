"""A month in an hour: the manuals under many names, crawled and visited again and again under every kind of trouble."""
