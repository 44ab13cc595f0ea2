"""A worker whose frontier is in Redis: ``redis_worker`` joins, renews its leases and takes partitions,
``redis_exchange`` reads and writes their inboxes, ``revisit_round`` chooses known pages together with the others.
"""
