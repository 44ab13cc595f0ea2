"""How a crawl stands at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.frontier.progress import Progress
from crawlerproject.frontier.workbench import Stage

if TYPE_CHECKING:
    from crawlerproject.crawl.crawl import Crawl


def progress(crawl: Crawl) -> Progress:
    """Where the crawl stands; costs a look at every host in memory."""
    now, frontier = crawl.now(), crawl.frontier
    in_flight = ready = waiting = resting = 0
    eta = 0.0
    for host in frontier.hosts():
        if host.stage == Stage.IN_FLIGHT:
            in_flight += 1
        if not host.work or host.given_up:
            continue
        eta = max(eta, host.next_free - now + host.waiting_urls * host.delay_seconds)
        if host.stage == Stage.IN_FLIGHT:
            continue
        if host.rests_until(now):
            resting += 1
        elif host.next_free <= now and not (host.ports is not None and host.ports.turn is not None):
            ready += 1
        else:
            waiting += 1
    on_disk = frontier.on_disk
    eta = max(eta, on_disk.done_at - now)
    wake = frontier.wake_at()
    return Progress(
        pages=crawl.pages,
        bytes=crawl.bytes,
        errors=crawl.errors,
        hosts_in_flight=in_flight,
        hosts_ready=ready,
        hosts_waiting=waiting,
        hosts_resting=resting,
        hosts_on_disk=on_disk.hosts,
        queued_urls=max(0, frontier.waiting_urls),
        next_free_seconds=None if wake is None else max(0.0, wake - now),
        eta_seconds=eta if eta > 0 else None,
        paused=crawl.halted,
    )
