"""Texts of all hosts in Redis: block-permuted tables, divided by fingerprint over hashes of a fixed number.

A row is what a fingerprint has beside its block, six bytes. All rows of a block are one value of a hash, the oldest
first; so a question reads four values, however many workers there are. Table 0 has a second value for each block: the
pages of these rows, in the same order. A block keeps so many rows at most, and forgets the oldest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from crawlerproject.rules import text_likeness as across
from crawlerproject.stores.protocols import NearText, Text
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import texts_key
from crawlerproject.stores.redis.scripts import ADD_TEXTS, ROWS_OF_TEXTS, Script
from crawlerproject.stores.row_codec import PAGE_KEY_BYTES

BLOCKS = 1 << 16
"""Of each table."""
MOST_TEXTS = 4_000_000
"""Pages of all workers whose texts are known (NEAR_DUPLICATE_MAX_PAGES). Each takes some 180 bytes of Redis' memory, so
these 720 MB at most; 0: texts are compared within each host only."""
_REST_BITS = 48
_REST = (1 << _REST_BITS) - 1
_ROW_BYTES = _REST_BITS // 8
_LENGTH = Struct(">H")
_ERRORS = "surrogatepass"
# Texts of one script: Redis serves no other client meanwhile (some 10 µs each).
_AT_A_TIME = 64


class _Place(NamedTuple):
    """Where a fingerprint stands in one table."""

    table: int
    block: int
    rest: int

    @property
    def rows(self) -> bytes:
        """The field of its block's rows."""
        return self.block.to_bytes(2, "big")

    @property
    def pages(self) -> bytes:
        """The field of the pages of these."""
        return self.rows + b"p"

    @property
    def row(self) -> bytes:
        """Its row."""
        return self.rest.to_bytes(_ROW_BYTES, "big")


class RedisTexts:
    """The texts that several processes share: what is near whose text, whatever its host."""

    def __init__(self, link: RedisLink, crawl: str, max_texts: int) -> None:
        """The last ``max_texts`` of all workers are known, more or less: as many in each block."""
        self._link = link
        self._crawl = crawl
        self._block_bytes = -(-max_texts // BLOCKS) * _ROW_BYTES

    def exchange(self, added: Sequence[Text], values: Sequence[int], bits: int) -> list[list[NearText]]:
        """Add texts, then for each value what is within ``bits`` of it, nearest first. Two round trips at most."""
        calls: list[Call] = []
        for some in _slices(added):
            places = [(text, place) for text in some for place in _places(text.value)]
            keys_and_fields = [(self._key(place), self._addition(place, text)) for text, place in places]
            calls += self._calls(ADD_TEXTS, keys_and_fields, [self._block_bytes])
        additions = len(calls)
        for asked in _slices(values):
            asked_at = [place for value in asked for place in _places(value)]
            calls += self._calls(ROWS_OF_TEXTS, [(self._key(place), [place.rows]) for place in asked_at], [])
        rows = [each for answer in self._link.many(calls)[additions:] for each in answer]
        return self._with_pages([
            _near(value, rows[at * across.TABLES : (at + 1) * across.TABLES], bits) for at, value in enumerate(values)
        ])  # fmt: skip

    def _key(self, place: _Place) -> str:
        return texts_key(self._crawl, place.table, place.block)

    def _calls(self, name: Script, of_keys: Sequence[tuple[str, list[Any]]], first: list[Any]) -> Iterator[Call]:
        """One call, or in a cluster, where the keys are in several slots, one for each of them."""
        groups = [[each] for each in of_keys] if self._link.cluster else [of_keys]
        for group in groups:
            yield Call(name, [key for key, _ in group], [*first, *(value for _, values in group for value in values)])

    @staticmethod
    def _addition(place: _Place, text: Text) -> list[Any]:
        return [place.rows, place.row, place.pages, b"" if place.table else _packed(text)]

    def _with_pages(self, found: Sequence[dict[int, int]]) -> list[list[NearText]]:
        """The pages of fingerprints; one that was forgotten meanwhile has none."""
        wanted = {value: next(_places(value)) for some in found for value in some}
        calls = [Call("HMGET", [self._key(place)], [place.rows, place.pages]) for place in wanted.values()]
        packed = dict(zip(wanted, self._link.many(calls), strict=True)) if calls else {}
        pages = {value: _page(wanted[value], *both) for value, both in packed.items()}
        return [
            sorted(NearText(bits, *page) for value, bits in some.items() if (page := pages[value]) is not None)
            for some in found
        ]


def _slices(some: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (some[first : first + _AT_A_TIME] for first in range(0, len(some), _AT_A_TIME))


def _places(value: int) -> Iterator[_Place]:
    """Where a fingerprint stands in each table."""
    return (_Place(table, turned >> _REST_BITS, turned & _REST) for table, turned, _, _ in across.ranges(value))


def _near(value: int, rows: Sequence[bytes | None], bits: int) -> dict[int, int]:
    """The fingerprints in these rows, those of the value's block in each table, and the bits in which they differ."""
    found: dict[int, int] = {}
    for place, packed in zip(_places(value), rows, strict=True):
        if not packed:
            continue
        theirs = np.frombuffer(packed, np.uint8).reshape(-1, _ROW_BYTES)
        differ = np.bitwise_count(theirs ^ np.frombuffer(place.row, np.uint8)).sum(1)
        for at in (differ <= bits).nonzero()[0]:
            turned = place.block << _REST_BITS | int.from_bytes(theirs[at].tobytes(), "big")
            found[across.restored(turned, place.table)] = int(differ[at])
    return found


def _packed(text: Text) -> bytes:
    page = text.key + text.url.encode("utf-8", _ERRORS)
    return _LENGTH.pack(len(page)) + page


def _page(place: _Place, rows: bytes | None, pages: bytes | None) -> tuple[bytes, str] | None:
    """Key and URL of the page whose fingerprint has this place in table 0."""
    row, at = place.row, 0
    for first in range(0, len(rows or b""), _ROW_BYTES):
        assert rows is not None and pages is not None  # written together
        (length,) = _LENGTH.unpack_from(pages, at)
        at += _LENGTH.size
        if rows[first : first + _ROW_BYTES] == row:
            page = pages[at : at + length]
            return page[:PAGE_KEY_BYTES], page[PAGE_KEY_BYTES:].decode("utf-8", _ERRORS)
        at += length
    return None
