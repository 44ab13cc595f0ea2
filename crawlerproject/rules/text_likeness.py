"""Decides which texts are the same, or nearly so: fingerprints that are near one, and marks of what was shown before.

Fingerprints are all compared one by one, or looked for in block-permuted tables. Tables for distances within three bits
(Manku, Jain, Das Sarma 2007): a fingerprint is cut into four blocks; two that differ in at most three bits have at
least one block in common. Table ``n`` sorts by block ``n``, so each neighbour stands in the one range of some table
whose rows share that block.

Which texts a host has shown is remembered in 4 bytes each. A page is known by two marks: one of its text, one of what
is left of it without the words of its own URL. Servers that answer every address with "no page about red shoes" say the
same each time, and so does one text under many addresses.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from xxhash import xxh3_64_intdigest

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
    page = native.reader
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
    (a, by_a), (b, by_b), (c, by_c), (d, by_d) = _PLACES
    return (
        a | value >> by_a & _BLOCK,
        b | value >> by_b & _BLOCK,
        c | value >> by_c & _BLOCK,
        d | value >> by_d & _BLOCK,
    )


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


_UNSAID = b"0123456789 \t\r\n\f"  # a calendar's days differ in nothing else
# Letters in lower case; what is neither a letter nor a digit of ASCII is a blank. Other alphabets stay as they are.
_OTHER_SCRIPTS = 0x80
_PLAIN = bytes(
    byte if byte >= _OTHER_SCRIPTS else ord(chr(byte).lower()) if chr(byte).isalnum() else 32 for byte in range(256)
)
_EXTENSION = re.compile(rb"\.[A-Za-z]{1,5}[0-9]?$")
_LONGEST_EXTENSION = 8  # that with its dot, and the line break that "$" passes over
# Segments and values of one URL that are looked for in its text (ours).
_MOST_PIECES = 24
# Folders of a site come with each of its pages.
_KEPT = 4096
# Of a text that echoes its URL: words with digits in them (times, counters, ids) are left out of one up to this size,
# which is a hundred times what a server says when it has nothing to say, and costs 30 microseconds (measured).
_MOST_COUNTED = 4096
# Of longer texts a few words make no other fingerprint (rules/page/text_fingerprint.py): they count as near duplicates.
_MOST_ECHOING = 8192

_MOST_MARKS = 2048  # places of 4 bytes; half of them are used
_LEAST_MARKS = 16


def text_marks(title: str, text: bytes, url: str) -> tuple[int, ...]:
    """The marks of a page's text (UTF-8), 32 bits each: without digits and blanks; and, where it repeats words of its
    URL (path segments and query values, as written and decoded), without those as well.
    """
    whole = title.encode("utf-8", "replace") + b" " + text
    mark = _mark(whole)
    if len(whole) > _MOST_ECHOING:
        return (mark,)
    shown = whole.translate(_PLAIN)
    path, _, query = url.partition("://")[2].partition("?")
    _, *pieces = path.split("/")
    if query:
        pieces += [pair.partition("=")[2] or pair for pair in query.split("&")]
    # As they would stand in what is shown, the longest first.
    own_words = {words for piece in pieces[:_MOST_PIECES] if piece for words in _forms(piece)}
    echoed = [words for words in sorted(own_words, key=len, reverse=True) if words in shown]
    if not echoed:
        return (mark,)
    left = b" %b " % shown
    for words in echoed:
        # Scripts without blanks between words are found within a text, all others as whole words.
        words, blank = (words, b" ") if words[0] >= _OTHER_SCRIPTS and b" " not in words else (b" %b " % words, b" ")
        left = left.replace(words, blank).replace(words, blank)  # two neighbours share a blank
    if len(left) >= len(shown) + 2:
        return (mark,)
    if len(left) <= _MOST_COUNTED:  # a word with letters of other alphabets counts as one without digits
        left = b" ".join([word for word in left.split() if word.isalpha() or not word.isalnum()])
    return mark, _mark(left)


def _mark(shown: bytes) -> int:
    page = native.reader
    letters = shown.translate(None, _UNSAID) if page is None else page.said(shown)
    return xxh3_64_intdigest(letters) & 0xFFFFFFFF


@lru_cache(maxsize=_KEPT)
def _forms(piece: str) -> tuple[bytes, ...]:
    """One segment or value in the forms in which a server may repeat it; digits alone say nothing in a mark."""
    written = piece.encode("utf-8", "replace")
    forms = {written}
    if b"." in written[-_LONGEST_EXTENSION:]:
        forms.add(_EXTENSION.sub(b"", written))
    if b"%" in written:
        forms |= {unquote_to_bytes(form) for form in forms}
    shown = {b" ".join(form.translate(_PLAIN).split()) for form in forms}
    return tuple(words for words in shown if words.translate(None, _UNSAID))


class Marks:
    """A set of marks that forgets all when it is full, so that what comes again is new once more."""

    __slots__ = ("_places", "_used")

    def __init__(self) -> None:
        self._places = array("I", bytes(4 * _LEAST_MARKS))
        self._used = 0

    def __contains__(self, mark: int) -> bool:
        return bool(self._places[self._place(mark or 1)])

    def add(self, mark: int) -> bool:
        """Whether the mark was not there; it is from now on."""
        if self._used * 2 >= len(self._places):  # twice the places; at the limit all is forgotten
            old, size = self._places, min(2 * len(self._places), _MOST_MARKS)
            self._places, self._used = array("I", bytes(4 * size)), 0
            for each in old if size > len(old) else ():
                if each:
                    self.add(each)
        place = self._place(mark or 1)  # 0 is an empty place
        if self._places[place]:
            return False
        self._places[place] = mark or 1
        self._used += 1
        return True

    def pack(self) -> bytes:
        """The bytes the store keeps."""
        return self._places.tobytes()

    @classmethod
    def unpack(cls, packed: bytes) -> Marks:
        """What ``pack`` wrote."""
        marks = cls()
        marks._places = array("I", packed)
        marks._used = sum(mark != 0 for mark in marks._places)
        return marks

    def _place(self, mark: int) -> int:
        """Where the mark is, or would be."""
        places, place = self._places, mark % len(self._places)
        while places[place] and places[place] != mark:  # never full: at most half of the places are used
            place = (place + 1) % len(places)
        return place
