"""One running crawl: the store, the frontier and the archive together.

``running_crawl`` locks the folder and owns the ``session``: all parts that know each other, replaced as one. ``run``
outlives them: clock, pauses, counters and the operator's limits. ``roles/`` has what differs between one process and a
fleet. ``start/`` checks and continues. ``intake`` queues, ``dispatch`` hands leases out as ``lease_requests``; pages
end in ``page_completion``, which ``network_outage`` may put off, and ``commits`` makes that durable. ``figures`` tell
how the crawl stands. ``scheduler`` is the crawl as Scrapy's ``engine`` sees it. Other components find these parts by
``runtime/services``; ``host_queue`` serves spiders that are not ours.
"""
