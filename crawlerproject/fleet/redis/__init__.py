"""A worker over Redis: ``fleet_worker`` joins, ``leased_partitions`` says whose hosts are whose."""
