"""How many partitions each worker of a fleet holds."""

from __future__ import annotations


def partitions_wanted(partitions: int, workers: int) -> int:
    """A worker's share: an equal part, rounded up, so that none stays without a holder."""
    return -(-partitions // max(1, workers))
