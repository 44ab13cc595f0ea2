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

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.config.fleet import local, shared
from crawlerproject.crawl.membership.solo import Solo
from crawlerproject.crawl.start.bootstrap import revisit_policy
from crawlerproject.stores.protocols import A_CRAWL, Wanted
from crawlerproject.stores.rocks.frontier_folder import open_frontier

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.crawl.membership.local_worker import Local
    from crawlerproject.crawl.membership.redis_worker import Member
    from crawlerproject.crawl.run import Run
    from crawlerproject.stores.crawl_dir import CrawlDir
    from crawlerproject.stores.redis.buffer.store import BufferedStore
    from crawlerproject.stores.rocks.store import RocksStore

    Membership = Solo | Local | Member
    """One process's place among those of its crawl."""
    Store = BufferedStore | RocksStore


def membership_of(settings: BaseSettings, folder: CrawlDir, run: Run, wanted: Wanted = A_CRAWL) -> Membership:
    """Open the frontier's store, in a fleet as its member, whose clock ``run`` follows then. Raises OperatorError."""
    # A fleet's parts are imported by a fleet's workers only: the start of a crawl of one process is for nothing else.
    if local(settings):
        from crawlerproject.crawl.membership.local_worker import join_local

        return join_local(settings, folder, run)
    if not shared(settings):
        return Solo(open_frontier(folder))
    from crawlerproject.crawl.membership.redis_worker import Member
    from crawlerproject.fleet.redis.join import join

    fleet = join(settings, folder)
    run.follow(fleet.begin())
    run.joined(fleet.running_seconds)
    current = fleet.begin_round(wanted, run.now(), run.round)
    run.round = current.number
    # The budget is the round's.
    revisits = fleet.revisits(current, revisit_policy(settings, None)) if wanted.recrawl else None
    return Member(fleet, settings, revisits)
