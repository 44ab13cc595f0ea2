"""Block-permuted tables: whatever is within three bits stands in one of the ranges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.duplicates.permuted_tables import (
    BLOCKS,
    MAX_BITS,
    TABLES,
    blocks,
    ranges,
    restored,
    rotated,
)

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


@given(VALUES, VALUES, st.integers(0, 2**16 - 1))
def test_a_block_is_shared_where_a_range_is(value: int, other: int, mask: int) -> None:
    """Table by table: the block is the same exactly where the other stands in the range."""
    for one in (other, value ^ mask, value ^ mask << 48):
        inside = [found.first <= rotated(one, found.table) <= found.last for found in ranges(value)]
        assert [ours == theirs for ours, theirs in zip(blocks(value), blocks(one), strict=True)] == inside
    assert len(set(blocks(value))) == TABLES
    assert all(0 <= block < BLOCKS for block in blocks(value))
