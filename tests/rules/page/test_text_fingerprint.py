"""Words and fingerprints: the simhash package's own values, without its fault, near for near texts."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from simhash import Simhash

from crawlerproject.rules.page.text_fingerprint import (
    CJK_RANGES,
    MIN_WORDS,
    count_words,
    fingerprint,
    shingles,
    text_fingerprint,
    word_hashes,
)
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


_CJK = re.compile(f"[{CJK_RANGES}]")
_BLANKS = re.compile("[\t-\r\x1c-\x20\xa0\u3000]")
_MOST = 10_000


def _words(text: str) -> list[str]:
    """The same, a string a word."""
    return [word for word in _BLANKS.split(_CJK.sub(r" \g<0> ", text)) if word]


def _hashes(text: str, most: int = _MOST) -> list[int]:
    found: list[int] = word_hashes(text.encode("utf-8", "surrogatepass"), most).tolist()
    return found


def test_words() -> None:
    """Blanks part words; each CJK character is one."""
    assert count_words("two  words\n") == 2
    assert count_words("été\u00a0à Paris") == 3
    assert count_words("日本語 and 한국 x") == 7
    assert count_words("") == 0


@given(st.text(st.characters(max_codepoint=0x3100) | st.sampled_from(" \n\t\x1c\x85\xa0\u3000漢한\ud800😀")))
@example("a" * 1000)
def test_blanks_part_words(text: str) -> None:
    """Whatever the characters: as many words as by an expression, and a hash for each."""
    assert count_words(text) == len(_words(text)) == len(_hashes(text))


@given(st.lists(st.text("ab\u00e9漢-", min_size=1, max_size=8), min_size=1))
def test_short_words_have_the_same_hash_only_when_they_are_the_same(words: list[str]) -> None:
    """Up to 24 bytes a word is told by all of them, wherever it stands."""
    words = [word for each in words for word in _words(each)]
    hashes = _hashes(" ".join(words))

    assert len(set(hashes)) == len(set(words))
    assert _hashes("  \n".join(reversed(words))) == hashes[::-1]


def test_case_of_ascii_letters_does_not_matter() -> None:
    """In other letters it does: to fold it costs more than all the rest."""
    assert _hashes("The Quick FOX") == _hashes("the quick fox")


def test_long_words_are_told_by_both_ends_and_their_length() -> None:
    """What lies between 16 bytes in front and 8 behind is not looked at."""
    short, long, other = (_hashes(f"{'x' * count}{end}")[0] for count, end in ((30, "a"), (31, "a"), (30, "b")))

    assert len({short, long, other}) == 3
    assert _hashes("0123456789abcdef--01234567") == _hashes("0123456789abcdef++01234567")


def test_only_the_beginning_is_hashed() -> None:
    """So many words and no more."""
    assert _hashes("one two three", 2) == _hashes("one two")


def test_cjk_is_told_by_two_bytes() -> None:
    """Every character of the ranges is found, at their ends too; emoji, marks and blanks beside them are none."""
    for first, last in zip(CJK_RANGES[::3], CJK_RANGES[2::3], strict=True):
        for character in (first, last, chr((ord(first) + ord(last)) // 2)):
            assert count_words(f"a{character}b") == 3
    assert count_words("a\ufe0f \ufeffb 😀c ★ ″") == 5
