"""Block-permuted tables: whatever is within three bits stands in one of the ranges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.duplicates.permuted_tables import MAX_BITS, TABLES, ranges, restored, rotated

VALUES = st.integers(0, 2**64 - 1)


@given(VALUES, st.sets(st.integers(0, 63), max_size=MAX_BITS))
def test_every_neighbour_stands_in_a_range(value: int, bits: set[int]) -> None:
    """The pigeonhole: three bits cannot touch all four blocks."""
    neighbour = value
    for bit in bits:
        neighbour ^= 1 << bit

    hits = [found for found in ranges(value) if found.first <= rotated(neighbour, found.table) <= found.last]

    assert hits
    for found in hits:
        assert (rotated(neighbour, found.table) ^ found.rotated).bit_count() == len(bits)


@given(VALUES)
def test_rotation_is_undone(value: int) -> None:
    """In every table; the first one sorts fingerprints as they are."""
    assert [restored(rotated(value, table), table) for table in range(TABLES)] == [value] * TABLES
    assert rotated(value, 0) == value
