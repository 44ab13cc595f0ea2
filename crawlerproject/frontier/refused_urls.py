"""Refused URLs: counted by reason; seeds are kept by name, for the operator."""

from __future__ import annotations

from collections import Counter

from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import ROW_KINDS

# Refused seeds that are kept between two commits; their count goes on.
_MAX_SEEDS = 1000


class RefusedUrls:
    """What was refused since the last commit."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._seeds: list[tuple[str, Reason]] = []

    def add(self, reason: Reason, url: str, flags: int) -> None:
        """Count a refusal."""
        self.counts[reason] += 1
        if ROW_KINDS[flags].is_seed and len(self._seeds) < _MAX_SEEDS:
            self._seeds.append((url, reason))

    def take(self) -> Counter[str]:
        """The counts by reason since the last call."""
        counts, self.counts = self.counts, Counter()
        return counts

    def take_seeds(self) -> list[tuple[str, Reason]]:
        """Seeds that were refused since the last call, by URL; of very many the first."""
        seeds, self._seeds = self._seeds, []
        return seeds
