"""Near fingerprints: every one within three bits is found, natively and in Python alike."""

from __future__ import annotations

import random
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject import native
from crawlerproject.rules.near_duplicates import (
    BLOCKS,
    MAX_BITS,
    TABLES,
    blocks,
    blocks_of,
    near,
    near_in_python,
    ranges,
    restored,
    rotated,
)

BITS = 64
fingerprints = st.integers(0, (1 << BITS) - 1)


def differing(value: int, count: int, chance: random.Random) -> int:
    """The value with so many bits turned."""
    for place in chance.sample(range(BITS), count):
        value ^= 1 << place
    return value


def test_every_distance_is_judged() -> None:
    """Of values of each distance those up to the bound are found, in their order."""
    chance = random.Random(1)
    value = chance.getrandbits(BITS)
    distances = [*range(BITS + 1)] * 3
    chance.shuffle(distances)
    values = array("Q", [differing(value, distance, chance) for distance in distances])

    for bits in (-1, 0, 3, 6, BITS, BITS + 1):
        expected = [(place, distance) for place, distance in enumerate(distances) if distance <= bits]
        assert near(values, value, bits) == expected
        assert near_in_python(values, value, bits) == expected


@given(st.lists(fingerprints), fingerprints, st.integers(0, BITS))
def test_both_find_the_same(values: list[int], value: int, bits: int) -> None:
    """Whatever the values; the value itself is among them as well."""
    kept = array("Q", [*values, value])

    assert near(kept, value, bits) == near_in_python(kept, value, bits)
    assert near(array("Q"), value, bits) == []


@pytest.mark.skipif(native.reader() is None, reason="of the extension")
def test_what_is_no_fingerprint_is_refused() -> None:
    """As numpy refuses it."""
    page = native.reader()
    assert page is not None
    for value in (-1, 1 << BITS):
        with pytest.raises(OverflowError):
            page.near(array("Q", [1]), value, 3)
    with pytest.raises(TypeError):
        page.near([1], 1, 3)  # type: ignore[arg-type]


@given(st.lists(fingerprints, max_size=20))
def test_the_blocks_of_many_are_those_of_each(values: list[int]) -> None:
    """One byte a block."""
    found = blocks_of(values)

    assert len(found) == BLOCKS
    assert {block for block, there in enumerate(found) if there} == {
        block for value in values for block in blocks(value)
    }


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
