"""Decides what the words of a text are, and how alike two texts are: SimHash of 3-word shingles.

Charikar 2002, Manku et al. 2007. Words are told apart by hashes, all at once, without a string for each.

Why these features and distances: docs/near-duplicates.md.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray
from simhash import Simhash

# Scripts that put no blank between words: kana, Han (BMP, compatibility, supplementary planes), Hangul.
CJK_RANGES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_BLANKS = "\\t-\\r\\x1c- \\xa0\\u3000"
_WORDS = re.compile(f"[{CJK_RANGES}]|[^{_BLANKS}{CJK_RANGES}]+")
_CJK_FIRST = 0xE3  # the least first byte of these in UTF-8; European letters and signs have lower ones, emoji do not
_SAME_START = 64  # characters of three bytes in UTF-8 that share the first two
_CJK_STARTS = np.zeros(65_536, np.bool_)  # by the first two bytes of a character
for _first, _last in zip(CJK_RANGES[::3], CJK_RANGES[2::3], strict=True):
    for _character in {*range(ord(_first), ord(_last), _SAME_START), ord(_last)}:
        _CJK_STARTS[int.from_bytes(chr(_character).encode()[:2], "big")] = True
_NO_BREAK_SPACE = "\xa0".encode()
_BLANK_BYTES = b"\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f "
_IN_WORD = bytes([byte not in _BLANK_BYTES for byte in range(256)])

_STEP = 8  # bytes that are hashed at once
# Of a word of ``n`` bytes the first eight hold so much.
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_STEP + 1)], np.uint64)
# Odd and unlike each other (constants of splitmix64; Steele, Lea, Flood 2014).
_FIRST, _LAST = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)

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


def spaced(text: bytes) -> bytes:
    """A text in UTF-8 with nothing but ASCII blanks between its words; every CJK character is a word."""
    if text.isascii():
        return text
    text = text.replace(_NO_BREAK_SPACE, b" ")
    octets = np.frombuffer(text, np.uint8)
    places = np.flatnonzero(octets >= _CJK_FIRST)
    if _CJK_STARTS[octets[places] * np.uint16(256) + octets[places + 1]].any():
        words = _WORDS.findall(text.decode("utf-8", "surrogatepass"))  # a third of the cost of putting blanks in
        text = " ".join(words).encode("utf-8", "surrogatepass")
    return text


def count_words(text: str) -> int:
    """How many words a text has."""
    source = b" " + spaced(text.encode("utf-8", "surrogatepass"))
    inside = np.frombuffer(source.translate(_IN_WORD), np.bool_)
    return int(np.count_nonzero(inside[1:] > inside[:-1]))


def word_hashes(text: bytes, most: int) -> NDArray[np.uint64]:
    """A hash of each of the first ``most`` words of a text in UTF-8, in order; ASCII letters count alike in both cases.

    A word is identified by its first 16 bytes, its last 8 and its length: in 400 pages of a manual with 30,638 words
    13 pairs were taken for one, rulers of hyphens and names of functions.
    """
    source = b" %b        " % spaced(text).lower()  # blanks behind: eight bytes may be read at each place of a word
    inside = np.frombuffer(source.translate(_IN_WORD), np.bool_)
    edges = np.flatnonzero(inside[1:] != inside[:-1])[: 2 * most]
    starts, sizes = edges[::2] + 1, edges[1::2] - edges[::2]
    eights = np.ndarray((len(source) - _STEP + 1,), "<u8", source, 0, (1,))  # the eight bytes from each place on

    hashes: NDArray[np.uint64] = eights[starts]
    hashes &= _MASKS.take(sizes, mode="clip")
    hashes += sizes.view(np.uint64)
    hashes *= _FIRST
    hashes ^= hashes >> _SHIFT

    longer = np.flatnonzero(sizes > _STEP)
    begins, rest = starts[longer] + _STEP, sizes[longer] - _STEP
    more = eights[begins]
    more &= _MASKS.take(rest, mode="clip")
    more += eights[begins + rest - _STEP] * _LAST
    more ^= more >> _SHIFT
    more *= _FIRST
    hashes[longer] ^= more
    return hashes


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
