"""What the pace guard remembers of each host or IP address: the last answer's end, and whether one is in flight."""

from __future__ import annotations

import asyncio
import random

from crawlerproject.rules.politeness.backoff import Rest, RestLimits, after_success, after_trouble
from crawlerproject.rules.politeness.pace import PacePreset, after_answer

# Fewer entries than this are never looked through: they take under a megabyte.
_SWEEP_FROM = 1000
# RFC 6585 section 4 and RFC 9110 15.6.4: answers that ask to wait.
_REST_STATUSES = (429, 503)


class HostClock:
    """One key's place in time, by the clock given."""

    __slots__ = ("address", "ended", "forget_at", "in_flight", "rest", "samples", "shared", "waiting")

    def __init__(self) -> None:
        self.ended = float("-inf")  # of the last answer
        self.forget_at = float("-inf")
        self.in_flight = False
        self.shared = False  # with requests that the frontier knows nothing of
        self.rest = Rest()
        self.samples: tuple[float, ...] = ()
        self.address = ""  # last connected to
        self.waiting: list[asyncio.Future[None]] = []


class HostClocks:
    """Moments by key; those whose delay is over are dropped, at a cost of O(1) a request."""

    def __init__(self, preset: PacePreset, rests: RestLimits, rng: random.Random) -> None:
        self.preset = preset
        self.rests = rests
        self.rng = rng
        self._clocks: dict[str, HostClock] = {}
        self._sweep_at = _SWEEP_FROM

    def __len__(self) -> int:
        return len(self._clocks)

    def known(self, key: str) -> HostClock | None:
        """The key's moment, if any is remembered."""
        return self._clocks.get(key)

    def shared(self, key: str) -> bool:
        """Whether requests that are not the frontier's have gone there lately."""
        moment = self._clocks.get(key)
        return moment is not None and moment.shared

    def address(self, key: str) -> str:
        """The address last seen for the key; "" when none."""
        moment = self._clocks.get(key)
        return moment.address if moment is not None else ""

    def wait_seconds(self, key: str, now: float, delay: float) -> float | None:
        """Seconds until ``key`` may be asked again under ``delay``; None while a request is in flight."""
        moment = self._clocks.get(key)
        if moment is None:
            return 0.0
        if moment.in_flight:
            return None
        return max(moment.ended + delay, moment.rest.until) - now

    def enter(self, key: str, *, shared: bool = False) -> None:
        """A request to ``key`` starts; ``shared``: it is not the frontier's."""
        moment = self._clocks.get(key)
        if moment is None:
            moment = self._clocks[key] = HostClock()
        moment.in_flight = True
        moment.shared = moment.shared or shared

    def leave(self, key: str, ended: float, delay: float, now: float) -> HostClock:
        """The request ended; whoever waits for it looks again."""
        moment = self.touch(key, ended, delay, now)
        moment.in_flight = False
        if moment.waiting:
            waiting, moment.waiting = moment.waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
        return moment

    def touch(self, key: str, ended: float, delay: float, now: float) -> HostClock:
        """An answer from ``key`` ended, whether it was announced by ``enter`` or not."""
        moment = self._clocks.get(key)
        if moment is None:
            moment = self._clocks[key] = HostClock()
        moment.ended = max(moment.ended, ended)
        moment.forget_at = max(moment.forget_at, ended + delay)
        if len(self._clocks) >= self._sweep_at:
            self._sweep(now)
        return moment

    def answered(
        self, moment: HostClock, status: int | None, ttfb: float | None, asked: float | None, now: float
    ) -> None:
        """Learn from an answer (``status`` None: it failed): response time, and the rest a host asks for."""
        ok = status is not None and status < 500 and status != 429
        moment.samples = after_answer(self.preset, moment.samples, ttfb, ok=ok)
        if status is None or status in _REST_STATUSES:
            moment.rest = after_trouble(moment.rest, now, asked, self.rests, self.rng)
        elif ok:
            moment.rest = after_success(moment.rest, now, self.rests)
        # What was learned is kept while it matters: the rest, and the time after which it is forgiven.
        moment.forget_at = max(moment.forget_at, moment.rest.until, now) + self.rests.forgive_seconds

    def tell(self, key: str, freed: asyncio.Future[None]) -> bool:
        """Resolve ``freed`` when the request in flight at ``key`` ends; False when none is."""
        moment = self._clocks.get(key)
        if moment is None or not moment.in_flight:
            return False
        moment.waiting.append(freed)
        return True

    def _sweep(self, now: float) -> None:
        """Drop what is over; look again when the rest has doubled."""
        self._clocks = {
            key: moment for key, moment in self._clocks.items() if moment.in_flight or moment.forget_at > now
        }
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._clocks))
