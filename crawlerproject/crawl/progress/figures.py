"""The figures of the progress line, computed from the hosts in memory."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.crawl.progress.troubles import free_at
from crawlerproject.frontier.workbench import Stage
from crawlerproject.inspection.host_table import queue_of
from crawlerproject.inspection.progress import Progress
from crawlerproject.rules.politeness.pace_limits import Limits, Queue, limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlerproject.crawl.progress.troubles import Troubles
    from crawlerproject.crawl.run import Run
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.hosts.host import Host

# Where a host is counted that is about to be asked, by its stage; the others wait, rest, or lack a lease.
_ABOUT_TO = {
    Stage.LOOKED_UP: "looked_up",
    Stage.BEHIND: "looked_up",
    Stage.IN_LINE: "in_line",
    Stage.IN_FLIGHT: "in_flight",
}
_STAGES = [_ABOUT_TO.get(stage, "") for stage in Stage]
# A host that only keeps its pause and is asked again so soon needs no explanation (our choice).
_SOON_SECONDS = 10.0
# Hosts whose limits are worked out in one look: 50 ms.
_HOSTS_A_LOOK = 20_000


class Allowed:
    """The rate that politeness allows. With very many hosts each look computes it for another part of them."""

    def __init__(self) -> None:
        self._parts: list[Limits | None] = [None]
        self._part = 0

    def turn(self, hosts: int) -> tuple[int, int]:
        """The next part's number and how many there are; hosts at one address are in the same part."""
        parts = -(-hosts // _HOSTS_A_LOOK) or 1
        if parts != len(self._parts):
            self._parts = [None] * parts
        self._part = (self._part + 1) % parts
        return self._part, parts

    def take(self, found: Limits) -> tuple[float | None, float]:
        """Answers a second (None: unbounded) and seconds to the end; parts not looked at yet count as the others do."""
        self._parts[self._part] = found
        known = [part for part in self._parts if part is not None]
        rates = [part.per_second for part in known if part.per_second is not None]
        rate = sum(rates) * len(self._parts) / len(known) if len(rates) == len(known) else None
        return rate, max(part.seconds for part in known)


class _Look(NamedTuple):
    """The hosts in memory at one moment."""

    counts: Counter[str]  # by what they do
    queues: list[Queue]  # of the part whose limits are worked out
    quiet: list[Host]  # those that rest or keep their pause


def progress(frontier: Frontier, troubles: Troubles, run: Run, allowed: Allowed) -> Progress:
    """Where the crawl stands; costs a look at every host in memory."""
    now, done, bench, on_disk = run.now(), run.tallies, frontier.workbench, frontier.hosts.counts_on_disk
    counts, queues, quiet = _look(bench.hosts.values(), now, *allowed.turn(len(bench.hosts)))
    per_second, seconds = allowed.take(limits(queues, bench.ips.pause_seconds))
    due_on_disk = on_disk.hosts - on_disk.resting
    eta = max(seconds, on_disk.done_at - now if due_on_disk > 0 else 0.0)
    wake = frontier.wake_at()  # of hosts without work and of addresses as well
    moves = bool(sum(counts.values()) > len(quiet) or due_on_disk > 0 or run.halted)
    if counts["waiting"] and wake is not None and wake - now < _SOON_SECONDS:
        moves = True
    if not moves and not on_disk.hosts:
        wake = min((free_at(host, now) for host in quiet), default=None)
    return Progress(
        pages=done.pages,
        bytes=done.bytes,
        errors=done.errors,
        hosts_in_flight=counts["in_flight"],
        hosts_ready=counts["ready"],
        hosts_waiting=counts["waiting"],
        hosts_resting=counts["resting"],
        hosts_on_disk=on_disk.hosts,
        hosts_in_line=counts["in_line"],
        hosts_looked_up=counts["looked_up"],
        queued_urls=max(0, frontier.hosts.waiting_urls),
        next_free_seconds=None if wake is None else max(0.0, wake - now),
        eta_seconds=eta if eta > 0 else None,
        ceiling_per_second=_with_disk(per_second, sum(counts.values()) - counts["resting"], due_on_disk),
        standing=() if moves else troubles.standing(quiet, now, on_disk.hosts),
        paused=run.halted,
    )


def _look(hosts: Iterable[Host], now: float, part: int, parts: int) -> _Look:
    """Count the hosts. The loop runs a hundred thousand times."""
    counts: Counter[str] = Counter()
    queues: list[Queue] = []
    quiet: list[Host] = []
    for host in hosts:
        doing = _STAGES[host.stage]
        if not host.work or host.given_up:
            counts["in_flight"] += doing == "in_flight"
            continue
        if not doing:
            doing = _waits(host, now)
            if doing != "ready":
                quiet.append(host)
        counts[doing] += 1
        if doing != "resting" and (parts == 1 or hash(host.address or host.name) % parts == part):
            queues.append(queue_of(host, host.waiting_urls + (doing == "in_flight"), now))
    return _Look(counts, queues, quiet)


def _waits(host: Host, now: float) -> str:
    """The state of a host that is neither in flight nor about to be."""
    if host.rest_until > now or host.closed_until > now:
        return "resting"
    if host.next_free > now:
        return "waiting"
    return "in_line" if host.ports is not None and host.ports.turn is not None else "ready"


def _with_disk(per_second: float | None, hosts: int, more: int) -> float | None:
    """The rate with hosts on disk included, whose pauses are assumed to be the average of the others'."""
    if per_second is None or not hosts:
        return per_second or None
    return per_second * (hosts + more) / hosts
