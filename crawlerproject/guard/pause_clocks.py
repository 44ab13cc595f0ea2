"""When requests to each host name and each IP address ended, and which of these have one in flight."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlerproject.frontier.hosts.host import Host

# Fewer entries than this are never looked through: they take under a megabyte.
_SWEEP_FROM = 1000


class PauseClock:
    """One host name or IP address. Epoch seconds of a clock that is never set."""

    __slots__ = ("address", "ended", "forget_at", "hosts", "in_flight", "shared", "waiting")

    def __init__(self) -> None:
        self.ended = float("-inf")  # of the last answer
        self.forget_at = float("-inf")
        self.in_flight = False
        self.shared = False  # with requests that the frontier knows nothing of
        self.address = ""  # IP address last connected to
        self.hosts: dict[str, Host] = {}  # by host key: what their answers have taught
        self.waiting: list[asyncio.Future[None]] | None = None  # nearly always: a list less for the collector to walk

    @property
    def rests_until(self) -> float:
        """The end of the longest rest of a port."""
        return max((host.rest_until for host in self.hosts.values()), default=0.0)


class PauseClocks:
    """Clocks by key; those whose pause is over are dropped, at a cost of O(1) a request."""

    def __init__(self) -> None:
        self._clocks: dict[str, PauseClock] = {}
        self._sweep_at = _SWEEP_FROM

    def __len__(self) -> int:
        return len(self._clocks)

    def __getitem__(self, key: str) -> PauseClock:
        """The key's clock, made if need be."""
        clock = self._clocks.get(key)
        if clock is None:
            clock = self._clocks[key] = PauseClock()
        return clock

    def items(self) -> Iterable[tuple[str, PauseClock]]:
        """Keys and clocks."""
        return self._clocks.items()

    def get(self, key: str) -> PauseClock | None:
        """The key's clock; None when no pause runs."""
        return self._clocks.get(key)

    def shared(self, key: str) -> bool:
        """Whether requests that are not the frontier's have gone there lately."""
        clock = self._clocks.get(key)
        return clock is not None and clock.shared

    def wait_seconds(self, key: str, now: float, delay: float) -> float | None:
        """Seconds until ``key`` may be asked again under ``delay``; None while a request is in flight."""
        clock = self._clocks.get(key)
        if clock is None:
            return 0.0
        if clock.in_flight:
            return None
        free = clock.ended + delay
        return (max(free, clock.rests_until) if clock.hosts else free) - now

    def enter(self, key: str, *, shared: bool = False) -> None:
        """A request to ``key`` starts; ``shared``: it is not the frontier's."""
        clock = self[key]
        clock.in_flight = True
        clock.shared = clock.shared or shared

    def leave(self, key: str, ended: float, delay: float, now: float) -> PauseClock:
        """The request ended: those that wait for it look again."""
        clock = self.touch(key, ended, delay, now)
        clock.in_flight = False
        if clock.waiting:
            waiting, clock.waiting = clock.waiting, None
            for future in waiting:
                if not future.done():
                    future.set_result(None)
        return clock

    def touch(self, key: str, ended: float, delay: float, now: float) -> PauseClock:
        """An answer from ``key`` ended, whether it was announced by ``enter`` or not."""
        clock = self[key]
        clock.ended = max(clock.ended, ended)
        clock.forget_at = max(clock.forget_at, ended + delay)
        if len(self._clocks) >= self._sweep_at:
            self._clocks = {
                key: clock for key, clock in self._clocks.items() if clock.in_flight or clock.forget_at > now
            }
            self._sweep_at = max(_SWEEP_FROM, 2 * len(self._clocks))
        return clock

    def tell(self, key: str, freed: asyncio.Future[None]) -> bool:
        """Resolve ``freed`` when the request in flight at ``key`` ends; False when none is."""
        clock = self._clocks.get(key)
        if clock is None or not clock.in_flight:
            return False
        if clock.waiting is None:
            clock.waiting = []
        clock.waiting.append(freed)
        return True
