"""A worker whose frontier is in Redis: ``worker`` joins, renews its leases and takes partitions, ``exchange`` reads and
writes their inboxes, ``revisit_round`` chooses known pages together with the others.
"""
