"""How a crawl stands at one moment."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from crawlerproject.crawl.troubles import free_at
from crawlerproject.frontier.host_table import queue_of
from crawlerproject.frontier.progress import Progress
from crawlerproject.frontier.workbench import Stage
from crawlerproject.rules.pace_limits import Queue, limits

if TYPE_CHECKING:
    from crawlerproject.crawl.crawl import Crawl
    from crawlerproject.frontier.host import Host

# Where a host is counted that is about to be asked; the others wait, rest, or could be asked but for a free lease.
_STAGES = {
    Stage.IN_FLIGHT: "in_flight",
    Stage.LOOKED_UP: "looked_up",
    Stage.BEHIND: "looked_up",
    Stage.IN_LINE: "in_line",
}

_QUIET = frozenset({"resting", "waiting"})
# A host that only keeps its pause and is asked again so soon needs no explanation (ours).
_SOON_SECONDS = 10.0


def progress(crawl: Crawl) -> Progress:
    """Where the crawl stands; costs a look at every host in memory."""
    now, frontier = crawl.now(), crawl.frontier
    counts = Counter[str]()
    queues: list[Queue] = []
    quiet: list[Host] = []  # those that rest or keep their pause
    for host in frontier.hosts():
        if not host.work or host.given_up:
            counts["in_flight"] += host.stage == Stage.IN_FLIGHT
            continue
        doing = _STAGES.get(host.stage) or _waits(host, now)
        counts[doing] += 1
        if doing in _QUIET:
            quiet.append(host)
        if doing != "resting":
            queues.append(queue_of(host, host.waiting_urls + (doing == "in_flight"), now))
    on_disk, bench = frontier.on_disk, frontier.workbench
    allowed = limits(queues, bench.ip_pause_seconds)
    eta = max(allowed.seconds, on_disk.done_at - now if on_disk.hosts > on_disk.resting else 0.0)
    wake = frontier.wake_at()  # of hosts without work and of addresses as well
    moves = sum(counts.values()) > len(quiet) or on_disk.hosts > on_disk.resting or crawl.paused
    moves = moves or (wake is not None and wake - now < _SOON_SECONDS and counts["waiting"])
    if not moves and not on_disk.hosts:
        wake = min((free_at(host, now) for host in quiet), default=None)
    return Progress(
        pages=crawl.pages,
        bytes=crawl.bytes,
        errors=crawl.errors,
        hosts_in_flight=counts["in_flight"],
        hosts_ready=counts["ready"],
        hosts_waiting=counts["waiting"],
        hosts_resting=counts["resting"],
        hosts_on_disk=on_disk.hosts,
        hosts_in_line=counts["in_line"],
        hosts_looked_up=counts["looked_up"],
        queued_urls=max(0, frontier.waiting_urls),
        next_free_seconds=None if wake is None else max(0.0, wake - now),
        eta_seconds=eta if eta > 0 else None,
        ceiling_per_second=_with_disk(allowed.per_second, len(queues), on_disk.hosts - on_disk.resting),
        standing=() if moves else crawl.troubles.standing(quiet, now, on_disk.hosts),
        paused=crawl.paused,
    )


def _waits(host: Host, now: float) -> str:
    """Of a host that is neither asked nor about to be."""
    if host.rests_until(now):
        return "resting"
    if host.next_free > now:
        return "waiting"
    return "in_line" if host.ports is not None and host.ports.turn is not None else "ready"


def _with_disk(per_second: float | None, hosts: int, more: int) -> float | None:
    """Of hosts on disk nothing is known here but that their pauses are as long as the others', on average."""
    if per_second is None or not hosts:
        return per_second or None
    return per_second * (hosts + more) / hosts
