"""Decides how alike two texts are: SimHash fingerprints of 3-word shingles (Charikar 2002, Manku et al. 2007).

Why these features and distances: docs/near-duplicates.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
from simhash import Simhash  # type: ignore[import-untyped]
from xxhash import xxh3_64_digest

from crawlerproject.rules.text import CJK_RANGES, may_have_cjk

BITS = 64
# Under so many words two pages of one site differ in too few shingles to be told apart; their digest still is.
MIN_WORDS = 50
# Of longer texts the beginning is compared: 10,000 words take 5 ms, and nothing else can be done meanwhile.
MAX_WORDS = 10_000
# Scripts that put no blank between words: a character is a word.
_WORDS = re.compile(f"[{CJK_RANGES}]|[^\\s{CJK_RANGES}]+")


def words_of(text: str) -> list[str]:
    """What blanks put apart, in lower case and in order; a CJK character is a word."""
    lower = text.lower()
    return _WORDS.findall(lower) if may_have_cjk(lower) else lower.split()


def shingles(words: list[str]) -> set[str]:
    """Every three words in a row, each once: a feature that is counted cannot weigh more than 1.

    Counts are left out for a second reason: the package multiplies bytes by them, which numpy 2 refuses above 255
    (https://github.com/1e0ng/simhash/issues/74).
    """
    return {" ".join(three) for three in zip(words, words[1:], words[2:], strict=False)} or {" ".join(words)}


class _OneSum(Simhash):  # type: ignore[misc]
    """The package's fingerprint with all features summed by one numpy call, at half the cost of its batches of 200."""

    def build_by_features(self, features: Collection[str]) -> None:
        """As the package's for features without weights; a test holds that the values are the same."""
        digests = [self.hashfunc(feature.encode()) for feature in features]
        over_half = self._sum_hashes(digests) > len(digests) / 2
        self.value = int.from_bytes(np.packbits(over_half).tobytes(), "big")


def fingerprint(features: Collection[str]) -> int:
    """64 bits of which texts with common features share most; ``features`` must not be empty."""
    value: int = _OneSum(features, f=BITS, hashfunc=xxh3_64_digest).value
    return value


def text_fingerprint(text: str) -> int | None:
    """The fingerprint of a page's text (``PageFacts.text``); None when it is too short to be compared."""
    words = words_of(text)[:MAX_WORDS]
    return fingerprint(shingles(words)) if len(words) >= MIN_WORDS else None
