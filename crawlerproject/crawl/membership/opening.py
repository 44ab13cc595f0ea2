"""The membership that settings ask for, its store open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.config.fleet import local, shared
from crawlerproject.crawl.membership.solo import Solo
from crawlerproject.frontier.assembly import revisit_policy
from crawlerproject.stores.protocols import A_CRAWL, Wanted
from crawlerproject.stores.rocks.frontier_folder import open_frontier

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.crawl.membership.local import Local
    from crawlerproject.crawl.membership.member import Member
    from crawlerproject.crawl.run import Run
    from crawlerproject.stores.crawl_dir import CrawlDir

    Membership = Solo | Local | Member
    """One process's place among those of its crawl."""


def membership_of(settings: BaseSettings, folder: CrawlDir, run: Run, wanted: Wanted = A_CRAWL) -> Membership:
    """Open the frontier's store, in a fleet as its member, whose clock ``run`` follows then. Raises OperatorError."""
    # A fleet's parts are imported by a fleet's workers only: the start of a crawl of one process is for nothing else.
    if local(settings):
        from crawlerproject.crawl.membership.local import join_local

        return join_local(settings, folder, run)
    if not shared(settings):
        return Solo(open_frontier(folder))
    from crawlerproject.crawl.membership.member import Member
    from crawlerproject.fleet.redis.join import join

    fleet = join(settings, folder, accept_loss=wanted.accept_loss)
    run.follow(fleet.begin())
    run.joined(fleet.running_seconds)
    current = fleet.begin_round(wanted, run.now(), run.round)
    run.round = current.number
    # The budget is the round's.
    revisits = fleet.revisits(current, revisit_policy(settings, None)) if wanted.recrawl else None
    return Member(fleet, settings, revisits)
