"""Which worker of a local fleet asks which IP address now, and which addresses rest."""

from __future__ import annotations

from crawlerproject.frontier.hosts.ip_clocks import LONG_APART, LONG_SECONDS, LONGEST_APART_SECONDS

# Addresses that have rested are forgotten when so many are known: some MB.
_SWEPT_AT = 20_000
# An address that another worker asks just now is asked for again after so long at least; 0.0 would grant it (ours).
_LEAST_WAIT_SECONDS = 0.05
WANTED_SECONDS = 1.0
"""A worker that was refused an address wants it for so long: four times what it waits until it asks again."""


class _Turns:
    """An address that more than one worker asks for."""

    __slots__ = ("keeps_waiting", "last", "long_from", "wanted_by", "wanted_until")

    def __init__(self) -> None:
        self.last = ""  # the worker that had it last
        self.wanted_by = ""  # another that was refused it
        self.wanted_until = 0.0
        self.keeps_waiting = False  # the request that is under way, another worker's quick one
        self.long_from = 0.0  # no request of a slow host is granted before


class AddressTable:
    """One request at a time at an address, and a pause between two, whichever worker sends them; workers take turns.

    ``now`` is in seconds of any clock that never goes back.
    """

    def __init__(self, rest_seconds: float, free_from: float = 0.0) -> None:
        """Before ``free_from`` no address is free: what was asked before this process began is unknown."""
        self._rest_seconds = rest_seconds
        self._free_from = free_from
        self._holders: dict[str, tuple[str, float]] = {}  # by address: a worker, and since when
        self._free_at: dict[str, float] = {}
        self._turns: dict[str, _Turns] = {}
        self._sweep_at = _SWEPT_AT

    def reserve(self, worker: str, address: str, now: float, *, slow: bool = False) -> float:
        """0.0: the worker has the address until it gives it back, or is gone. Else: try again after so many seconds.

        ``slow``: for a host whose requests take long.
        """
        free_at, turns = self._free_at.get(address, self._free_from), self._turns.get(address)
        holder, _ = self._holders.get(address, (worker, now))
        if free_at > now or holder != worker:
            if holder != worker or (turns is not None and turns.last != worker):
                self._wants(worker, address, now, slow)
            return free_at - now if free_at > now else max(self._rest_seconds, _LEAST_WAIT_SECONDS)
        if turns is not None:
            if turns.last == worker and turns.wanted_by not in ("", worker) and turns.wanted_until > now:
                return max(self._rest_seconds, _LEAST_WAIT_SECONDS)
            if slow and turns.long_from > now:
                return turns.long_from - now
            if turns.wanted_by == worker:
                turns.wanted_by = ""
        self._holders[address] = worker, now
        return 0.0

    def _wants(self, worker: str, address: str, now: float, slow: bool) -> None:
        """Another worker has the address, or had it last."""
        turns = self._turns.get(address)
        if turns is None:
            turns = self._turns[address] = _Turns()
        if not slow or turns.long_from <= now:  # else it would not be granted
            turns.wanted_by, turns.wanted_until = worker, now + WANTED_SECONDS
        turns.keeps_waiting |= not slow

    def rest(self, worker: str, address: str, now: float) -> None:
        """The worker's request has ended."""
        holder, since = self._holders.get(address, ("", now))
        if holder != worker:
            return
        del self._holders[address]
        self._free_at[address] = now + self._rest_seconds
        if (turns := self._turns.get(address)) is not None:
            turns.last = worker
            if turns.keeps_waiting and now - since > LONG_SECONDS:
                turns.long_from = now + min(LONG_APART * (now - since), LONGEST_APART_SECONDS)
            turns.keeps_waiting = False
        if len(self._free_at) > self._sweep_at:
            self._sweep(now)

    def gone(self, worker: str, now: float) -> None:
        """The worker's process has ended, and with it all that it had under way."""
        for address in [address for address, (holder, _) in self._holders.items() if holder == worker]:
            self.rest(worker, address, now)

    def _sweep(self, now: float) -> None:
        self._free_at = {address: free_at for address, free_at in self._free_at.items() if free_at > now}
        self._turns = {
            address: turns for address, turns in self._turns.items() if max(turns.wanted_until, turns.long_from) > now
        }
        self._sweep_at = max(_SWEPT_AT, 2 * len(self._free_at))
