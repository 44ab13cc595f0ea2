"""Decides where to look for fingerprints within three bits: block-permuted tables (Manku, Jain, Das Sarma 2007).

A fingerprint is cut into four blocks. Two that differ in at most three bits have at least one block in common.
Table ``n`` sorts by block ``n``, so each neighbour stands in the one range of some table whose rows share that block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
