"""Several workers on one crawl: ``worker`` owns partitions of hosts, ``ip_reservations`` shares addresses,
``supervisor`` watches.
"""
