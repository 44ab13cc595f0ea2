"""Finds which of many wildcard rules can match a path: those of which a piece of up to four characters is in it.

Each rule is filed under one piece of its literals, the one that fewest other rules are filed under. A path is looked
through once for all pieces at a time, so that what it costs does not grow with the number of rules.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

# Characters of a piece: shorter ones only for rules that have no longer literal. With 7 bits a character they are
# numbers below 2**28, and those of different lengths differ, since no character of a spelled path is 0.
LENGTH = 4
# Places at which a rule is considered for its piece.
_CHOICES = 8
# Knuth's multiplier for hashing to the upper bits (The Art of Computer Programming 3, 6.4).
_MULTIPLIER = np.uint32(2654435761)
# Places in the table for each rule: one in so many pieces of a path is looked up in vain.
_SPARSE = 16


class Pieces:
    """Rules by their pieces; a rule is known by its place in the sequence given."""

    __slots__ = ("_always", "_filed", "_shift", "_table")

    def __init__(self, literals: Iterable[Sequence[str]]) -> None:
        filed: dict[int, list[int]] = {}
        always: list[int] = []  # no literal at all
        count = 0
        for place, texts in enumerate(literals):
            count += 1
            choices = _choices(texts)
            if not choices:
                always.append(place)
                continue
            best = min(choices, key=lambda piece: len(filed.get(piece, ())))
            filed.setdefault(best, []).append(place)
        bits = max(10, (count * _SPARSE).bit_length())
        self._filed, self._always = filed, always
        self._shift = np.uint32(32 - bits)
        self._table: npt.NDArray[np.bool_] = np.zeros(1 << bits, dtype=np.bool_)
        self._table[self._hashed(np.fromiter(filed, dtype=np.uint32, count=len(filed)))] = True

    def found(self, path: str, before: int, at_most: int) -> list[int] | None:
        """Places below ``before`` of rules that may match ``path`` (ASCII), in order; None when over ``at_most``."""
        pieces = _pieces(path)
        hits = pieces[self._table[self._hashed(pieces)]]
        lists = [self._always, *(self._filed.get(piece, ()) for piece in set(hits.tolist()))]
        places: list[int] = []
        for filed in lists:
            end = bisect_left(filed, before)
            if len(places) + end > at_most:
                return None
            places += filed[:end]
        places.sort()
        return places

    def _hashed(self, pieces: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        return pieces * _MULTIPLIER >> self._shift


def _choices(texts: Sequence[str]) -> list[int]:
    """Some pieces that a path must have, as numbers; none when no text has a character."""
    long = list(islice((text for text in texts if len(text) >= LENGTH), _CHOICES))
    if not long:
        text = max(texts, key=len, default="")
        return [_number(text)] if text else []
    each = _CHOICES // len(long)
    return [_number(text[start : start + LENGTH]) for text in long for start in _starts(len(text) - LENGTH, each)]


def _starts(last: int, count: int) -> Iterable[int]:
    """About ``count`` places from ``last`` down: the ends of addresses tell them apart better than their starts."""
    return islice(range(last, -1, -max(1, last // count)), count)


def _number(piece: str) -> int:
    number = 0
    for character in piece:
        number = number << 7 | ord(character)
    return number


def _pieces(path: str) -> npt.NDArray[np.uint32]:
    """The numbers of all pieces of a path, of one to ``LENGTH`` characters."""
    characters = np.frombuffer(path.encode(), dtype=np.uint8).astype(np.uint32)
    longer = [characters]
    for length in range(1, min(LENGTH, len(path))):
        longer.append(longer[-1][:-1] << np.uint32(7) | characters[length:])
    return np.concatenate(longer)
