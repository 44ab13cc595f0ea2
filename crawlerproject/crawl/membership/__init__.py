"""What differs between a crawl of one process, a worker of a local fleet, and one of a fleet in Redis.

| | own_frontier | all_hosts |
|---|---|---|
| ``Solo`` | yes: RocksDB | yes |
| ``Local`` | yes: RocksDB | no: those of its partitions, by the plan of this run |
| ``Member`` | no: Redis has it, for all workers | no: those of the partitions that it holds now |

``own_frontier``: all that this process decides about is in a store of its own, which it may ask at any moment.
``all_hosts``: what it counts is the crawl's count, and it may do what there is once a crawl (hubs, sums).
``forsaken``: why this process must end although the crawl is not done; "" while it need not.
"""
