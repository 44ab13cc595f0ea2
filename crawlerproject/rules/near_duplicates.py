"""Decides which fingerprints are near one: all compared one by one, or looked for in block-permuted tables.

Tables for distances within three bits (Manku, Jain, Das Sarma 2007): a fingerprint is cut into four blocks; two that
differ in at most three bits have at least one block in common. Table ``n`` sorts by block ``n``, so each neighbour
stands in the one range of some table whose rows share that block.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crawlerproject import native

NEAR_BITS = 6
"""Of 64 bits, those in which two pages of one host may differ and still have the same text (NEAR_DUPLICATE_BITS). A
lower number misses duplicates, a higher one takes different pages for one: docs/near-duplicates.md has the figures."""
TABLES = 4
# One fewer than the tables: what is found is all that there is only up to here.
MAX_BITS = TABLES - 1
_BITS = 64
# 10 million rows make 153 in each range. Two common blocks of five would make one, in ten tables instead of four:
# dearer to write and to ask up to about as many rows (docs/near-duplicates.md).
_BLOCK_BITS = _BITS // TABLES
_ALL = (1 << _BITS) - 1
_BLOCK = (1 << _BLOCK_BITS) - 1
_PLACES = tuple((table << _BLOCK_BITS, _BITS - (table + 1) * _BLOCK_BITS) for table in range(TABLES))
BLOCKS = TABLES << _BLOCK_BITS
"""How many blocks there are, those of all tables together."""


def near(values: array[int], value: int, bits: int) -> list[tuple[int, int]]:
    """(place, bits that differ) of each of ``values`` (type ``Q``) within ``bits`` of ``value``, in their order."""
    if not values:
        return []
    page = native.reader()
    return near_in_python(values, value, bits) if page is None else page.near(values, value, bits)


def near_in_python(values: array[int], value: int, bits: int) -> list[tuple[int, int]]:
    """Compare without the extension: 10 µs for 10,000 of them."""
    import numpy as np

    differ = np.bitwise_count(np.frombuffer(values, np.uint64) ^ np.uint64(value))
    (places,) = (differ <= bits).nonzero()
    return [(place, int(differ[place])) for place in places.tolist()]


class Range(NamedTuple):
    """The rows of one table to compare with, both ends included."""

    table: int
    rotated: int  # what they are compared with
    first: int
    last: int


def rotated(value: int, table: int) -> int:
    """The fingerprint as the table sorts it: its block in front. Bits that differ still differ."""
    shift = table * _BLOCK_BITS
    return (value << shift | value >> _BITS - shift) & _ALL


def restored(turned: int, table: int) -> int:
    """The fingerprint of a rotated one."""
    return rotated(turned, TABLES - table) if table else turned


def blocks(value: int) -> tuple[int, ...]:
    """The block of each table's range in ``ranges``, as one number below ``BLOCKS``: what shares none is not near."""
    return tuple([first | value >> shift & _BLOCK for first, shift in _PLACES])


def blocks_of(values: Sequence[int]) -> bytearray:
    """One byte a block: whether one of these values has it. 10 ms for 30,000 of them."""
    found = bytearray(BLOCKS)
    for first, shift in _PLACES:
        for block in {value >> shift & _BLOCK for value in values}:
            found[first | block] = 1
    return found


def ranges(value: int) -> Iterator[Range]:
    """Where everything within ``MAX_BITS`` of ``value`` is, one range a table."""
    rest = (1 << _BITS - _BLOCK_BITS) - 1
    for table in range(TABLES):
        turned = rotated(value, table)
        yield Range(table, turned, turned & ~rest, turned | rest)
