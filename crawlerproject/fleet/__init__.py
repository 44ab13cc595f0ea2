"""Several workers on one crawl, to the web one crawler.

``redis/``: their frontier is in Redis, and each holds leases of partitions; ``local/``: on one machine, each with a
frontier of its own, by a plan that does not change while they run. ``mail/`` goes between those of one machine,
``moves/`` divides their frontiers anew. Here is what both kinds have: the supervisor of their processes, reserved
addresses, shared sums, questions about texts.
"""
