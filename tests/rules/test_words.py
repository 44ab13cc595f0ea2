"""rules/words: what a word is, and hashes that tell words apart."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from crawlerproject.rules.words import CJK_RANGES, count_words, word_hashes

_CJK = re.compile(f"[{CJK_RANGES}]")
_MOST = 10_000


def _words(text: str) -> list[str]:
    """The same by Python's own idea of blanks, a string a word."""
    return _CJK.sub(r" \g<0> ", text).split()


def test_words() -> None:
    """Blanks part words; each CJK character is one."""
    assert count_words("two  words\n") == 2
    assert count_words("été\u00a0à Paris") == 3
    assert count_words("日本語 and 한국 x") == 7
    assert count_words("") == 0


@given(st.text(st.characters(max_codepoint=0x3100) | st.sampled_from(" \n\t\x1c\x85\xa0\u2003\u3000漢한\ud800😀")))
@example("a" * 1000)
def test_blanks_are_those_of_python(text: str) -> None:
    """Whatever the characters: as many words as str.split finds, and a hash for each."""
    assert count_words(text) == len(_words(text)) == len(word_hashes(text, _MOST))


@given(st.lists(st.text("ab\u00e9漢-", min_size=1, max_size=8), min_size=1))
def test_short_words_have_the_same_hash_only_when_they_are_the_same(words: list[str]) -> None:
    """Up to 24 bytes a word is told by all of them, wherever it stands."""
    words = [word for each in words for word in _words(each)]
    hashes = word_hashes(" ".join(words), _MOST).tolist()

    assert len(set(hashes)) == len(set(words))
    assert word_hashes("  \n".join(reversed(words)), _MOST).tolist() == hashes[::-1]


def test_case_of_ascii_letters_does_not_matter() -> None:
    """In other letters it does: to fold it costs more than all the rest."""
    assert word_hashes("The Quick FOX", _MOST).tolist() == word_hashes("the quick fox", _MOST).tolist()


def test_long_words_are_told_by_both_ends_and_their_length() -> None:
    """What lies between 16 bytes in front and 8 behind is not looked at."""
    short, long, other = (
        word_hashes(f"{'x' * count}{end}", _MOST)[0] for count, end in ((30, "a"), (31, "a"), (30, "b"))
    )

    assert len({short, long, other}) == 3
    assert word_hashes("0123456789abcdef--01234567", _MOST) == word_hashes("0123456789abcdef++01234567", _MOST)


def test_only_the_beginning_is_hashed() -> None:
    """So many words and no more."""
    assert word_hashes("one two three", 2).tolist() == word_hashes("one two", _MOST).tolist()
