"""One running crawl: the store, the frontier and the archive together.

``crawl`` locks the folder and owns the ``session``: all parts that know each other, made by ``assembly`` and replaced
as one. ``run`` outlives them: clock, pauses, counters. ``roles/`` has what differs between one process and a fleet.
``start/`` checks and continues, ``intake`` queues, ``dispatch`` hands leases out (``dns_lookups``, ``requests``),
``completion/`` ends pages and makes that durable, ``progress/`` tells how it stands. ``scheduler`` is the crawl as
Scrapy's ``engine`` sees it; ``orders`` and ``crawl_limits`` are the operator's. Other components find these parts by
``runtime/services``; ``host_queue`` serves spiders that are not ours.
"""
