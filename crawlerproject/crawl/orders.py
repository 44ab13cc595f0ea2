"""The operator's orders to a running crawl: pauses, and seeds to be added."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.crawl.completion.long_pages import MOST_AT_ONCE
from crawlerproject.crawl.intake import visit_again
from crawlerproject.frontier.discovered import seed_found
from crawlerproject.frontier.known_seeds import KnownSeeds
from crawlerproject.rules.url.seeds import BadOption, Seeds, host_limits, seeds_of
from crawlerproject.stores.operator_files.control import Pauses
from crawlerproject.stores.protocols import Changes

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlerproject.crawl.run import Run
    from crawlerproject.crawl.session import Session
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.rules.url.urls import Address

logger = logging.getLogger(__name__)

# Hosts and seeds that one log line names; the rest is counted.
_NAMED = 10


def say_paused(pauses: Pauses) -> None:
    """Log what a start finds paused, and how to resume it."""
    if pauses.crawl:
        logger.warning("The crawl is paused, %s: scrapy resume lets it go on.", pauses.crawl)
    if pauses.hosts:
        logger.warning("Paused hosts: %s; scrapy resume HOST lets one go on.", _listed(sorted(pauses.hosts)))


def obey(frontier: Frontier, run: Run, pauses: Pauses) -> None:
    """Pause and resume what changed. StorageError: call again."""
    before, hosts = run.pauses, pauses.hosts.keys()
    frontier.pause_hosts(pauses.hosts, run.now())
    run.pauses = pauses
    if new := hosts - before.hosts.keys():
        logger.warning("Paused by the operator: %s", _listed(sorted(new)))
    if over := before.hosts.keys() - hosts:
        logger.warning("The operator lets go on: %s", _listed(sorted(over)))
    if pauses.crawl and not before.crawl:
        logger.warning("The crawl pauses: by the operator, %s; what is on its way ends.", pauses.crawl)
    if before.crawl and not pauses.crawl:
        logger.warning("The crawl goes on: the operator says so.")


async def take_in(session: Session, spooled: Path, clock: Callable[[], float]) -> None:
    """Queue the seeds of one list, durably, then remove it. StorageError, OSError: it stays, and none is lost.

    No commit runs meanwhile: the store stays open, and messages to other workers go as with a commit. After a crash in
    between the list is read again: what was queued is known.
    """
    try:
        seeds = seeds_of(spooled.read_text("utf-8", errors="replace").splitlines())
    except BadOption as error:  # written by hand: the command checks what it writes
        logger.error("%s: %s; it is set aside", spooled, error)
        spooled.rename(spooled.with_suffix(".refused"))
        return
    new = _remember(session, seeds)
    await _queue(session, seeds, clock)
    if session.role.own_frontier:
        visit_again(session.frontier, new, clock())
    await asyncio.to_thread(session.store.sync)
    spooled.unlink(missing_ok=True)
    logger.info("Added from outside: %s, %d of them new", _listed([seed.url for seed in seeds.addresses]), len(new))


async def _queue(session: Session, seeds: Seeds, clock: Callable[[], float]) -> None:
    found = [seed_found(address) for address in seeds.addresses]
    for first in range(0, len(found), MOST_AT_ONCE):
        some = found[first : first + MOST_AT_ONCE]
        for one in some:
            if (refusal := session.filters.refusal(one, clock())) is not None:
                logger.warning("The added seed %s is refused: %s", one.address.url, refusal)
        session.role.enqueue_links(some, session.frontier, clock())
        await asyncio.sleep(0)
    await session.role.deliver(session.frontier, clock)


def _remember(session: Session, seeds: Seeds) -> list[Address]:
    """Make added seeds the crawl's own, for its scope and for later starts; those that are new."""
    known = KnownSeeds(session.store)
    new = known.unknown(seeds.addresses)
    scope = session.filters.scope
    known.take(seeds.addresses, new, seeds.options, scope.mode)
    session.store.apply(Changes(facts=known.facts()))
    rules = known.rules()
    for rule in rules:
        scope.govern(rule)
    session.frontier.hosts.suspensions.of_hosts = dict(host_limits(rules))
    for address in new:
        if not scope.governs(address.host):
            scope.widen(address.host)
    return new


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
