"""The sums that a local fleet's workers share, as their supervisor keeps them: in memory, from what is committed."""

from __future__ import annotations

from collections.abc import Mapping

from crawlerproject.rules.fleet_shares import Claim, Share, part


class ShareTable:
    """Grants parts of each sum; the rule is that of stores/redis/shares.py, which keeps the same for other fleets."""

    def __init__(self, spent: Mapping[str, Mapping[str, int]], workers: int) -> None:
        """``spent``: by kind and worker, what is committed as the run begins; ``workers`` have a share."""
        self._granted = {kind: dict(by) for kind, by in spent.items()}
        self._committed = {kind: dict(by) for kind, by in spent.items()}
        self._hungry: dict[str, set[str]] = {}
        self._workers = workers
        self.claimed = False  # anything, by any worker

    def exchange(self, worker: str, claim: Claim) -> Share:
        """Take what a worker says of one sum, and grant it some."""
        self.claimed = True
        granted, committed = (each.setdefault(claim.kind, {}) for each in (self._granted, self._committed))
        hungry = self._hungry.setdefault(claim.kind, set())
        mine = claim.used if claim.gives else max(claim.used, granted.get(worker, 0))
        left = claim.most - sum(granted.values()) + granted.get(worker, 0) - mine
        if claim.wants:
            mine += part(left, self._workers, claim.least, claim.largest)
        (hungry.add if claim.wants and left <= 0 else hungry.discard)(worker)
        granted[worker], committed[worker] = mine, claim.committed
        return Share(mine, sum(committed.values()), bool(hungry - {worker}))

    def ended(self, worker: str, spent: Mapping[str, int]) -> None:
        """The worker is not started again: the others have what it did not spend."""
        for kind, amount in spent.items():
            self._granted.setdefault(kind, {})[worker] = amount
            self._committed.setdefault(kind, {})[worker] = amount
        for hungry in self._hungry.values():
            hungry.discard(worker)
