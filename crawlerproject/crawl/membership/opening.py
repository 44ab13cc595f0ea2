"""The membership that settings ask for, its store open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.config.fleet import local, shared, worker_name
from crawlerproject.crawl.membership.local import Local, LocalPlace
from crawlerproject.crawl.membership.member import Member
from crawlerproject.crawl.membership.solo import Solo
from crawlerproject.errors import OperatorError
from crawlerproject.fleet.local.supervisor_link import SupervisorLink
from crawlerproject.fleet.local.worker import LocalWorker
from crawlerproject.fleet.mail.mailbox import Mailbox
from crawlerproject.fleet.redis.join import join
from crawlerproject.frontier.assembly import revisit_policy
from crawlerproject.frontier.ownership import unsure_until
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.fleet_plan import read_plan
from crawlerproject.stores.redis.rounds import A_CRAWL, Wanted
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT, open_frontier

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.crawl.run import Run


Membership = Solo | Local | Member
"""One process's place among those of its crawl."""


def membership_of(settings: BaseSettings, folder: CrawlDir, run: Run, wanted: Wanted = A_CRAWL) -> Membership:
    """Open the frontier's store, in a fleet as its member, whose clock ``run`` follows then. Raises OperatorError."""
    if local(settings):
        return _local(settings, folder, run)
    if not shared(settings):
        return Solo(open_frontier(folder))
    fleet = join(settings, folder)
    run.follow(fleet.begin())
    run.joined(fleet.running_seconds)
    current = fleet.begin_round(wanted, run.now(), run.round)
    run.round = current.number
    # The budget is the round's.
    revisits = fleet.revisits(current, revisit_policy(settings, None)) if wanted.recrawl else None
    return Member(fleet, settings, revisits)


def _local(settings: BaseSettings, folder: CrawlDir, run: Run) -> Local:
    crawl, name = CrawlDir(folder.parent), worker_name(settings)
    link = SupervisorLink(crawl.supervisor_socket, name)
    try:
        plan = read_plan(crawl)
        if plan is None or name not in plan.workers:
            raise OperatorError(f"{crawl.fleet_plan} has no {name}; the same scrapy fleet makes it again.")
        store = open_frontier(folder)
        try:
            unsure = unsure_until(store, run.now(), clean_start=store.fact(CLEAN_FACT) != b"0")
            of_first = min(plan.held(plan.workers[0]), default=0)
            place = LocalPlace(plan.workers.index(name), len(plan.workers), of_first)
            return Local(LocalWorker(link), store, Mailbox(store, crawl, name, plan, unsure), settings, place)
        except BaseException:
            store.close()
            raise
    except BaseException:
        link.close()
        raise
