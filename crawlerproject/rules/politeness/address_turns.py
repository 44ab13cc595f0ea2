"""Whose turn it is at an IP address where several registered domains are hosted.

Domains whose requests hold the address for long (slow sites) hold it for a sixteenth of the time together, as long as
they keep others waiting. ``LongRequests`` is that rule, for a line of one worker's hosts (``frontier/hosts/ip_clocks``)
and for workers that share an address. Among these ``AddressTurns`` decides: the table of a local fleet calls it, and
the scripts RESERVE and REST in ``stores/redis/scripts.py`` are the same in Lua.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

LONG_SECONDS = 1.0
"""A domain whose requests take longer is slow (ours: a site at the default pace of five seconds that waits for requests
of a second gets 90 %)."""
NEWEST_COUNTS = 4
"""Of what a domain's requests take the newest counts for a quarter: one of up to four seconds is an accident of a quick
domain, and three quick ones do not pay for a longer one (ours)."""
LONG_APART = 15
"""After a long request that kept a quick domain waiting no other begins for so many times as long: a sixteenth of the
time is theirs, so that a site that would be asked all the time gets 90 % of that (ours)."""
LONGEST_APART_SECONDS = 600.0
"""No longer than this: a request that hangs until FETCH_TIMEOUT_SECONDS, twice over."""

# A worker whose request waits for another's looks again after half the time that this has taken so far, within these
# bounds: a quick answer's end is met soon, and a long one costs few questions (ours).
SOONEST_SECONDS, LATEST_SECONDS = 0.05, 0.25
KEPT_SECONDS = 1.0
"""A worker that does not come back for so long after its moment has lost its place."""
MOST_DOMAINS = 256
"""Domains of an address that are remembered; then those that are owed nothing are forgotten, and quick ones (ours)."""


class Claim(NamedTuple):
    """An address that is wanted, or given back."""

    address: str
    mark: str  # what its reservation is known by
    domain: str  # of the host
    quick_waits: bool  # whether a quick domain waits for the address in this worker's line
    took_seconds: float | None = None  # of one that is given back; None: it says nothing of the domain


class LongRequests:
    """The domains of one address whose requests take long."""

    __slots__ = ("_take", "begin_from", "used")

    def __init__(self) -> None:
        self._take: dict[str, float] = {}  # seconds that a request takes, by domain, quick ones too
        self.used: dict[str, float] = {}  # seconds, by slow domain
        self.begin_from = 0.0  # no request of theirs begins before

    def quick_among(self, domains: Iterable[str]) -> bool:
        """Whether any of these is not slow."""
        return any(domain not in self.used for domain in domains)

    def took(self, domain: str, seconds: float, now: float, *, quick_waits: bool) -> None:
        """A request of the domain has ended that took so long; ``quick_waits``: another domain that is not slow."""
        take, used = self._take, self.used
        known = take.get(domain)
        typical = seconds if known is None else known + (seconds - known) / NEWEST_COUNTS
        if known is None and len(take) >= MOST_DOMAINS:
            take = self._take = {each: take[each] for each in used if each in take}
        take[domain] = typical
        if typical <= LONG_SECONDS:
            used.pop(domain, None)
            return
        if domain not in used:  # one that has been quick so far has had its turns, and comes before the others
            used[domain] = max(used.values(), default=0.0) if known is None else min(used.values(), default=0.0)
        used[domain] += seconds
        if quick_waits:
            self.begin_from = now + min(LONG_APART * seconds, LONGEST_APART_SECONDS)

    def give_way(self, domain: str, until: float) -> None:
        """Elsewhere the domain is known as slow: no request of such domains begins before this moment."""
        self.used.setdefault(domain, max(self.used.values(), default=LONG_SECONDS))
        self.begin_from = max(self.begin_from, until)

    def next(self, waiting: Iterable[str], now: float) -> str | None:
        """The domain whose turn it is: the first quick one, unless it is the turn of a slow one; None for none."""
        used = self.used
        if not used:
            return next(iter(waiting), None)
        if self.begin_from <= now and (slow := [domain for domain in waiting if domain in used]):
            return min(slow, key=used.__getitem__)
        return next((domain for domain in waiting if domain not in used), None)


@dataclass(slots=True)
class _Place:
    """A worker's, among those that wait for the address."""

    domain: str
    start: float  # on the clock of use, at which its request may begin
    until: float = 0.0  # it is lost if the worker has not come back by then
    quick_waits: bool = False  # whether a quick domain waits in the worker's own line


class AddressTurns:
    """What workers want of one address: each asks for the domain that is first in its own line.

    Of quick domains the one is next that has used the address least (start-time fair queueing). Use is counted on a
    clock of its own, which stands at the start of the latest request; a domain that comes, or comes back, begins there:
    it is owed nothing for the time before.
    """

    __slots__ = ("_clock", "_long", "_places", "_used_until")

    def __init__(self) -> None:
        self._long = LongRequests()
        self._places: dict[str, _Place] = {}  # by worker
        self._clock = 0.0  # seconds of use
        self._used_until: dict[str, float] = {}  # on that clock, by domain

    def ask(
        self,
        worker: str,
        domain: str,
        now: float,
        *,
        quick_waits: bool = False,
        free_at: float = 0.0,
        held_seconds: float | None = None,
    ) -> float:
        """0.0: the address is the worker's, for this domain; else after how many seconds it asks again.

        Less than 0.0: so many seconds; until then the domain gives way to others, wherever they wait.
        ``quick_waits``: a quick domain in the worker's own line; ``free_at``: when the address has rested;
        ``held_seconds``: for how long a request of another worker has been under way, None: none is.
        """
        long = self._long
        if domain in long.used and long.begin_from > now:
            self._places.pop(worker, None)
            return now - long.begin_from
        ours = self._places.get(worker)
        if ours is None or ours.domain != domain:
            ours = self._places[worker] = _Place(domain, self._clock)
        ours.start = max(ours.start, self._used_until.get(domain, 0.0))
        if held_seconds is not None:
            seconds = min(max(held_seconds / 2, SOONEST_SECONDS), LATEST_SECONDS)
        elif free_at > now:
            seconds = free_at - now
        elif self._next(now, ours) is ours:
            if domain not in long.used:
                self._clock = ours.start
            del self._places[worker]
            return 0.0
        else:
            seconds = SOONEST_SECONDS
        ours.until, ours.quick_waits = now + seconds + KEPT_SECONDS, quick_waits
        return seconds

    def _next(self, now: float, asks: _Place) -> _Place:
        """Of the workers that wait, and the one that asks now."""
        waiting = [each for each in self._places.values() if each.until > now or each is asks]
        waiting.sort(key=lambda each: max(each.start, self._used_until.get(each.domain, 0.0)))
        domain = self._long.next([each.domain for each in waiting], now)
        return next(each for each in waiting if each.domain == domain)

    def held(
        self,
        domain: str,
        seconds: float,
        now: float,
        *,
        took_seconds: float | None,
        rest_seconds: float,
        quick_waits: bool,
    ) -> None:
        """A request of the domain has ended that held the address for so long, which rests now.

        ``took_seconds``: the request itself, by its worker; the rest is the way of questions and answers between them.
        None where it says nothing of the domain.
        """
        places = self._places = {worker: each for worker, each in self._places.items() if each.until > now}
        for each in places.values():
            others = () if each.domain == domain else (each.domain,)
            quick_waits = quick_waits or each.quick_waits or self._long.quick_among(others)
        if took_seconds is not None:
            self._long.took(domain, took_seconds, now, quick_waits=quick_waits)
        used, clock = self._used_until, self._clock
        used[domain] = max(used.get(domain, 0.0), clock) + seconds + rest_seconds
        if len(used) > MOST_DOMAINS:
            self._used_until = {each: until for each, until in used.items() if until > clock}

    def idle(self, now: float) -> bool:
        """Whether no worker waits, and no domain gives way."""
        return self._long.begin_from <= now and all(each.until <= now for each in self._places.values())
