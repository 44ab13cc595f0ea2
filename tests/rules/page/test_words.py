"""rules/words: what a word is, and hashes that tell words apart."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from crawlerproject.rules.page.words import CJK_RANGES, count_words, word_hashes

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
