"""Several workers on one crawl, to the web one crawler. Each has a frontier of its own, on its own disk.

``redis/``: they meet in Redis, and each holds leases of partitions; ``local/``: on one machine, by a plan that does not
change while they run; ``repartition/`` divides the frontiers of these among another number of workers. Both kinds share
what stands here: whose hosts are whose and what is found for others (``link_exchange``), the supervisor of their
processes, reserved addresses, quotas of the whole crawl, questions about texts.
"""
