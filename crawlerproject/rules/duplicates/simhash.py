"""Decides how alike two texts are: SimHash fingerprints of 3-word shingles (Charikar 2002, Manku et al. 2007).

Why these features and distances: docs/near-duplicates.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from simhash import Simhash

from crawlerproject.rules.page.words import word_hashes

BITS = 64
# Under so many words two pages of one site differ in too few shingles to be distinguished; their digest still is.
MIN_WORDS = 50
# Of longer texts the beginning is compared: 10,000 words take 2 ms, and nothing else can be done meanwhile.
MAX_WORDS = 10_000
# Odd and unlike each other: the same word counts differently at each place of a shingle (constants of splitmix64).
_PLACES = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
# splitmix64's finaliser (Steele, Lea, Flood 2014): shingles with two words in common must not have common bits for it.
# With one multiplication only, twice as many pages were marked wrongly.
_MIXING = ((np.uint64(30), _PLACES[1]), (np.uint64(27), _PLACES[2]))
_LAST_SHIFT = np.uint64(31)


def shingles(hashes: NDArray[np.uint64], size: int = 3) -> NDArray[np.uint64]:
    """A 64-bit hash of every ``size`` words in a row, each once: a feature that is counted cannot weigh more than 1.

    Of words there are ``hashes``, which are combined by place: half the cost of hashing joined words. Counts are left
    out for a second reason: the package multiplies bytes by them, which numpy 2 refuses above 255
    (https://github.com/1e0ng/simhash/issues/74).
    """
    size = min(size, len(hashes))
    mixed = hashes[: len(hashes) - size + 1] * _PLACES[0]
    for place in range(1, size):
        mixed += hashes[place : len(hashes) - size + 1 + place] * _PLACES[place]
    for shift, factor in _MIXING:
        mixed ^= mixed >> shift
        mixed *= factor
    mixed ^= mixed >> _LAST_SHIFT
    mixed.sort()
    first = np.ones(len(mixed), np.bool_)
    np.not_equal(mixed[1:], mixed[:-1], out=first[1:])
    unique: NDArray[np.uint64] = mixed[first]  # as np.unique, at a third of its cost
    return unique


# For its bits; making an instance a page would cost more than the sum of a short one.
_SIMHASH = Simhash(0, f=BITS)
_BYTE_ROWS = 255  # that a sum of bits in one byte can hold


def fingerprint(features: NDArray[np.uint64]) -> int:
    """64 bits of which texts with common features share most; ``features`` must not be empty.

    The package's value for features without weights, whose hashes are given; a test holds that the values are the same.
    Bits are summed in bytes: the package's sum, in eight bytes a bit, takes four times as long.
    """
    rows = _SIMHASH._bitarray_from_bytes(features.astype(">u8").tobytes()).reshape(-1, BITS)
    counts = np.zeros(BITS, np.int64)
    for start in range(0, len(rows), _BYTE_ROWS):
        counts += np.add.reduce(rows[start : start + _BYTE_ROWS], axis=0, dtype=np.uint8)
    return int.from_bytes(np.packbits(counts > len(rows) / 2).tobytes(), "big")


def text_fingerprint(text: bytes) -> int | None:
    """The fingerprint of a page's text (``PageFacts.text``); None when it is too short to be compared."""
    hashes = word_hashes(text, MAX_WORDS)
    return fingerprint(shingles(hashes)) if len(hashes) >= MIN_WORDS else None
