"""Fingerprints: the simhash package's own values, without its fault, near for near texts."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from simhash import Simhash

from crawlerproject.rules.duplicates.simhash import (
    MIN_WORDS,
    fingerprint,
    shingles,
    text_fingerprint,
)
from crawlerproject.rules.page.words import word_hashes
from tests.web.answers import text


def _shingles(text: str) -> NDArray[np.uint64]:
    return shingles(word_hashes(text.encode(), most=10_000))


def _text_fingerprint(text: str) -> int | None:
    return text_fingerprint(text.encode())


def _from_hex(name: bytes) -> bytes:
    return bytes.fromhex(name.decode()) if len(name) == 16 else b""  # the package tries it with a word of its own


@given(st.sets(st.integers(0, 2**64 - 1), min_size=1, max_size=700))
def test_the_value_is_the_packages_own(features: set[int]) -> None:
    """Summed at once or in the package's batches of 200: the same 64 bits, also with a set bit at exactly half."""
    packages = Simhash([f"{feature:016x}" for feature in features], hashfunc=_from_hex)
    assert fingerprint(np.array(sorted(features), np.uint64)) == packages.value


def test_the_packages_fault_is_avoided() -> None:
    """A shingle that occurs 300 times makes the package fail under numpy 2; here it is a feature like any other."""
    repeated = " ".join(["again and again"] * 300)
    with pytest.raises(OverflowError):
        Simhash({"again and again": 300})

    assert _text_fingerprint(repeated) == fingerprint(_shingles(repeated))


def test_a_small_change_is_a_small_distance() -> None:
    """Another date at the end moves a few bits; another text moves about half."""
    page, other = text("near", 400), text("other", 400)
    first, second, third = (_text_fingerprint(each) for each in (f"{page} day 1", f"{page} day 2", other))
    assert first is not None
    assert second is not None
    assert third is not None

    assert 0 <= (first ^ second).bit_count() <= 6
    assert 16 <= (first ^ third).bit_count() <= 48


def test_short_texts_are_not_compared() -> None:
    """Under the least number of words nothing can be said; from it on something is."""
    words = [str(number) for number in range(MIN_WORDS)]

    assert _text_fingerprint(" ".join(words[1:])) is None
    assert _text_fingerprint(" ".join(words)) is not None
    assert _text_fingerprint("") is None


def test_a_shingle_counts_once_and_by_its_order() -> None:
    """Three words in a row, whatever their number; a text of one or two words is its own shingle."""
    assert len(_shingles("one")) == len(_shingles("one two")) == 1
    assert len(_shingles("a b c a b c")) == len({"a b c", "b c a", "c a b"})
    assert _shingles("a b c").tolist() != _shingles("c b a").tolist()


def test_order_counts() -> None:
    """The same words shuffled are another text: template words alone do not make pages alike."""
    words = text("order", 400).split()
    shuffled = random.Random(1).sample(words, len(words))
    first, second = _text_fingerprint(" ".join(words)), _text_fingerprint(" ".join(shuffled))
    assert first is not None
    assert second is not None

    assert (first ^ second).bit_count() > 10
