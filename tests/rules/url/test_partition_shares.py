"""How many partitions each worker of a fleet holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.url.partition_shares import partitions_wanted


@given(st.integers(1, 5000), st.integers(1, 2000))
def test_shares_are_equal_and_together_everything(partitions: int, workers: int) -> None:
    """None wants two more than another, and nothing is left over or wanted twice."""
    shares = [partitions_wanted(partitions, workers, rank) for rank in range(workers)]

    assert sum(shares) == partitions
    assert max(shares) - min(shares) <= 1
