"""Marks of texts: what is the same text, what is only the URL said again, and the set that remembers them."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.traps.text_marks import Marks, text_marks

SITE = "http://a.test"


def marks(text: str, path: str = "/", title: str = "") -> tuple[int, ...]:
    """The marks of a page of the site."""
    return text_marks(title, text.encode(), SITE + path)


def test_a_text_is_told_by_its_words() -> None:
    """Digits and blanks are nothing new; another word or title is."""
    assert text_marks("Day 1", b"no events\non 1", SITE) == text_marks("Day 22", b"no events on  22", SITE)
    assert marks("one event", title="Day") != marks("two events", title="Day")
    assert marks("", title="Monday") != marks("", title="Tuesday")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("/shop/red-shoes", "No red-shoes here"), ("/shop/blue-hat", "No blue-hat here")),
        (("/shop/red-shoes.html", "No Red Shoes here"), ("/shop/blue_hat.html", "No BLUE HAT here")),
        (("/shop/red-shoes", "Not found: /shop/red-shoes"), ("/shop/hat", "Not found: /shop/hat")),
        (("/s?q=red+shoes&p=2", "No red shoes"), ("/s?q=blue%20hat&p=7", "No blue hat")),
        (("/caf%C3%A9", "Kein café"), ("/th%C3%A9", "Kein thé")),
        (("/%D0%BA%D0%BE%D1%82", "нет: кот"), ("/%D0%BF%D1%91%D1%81", "нет: пёс")),
        (("/%E7%8C%AB", "猫のページはありません"), ("/%E7%8A%AC", "犬のページはありません")),
        (("/%ff%fe-cat", "No %ff%fe-cat"), ("/%ff%fe-dog", "No %ff%fe-dog")),
        (("/cat-17", "No Cat 17, it is 12:30:01, request 4f3a9b, page 3 of 9"),
         ("/dog-4", "No Dog 4, it is 01:59:59, request 77aa0c, page 13 of 19")),
        (("/cat", "cat, cat cat / cat: none"), ("/dog", "dog, dog dog / dog: none")),
    ],
)  # fmt: skip
def test_what_repeats_its_address_says_nothing(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Whatever way it is written: the texts differ, and without the words of the address they do not."""
    ours, theirs = marks(one[1], one[0]), marks(other[1], other[0])
    assert ours[0] != theirs[0]
    assert ours[1] == theirs[1]


def test_a_word_is_not_found_within_others() -> None:
    """ "cat" is no part of "category"."""
    assert len(marks("one category", "/cat")) == 1
    assert len(marks("one cat egory", "/cat")) == 2


def test_what_says_more_is_told_by_that() -> None:
    """Pages whose titles are in their addresses differ by the rest."""
    one, other = marks("Red shoes. Made of leather", "/red-shoes"), marks("Blue hat. Made of felt", "/blue-hat")
    assert not set(one) & set(other)


def test_the_same_text_at_many_addresses_is_one_text() -> None:
    """Though some of its words are those of one address and not of another."""
    assert marks("red and green and blue", "/red/green")[0] == marks("red and green and blue", "/blue/x")[0]


def test_a_long_text_is_left_to_its_fingerprint() -> None:
    """One mark."""
    assert len(marks("cat " * 5000, "/cat")) == 1
    assert len(marks("cat " * 1000, "/cat")) == 2


@given(st.text(), st.binary(max_size=300), st.text(string.printable))
def test_no_address_and_no_text_is_too_odd(title: str, text: bytes, path: str) -> None:
    """One mark or two, of 32 bits each, and the same each time."""
    found = text_marks(title, text, f"{SITE}/{path}")
    assert 1 <= len(found) <= 2
    assert all(0 <= mark < 2**32 for mark in found)
    assert text_marks(title, text, f"{SITE}/{path}") == found


@given(st.lists(st.integers(0, 2**32 - 1), max_size=600))
def test_marks_are_a_set(added: list[int]) -> None:
    """As long as they fit; what is kept is what was added."""
    marks, known = Marks(), set[int]()
    for mark in added:
        mark = mark or 1
        assert (mark in marks) is (mark in known)
        assert marks.add(mark) is (mark not in known)
        known.add(mark)
    again = Marks.unpack(marks.pack())
    assert all(mark in again for mark in known)
    assert again.pack() == marks.pack()
