"""One running crawl: the store, the frontier and the archive together.

``crawl`` opens and closes it, ``assembly`` builds what it is made of. ``start/`` checks and continues,
``completion/`` ends pages and makes that durable, ``progress/`` says how it stands. ``scheduler`` is the crawl as
Scrapy's engine sees it, with ``dns_lookups``, ``subrequests``, ``websub`` and ``timer``; ``orders`` and ``limits``
are the operator's words; ``running`` is how extensions find it, and ``host_queue`` serves spiders that are not ours.
"""
