"""What this process is to its crawl: the only one, a worker of a fleet on one machine, or one of a fleet in Redis.

| | own_frontier | all_hosts |
|---|---|---|
| ``SingleProcess`` | yes: RocksDB | yes |
| ``LocalWorker`` | yes: RocksDB | no: those of its partitions, by the plan of this run |
| ``RedisWorker`` | no: Redis has it, for all workers | no: those of the partitions that it holds now |

``own_frontier``: all that this process decides about is in a store of its own, which it may ask at any moment.
``all_hosts``: what it counts is the crawl's count, and it may do what there is once a crawl (hubs, sums).
"""
