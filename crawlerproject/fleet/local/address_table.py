"""Which worker of a local fleet requests something of which IP address now, and which addresses rest."""

from __future__ import annotations

from collections import defaultdict

from crawlerproject.rules.politeness.address_turns import AddressTurns

# Addresses that have rested are forgotten when so many are known: some MB.
_SWEPT_AT = 20_000


class AddressTable:
    """One request at a time at an address, and a pause between two, whichever worker sends them; domains take turns.

    ``now`` is in seconds of any clock that never goes back.
    """

    def __init__(self, rest_seconds: float, free_from: float = 0.0) -> None:
        """Before ``free_from`` no address is free: what was asked before this process began is unknown."""
        self._rest_seconds = rest_seconds
        self._free_from = free_from
        self._holders: dict[str, tuple[str, str, float]] = {}  # by address: a worker, a domain, and since when
        self._free_at: dict[str, float] = {}
        self._turns: defaultdict[str, AddressTurns] = defaultdict(AddressTurns)  # of those that were ever waited for
        self._sweep_at = _SWEPT_AT

    def reserve(self, worker: str, address: str, domain: str, now: float, *, quick_waits: bool = False) -> float:
        """0.0: the worker has the address until it gives it back, or has exited. Else see ``AddressTurns.ask``."""
        free_at = self._free_at.get(address, self._free_from)
        holder, _, since = self._holders.get(address, (worker, domain, now))
        if free_at > now or holder != worker or address in self._turns:
            held_seconds = None if holder == worker else now - since
            if seconds := self._turns[address].ask(
                worker, domain, now, quick_waits=quick_waits, free_at=free_at, held_seconds=held_seconds
            ):
                return seconds
        self._holders[address] = worker, domain, now
        return 0.0

    def rest(self, worker: str, address: str, now: float, *, quick_waits: bool = False) -> None:
        """The worker's request has ended; ``quick_waits``: a quick domain in its own line."""
        holder, domain, since = self._holders.get(address, ("", "", now))
        if holder != worker:
            return
        del self._holders[address]
        self._free_at[address] = now + self._rest_seconds
        if (turns := self._turns.get(address)) is not None:
            turns.held(domain, now - since, now, rest_seconds=self._rest_seconds, quick_waits=quick_waits)
        if len(self._free_at) > self._sweep_at:
            self._sweep(now)

    def gone(self, worker: str, now: float) -> None:
        """The worker's process has ended, and with it all that it had under way."""
        for address in [address for address, (holder, _, _) in self._holders.items() if holder == worker]:
            self.rest(worker, address, now)

    def _sweep(self, now: float) -> None:
        self._free_at = {address: free_at for address, free_at in self._free_at.items() if free_at > now}
        for address in [address for address, turns in self._turns.items() if turns.idle(now)]:
            del self._turns[address]
        self._sweep_at = max(_SWEPT_AT, 2 * len(self._free_at))
