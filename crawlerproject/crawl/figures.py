"""Where a crawl stands: its figures, why hosts rest and seeds fail, and what politeness allows.

Failures are logged at once: URL, reason, next attempt and the setting that helps.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import nsmallest

from crawlerproject.crawl.run import Run
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.hosts.host import Host, Stage
from crawlerproject.inspection.crawl_progress import Progress
from crawlerproject.inspection.host_table import pace_source, queue_of
from crawlerproject.items import LeaseResult
from crawlerproject.reasons import REMEDIES, Reason
from crawlerproject.rules.politeness.bottleneck import PaceLimits, Queue, pace_limits
from crawlerproject.rules.printable import human_seconds

logger = logging.getLogger(__name__)

# Where a host is counted that is about to be asked, by its stage; the others wait, rest, or lack a lease.
_ABOUT_TO = {
    Stage.LOOKED_UP: "looked_up",
    Stage.BEHIND: "looked_up",
    Stage.ASIDE: "in_line",
    Stage.IN_LINE: "in_line",
    Stage.IN_FLIGHT: "in_flight",
}
_STAGES = [_ABOUT_TO.get(stage, "") for stage in Stage]
# A host that only keeps its pause and is asked again so soon needs no explanation (our choice).
_SOON_SECONDS = 10.0
# Hosts whose limits are worked out in one look, in one go: 10 ms.
_HOSTS_A_LOOK = 4_000
# Hosts that one turn of the event loop looks at: 1 ms, with those whose limits are worked out 3.
_HOSTS_A_SLICE = 1_000
# Looks take this share of the processor at most, however many hosts there are and however often they are asked for.
_COST_SHARE = 0.005
# The machine's own rate is the mean over this: answers of a slow network come in waves (our choice).
_RATE_SECONDS = 30.0

# Outcomes that need no report.
GOOD = frozenset({Reason.FETCHED, Reason.NOT_MODIFIED, Reason.REDIRECT, Reason.RENDERED, Reason.SUBSCRIBED})
# Seeds that are reported one by one (our choice); a file of a million may be full of dead names.
_NAMED = 10
# Hosts whose last failure is remembered, the oldest goes first: 200 KB.
_REMEMBERED = 1000
# Lines about resting hosts: the panel then fits 80 x 24 with the log above it.
_LINES = 3


class Allowed:
    """The rate that politeness allows. With very many hosts each look computes it for another part of them."""

    def __init__(self) -> None:
        self._parts: list[PaceLimits | None] = [None]
        self._part = 0

    def turn(self, hosts: int) -> tuple[int, int]:
        """The next part's number and how many there are; hosts at one address are in the same part."""
        parts = -(-hosts // _HOSTS_A_LOOK) or 1
        self._part = (self._part + 1) % parts
        return self._part, parts

    def take(self, found: PaceLimits, part: int, parts: int) -> tuple[float | None, float]:
        """Answers a second (None: unbounded) and seconds to the end; parts not looked at yet count as the others do."""
        if parts != len(self._parts):
            self._parts = [None] * parts
        self._parts[part] = found
        known = [part for part in self._parts if part is not None]
        rates = [part.per_second for part in known if part.per_second is not None]
        rate = sum(rates) * len(self._parts) / len(known) if len(rates) == len(known) else None
        return rate, max(part.seconds for part in known)


class _Look:
    """The hosts in memory at one moment."""

    def __init__(self, now: float, part: int, parts: int) -> None:
        self._now, self.part, self.parts = now, part, parts
        self.counts: Counter[str] = Counter()  # by what they do
        self.queues: list[Queue] = []  # of the part whose limits are worked out
        self.quiet: list[Host] = []  # those that rest or keep their pause
        self.resting_urls = 0
        self.per_second: float | None = None  # what politeness allows, once all hosts are added; None: unbounded
        self.seconds = 0.0  # until the last of them is done, likewise

    def add(self, hosts: Iterable[Host]) -> None:
        """Count hosts. The loop runs a hundred thousand times."""
        now, part, parts, counts, queues = self._now, self.part, self.parts, self.counts, self.queues
        for host in hosts:
            doing = _STAGES[host.stage]
            if not host.work or host.state:
                counts["in_flight"] += doing == "in_flight"
                continue
            if not doing:
                doing = _waits(host, now)
                if doing != "ready":
                    self.quiet.append(host)
            counts[doing] += 1
            if doing == "resting":
                self.resting_urls += host.waiting_urls
            elif parts == 1 or hash(host.address or host.name) % parts == part:
                queues.append(queue_of(host, host.waiting_urls + (doing == "in_flight"), now))


class Figures:
    """The figures of one running crawl.

    With many hosts a look at them takes many turns of the event loop, and what is shown is the last whole one.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, worked: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock, self._worked = clock, worked
        self._allowed = Allowed()
        self._last: _Look | None = None
        self._slices: Iterator[None] | None = None  # of the look that is under way
        self._spent = 0.0  # by it
        self._not_before = 0.0
        self._mark = (0.0, 0)  # a moment and the answers until then; no answers: none since the start or a pause
        self._per_second = 0.0  # answers lately; 0.0 when unknown

    def now(self, frontier: Frontier, reporter: FailureReporter, run: Run, *, exact: bool = False) -> Progress:
        """Where the crawl stands. ``exact``: by a look at every host here and now, as without an event loop."""
        hosts, loop = frontier.workbench.hosts, None
        with suppress(RuntimeError):
            loop = asyncio.get_running_loop()
        if exact or self._last is None or loop is None or len(hosts) <= _HOSTS_A_SLICE:
            self._last = _seen(frontier, run, self._allowed)
        elif self._slices is None and self._clock() >= self._not_before:
            self._slices, self._spent = self._looking(frontier, run), 0.0
            loop.call_soon(self._go_on, loop)
        return _progress(frontier, reporter, run, self._last, self._own_rate(run))

    def _own_rate(self, run: Run) -> float:
        """Answers a second that this process has worked off lately; 0.0 when unknown."""
        now, pages, (then, before) = self._clock(), run.tallies.pages, self._mark
        if run.halted:
            self._mark, self._per_second = (now, 0), 0.0
        elif not before:
            self._mark = now, pages
        elif now - then >= _RATE_SECONDS:
            self._mark, self._per_second = (now, pages), (pages - before) / (now - then)
        return self._per_second

    def _looking(self, frontier: Frontier, run: Run) -> Iterator[None]:
        """A look at the hosts of this moment, a slice each time it goes on."""
        hosts = [*frontier.workbench.hosts.values()]
        look = _Look(run.now(), *self._allowed.turn(len(hosts)))
        for start in range(0, len(hosts), _HOSTS_A_SLICE):
            look.add(hosts[start : start + _HOSTS_A_SLICE])
            yield
        self._last = _found(look, frontier, self._allowed)

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        slices, self._slices = self._slices, None
        assert slices is not None
        began = self._worked()
        more = next(slices, self) is None
        self._spent += self._worked() - began
        if more:
            self._slices = slices
            loop.call_soon(self._go_on, loop)
        else:
            self._not_before = self._clock() + self._spent / _COST_SHARE


def _seen(frontier: Frontier, run: Run, allowed: Allowed) -> _Look:
    hosts = frontier.workbench.hosts
    look = _Look(run.now(), *allowed.turn(len(hosts)))
    look.add(hosts.values())
    return _found(look, frontier, allowed)


def _found(look: _Look, frontier: Frontier, allowed: Allowed) -> _Look:
    found = pace_limits(look.queues, frontier.workbench.ips.pause_seconds)
    look.per_second, look.seconds = allowed.take(found, look.part, look.parts)
    look.queues.clear()
    return look


def _progress(frontier: Frontier, reporter: FailureReporter, run: Run, seen: _Look, own_per_second: float) -> Progress:
    now, done, on_disk = run.now(), run.tallies, frontier.hosts.on_disk.counts
    counts, quiet, resting_urls, per_second = seen.counts, seen.quiet, seen.resting_urls, seen.per_second
    due_on_disk = on_disk.hosts - on_disk.resting
    eta = max(seen.seconds, on_disk.done_at - now if due_on_disk > 0 else 0.0)
    if eta > 0 and own_per_second:  # less than politeness says, where that is the slower: its longest queue decides
        if on_disk.hosts:
            resting_urls += on_disk.rows * on_disk.resting // on_disk.hosts
        eta = max(eta, (frontier.hosts.waiting_urls - resting_urls) / own_per_second)
    wake = frontier.wake_at()  # of hosts without work and of addresses as well
    in_memory = sum(counts.values()) - counts["resting"]
    if per_second and in_memory:  # the pauses of hosts on disk are assumed to be the average of the others'
        per_second *= (in_memory + due_on_disk) / in_memory
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
        ceiling_per_second=per_second or None,
        hosts_in_busy_hours=len(frontier.quiet_hours.slowed) if frontier.quiet_hours is not None else 0,
        standing=() if moves else reporter.standing(quiet, now, on_disk.hosts),
        paused=run.halted,
    )


def _waits(host: Host, now: float) -> str:
    """The state of a host that is neither in flight nor about to be."""
    if host.rests_until(now):
        return "resting"
    if host.next_free > now:
        return "waiting"
    return "in_line" if host.ports is not None and host.ports.turn is not None else "ready"


class FailureReporter:
    """Of one start. ``seed_hosts`` are sorted host keys."""

    def __init__(self, seed_hosts: Sequence[str]) -> None:
        self._seed_hosts = seed_hosts
        self._reasons: dict[str, str] = {}  # host -> its last failure
        self._seeds: set[str] = set()  # hosts and URLs of seeds that were named
        self._more = 0  # that were not

    def ended(self, outcome: LeaseResult, now: float) -> None:
        """Report a page whose reason is not GOOD; its host's rest is already decided."""
        row, host = outcome.row, outcome.lease.host
        rests = host.rests_until(now)
        if rests or outcome.status is None:
            self._reasons.pop(host.name, None)
            if len(self._reasons) >= _REMEMBERED:
                del self._reasons[next(iter(self._reasons))]
            self._reasons[host.name] = str(outcome.reason)
        is_seed = row.kind.is_seed
        if is_seed or (row.kind.is_robots and (rests or outcome.status is None) and self._of_seeds(host.name)):
            what = f"Seed {row.url}" if is_seed else f"The seeds of {host.name} wait for {row.url}"
            known = {"host": host.name, "url": row.url}
            word, detail = str(outcome.reason), str(outcome.status if outcome.status is not None else outcome.error)
            word += f" ({detail})" if detail and detail != word else ""
            self._say(f"{what}: {word}{_again(rests, now)}", outcome.reason, known, host.name)

    def refused(self, seeds: Iterable[tuple[str, Reason]]) -> None:
        """Report seeds (URLs) that a gate refused."""
        for url, reason in seeds:
            self._say(f"Seed {url} is refused: {reason}", reason, {"url": url}, url)

    def standing(self, hosts: Sequence[Host], now: float, on_disk: int = 0) -> tuple[str, ...]:
        """Why nothing moves, by the hosts that are free first; ``on_disk``: how many more rest there."""
        first = nsmallest(_LINES, hosts, key=lambda host: free_at(host, now))
        lines = [f"{host.name}: {self._why(host, now)}{_again(free_at(host, now), now)}" for host in first]
        more = len(hosts) - len(first) + on_disk
        return (*lines, f"and {more:,} more rest or keep their pause") if more else tuple(lines)

    def _why(self, host: Host, now: float) -> str:
        if not host.rests_until(now):
            return pace_source(host)
        if host.closed_until > now:
            return "outside the hours of its robots.txt"
        if host.at_door and host.rest_until <= now:
            return f"only other domains name what is left, and its door is closed to that ({host.door.reason})"
        return self._reasons.get(host.name) or (
            f"rests, {host.failures} failures in a row" if host.failures else "rests"
        )

    def _of_seeds(self, host: str) -> bool:
        place = bisect_left(self._seed_hosts, host)
        return place < len(self._seed_hosts) and self._seed_hosts[place] == host

    def _say(self, text: str, reason: Reason, known: dict[str, str], key: str) -> None:
        """Warn once per key while there are few, then at 10, 100, 1,000 more."""
        if key in self._seeds:
            return
        if len(self._seeds) < _NAMED:
            self._seeds.add(key)
            remedy = REMEDIES.get(reason, "")
            logger.warning("%s.%s", text, f" {remedy}" if remedy else "", extra={**known, "reason": reason})
            return
        self._more += 1
        if self._more >= 10 and str(self._more).strip("0") == "1":
            logger.warning(
                "%d more seeds have failed or were refused; the request log and scrapy why name them", self._more
            )


def free_at(host: Host, now: float) -> float:
    """When a host that waits or rests may be asked; epoch seconds."""
    return max(host.next_free, host.rests_until(now))


def _again(until: float, now: float) -> str:
    return f", again in {human_seconds(until - now)}" if until > now else ""
