"""What this process is to its crawl: the only one, a worker of a fleet on one machine, or one of a fleet over Redis.

| | its hosts | keeps_hosts | all_hosts |
|---|---|---|---|
| ``SingleProcess`` | all | yes | yes |
| ``LocalWorker`` | those of its partitions, by the plan of this run | yes | no |
| ``RedisWorker`` | those of the partitions that it holds now | no | no |

Each has a frontier of its own, on its own disk.
``keeps_hosts``: they are the same for the whole run, so what is done once for all of them is done at its beginning.
``all_hosts``: what it counts is the crawl's count, and it may do what there is once a crawl (hubs, sums).
"""
