"""A spider run over what is archived, so that a changed extractor needs no new crawl.

Scrapy's engine, the spider, its item pipelines and its feeds are as in a crawl (``offline``). ``chosen_captures`` names
what is read again, ``item_parts`` keeps items so that a run that was killed goes on. Invariant: no request leaves,
whatever makes it.
"""
