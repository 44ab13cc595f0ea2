"""Which worker of a local fleet asks which IP address now, and which addresses rest."""

from __future__ import annotations

# Addresses that have rested are forgotten when so many are known: some MB.
_SWEPT_AT = 20_000
# An address that another worker asks just now is asked for again after so long at least; 0.0 would grant it (ours).
_LEAST_WAIT_SECONDS = 0.05


class AddressTable:
    """One request at a time at an address, and a pause between two, whichever worker sends them.

    ``now`` is in seconds of any clock that never goes back.
    """

    def __init__(self, rest_seconds: float, free_from: float = 0.0) -> None:
        """Before ``free_from`` no address is free: what was asked before this process began is unknown."""
        self._rest_seconds = rest_seconds
        self._free_from = free_from
        self._holders: dict[str, str] = {}  # by address: a worker
        self._free_at: dict[str, float] = {}
        self._sweep_at = _SWEPT_AT

    def reserve(self, worker: str, address: str, now: float) -> float:
        """0.0: the worker has the address until it gives it back, or is gone. Else: try again after so many seconds."""
        free_at = self._free_at.get(address, self._free_from)
        if free_at > now:
            return free_at - now
        if self._holders.setdefault(address, worker) != worker:
            return max(self._rest_seconds, _LEAST_WAIT_SECONDS)
        return 0.0

    def rest(self, worker: str, address: str, now: float) -> None:
        """The worker's request has ended."""
        if self._holders.get(address) == worker:
            del self._holders[address]
            self._free_at[address] = now + self._rest_seconds
            if len(self._free_at) > self._sweep_at:
                self._sweep(now)

    def gone(self, worker: str, now: float) -> None:
        """The worker's process has ended, and with it all that it had under way."""
        for address in [address for address, holder in self._holders.items() if holder == worker]:
            self.rest(worker, address, now)

    def _sweep(self, now: float) -> None:
        self._free_at = {address: free_at for address, free_at in self._free_at.items() if free_at > now}
        self._sweep_at = max(_SWEPT_AT, 2 * len(self._free_at))
