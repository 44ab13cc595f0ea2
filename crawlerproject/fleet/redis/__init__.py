"""A worker over Redis: ``fleet_worker`` joins and takes partitions, ``journal_exchange`` writes to others."""
