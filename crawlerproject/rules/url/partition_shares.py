"""How many partitions each worker of a fleet holds."""

from __future__ import annotations


def partitions_wanted(partitions: int, workers: int, rank: int) -> int:
    """A worker's share, given how many workers' names come before its own: what cannot be shared goes to the first.

    All shares together are exactly all partitions, so no worker looks for one that it cannot have.
    """
    each, left = divmod(partitions, max(1, workers))
    return each + (rank < left)
