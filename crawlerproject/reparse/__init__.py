"""A spider run over what is archived, so that a changed extractor needs no new crawl.

Scrapy's engine, the spider, its item pipelines and its feeds are as in a crawl. In place of the frontier stands the
archive (``scheduler``), in place of the network a handler that knows nothing else (``handler``); ``offline`` sets both
after the project and the spider have set what they want. Invariant: no request leaves, whatever makes it.
"""
