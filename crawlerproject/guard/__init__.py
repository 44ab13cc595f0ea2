"""The last guard: the download handler asks it, below every middleware, so that no setting can take it away.

``guard.py`` knows the frontier's requests from others, checks the former and lets the latter wait; ``robots_guard.py``
judges the latter. Both decide by the objects that a crawl decides by (``frontier/politeness.py``,
``frontier/robots_cache.py``). They drive no ``Frontier``: Scrapy holds these requests, in its own order and as often as
its spider wants, so there is no queue to keep; and the clocks must count leases too, which a workbench only hands out.
"""
