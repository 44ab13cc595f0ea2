"""Near fingerprints: every one within three bits is found, natively and in Python alike; and marks of texts."""

from __future__ import annotations

import random
import string
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject import native
from crawlerproject.rules.text_likeness import (
    BLOCKS,
    MAX_BITS,
    TABLES,
    Marks,
    blocks,
    blocks_of,
    near,
    near_in_python,
    ranges,
    restored,
    rotated,
    text_marks,
)

BITS = 64
fingerprints = st.integers(0, (1 << BITS) - 1)


def differing(value: int, count: int, chance: random.Random) -> int:
    """The value with so many bits turned."""
    for place in chance.sample(range(BITS), count):
        value ^= 1 << place
    return value


def test_every_distance_is_judged() -> None:
    """Of values of each distance those up to the bound are found, in their order."""
    chance = random.Random(1)
    value = chance.getrandbits(BITS)
    distances = [*range(BITS + 1)] * 3
    chance.shuffle(distances)
    values = array("Q", [differing(value, distance, chance) for distance in distances])

    for bits in (-1, 0, 3, 6, BITS, BITS + 1):
        expected = [(place, distance) for place, distance in enumerate(distances) if distance <= bits]
        assert near(values, value, bits) == expected
        assert near_in_python(values, value, bits) == expected


@given(st.lists(fingerprints), fingerprints, st.integers(0, BITS))
def test_both_find_the_same(values: list[int], value: int, bits: int) -> None:
    """Whatever the values; the value itself is among them as well."""
    kept = array("Q", [*values, value])

    assert near(kept, value, bits) == near_in_python(kept, value, bits)
    assert near(array("Q"), value, bits) == []


@pytest.mark.skipif(native.reader is None, reason="of the extension")
def test_what_is_no_fingerprint_is_refused() -> None:
    """As numpy refuses it."""
    page = native.reader
    assert page is not None
    for value in (-1, 1 << BITS):
        with pytest.raises(OverflowError):
            page.near(array("Q", [1]), value, 3)
    with pytest.raises(TypeError):
        page.near([1], 1, 3)  # type: ignore[arg-type]


@given(st.lists(fingerprints, max_size=20))
def test_the_blocks_of_many_are_those_of_each(values: list[int]) -> None:
    """One byte a block."""
    found = blocks_of(values)

    assert len(found) == BLOCKS
    assert {block for block, there in enumerate(found) if there} == {
        block for value in values for block in blocks(value)
    }


VALUES = st.integers(0, 2**64 - 1)


@given(VALUES, st.sets(st.integers(0, 63), max_size=MAX_BITS))
def test_every_neighbour_stands_in_a_range(value: int, bits: set[int]) -> None:
    """The pigeonhole: three bits cannot touch all four blocks."""
    neighbour = value
    for bit in bits:
        neighbour ^= 1 << bit

    hits = [found for found in ranges(value) if found.first <= rotated(neighbour, found.table) <= found.last]

    assert hits
    for found in hits:
        assert (rotated(neighbour, found.table) ^ found.rotated).bit_count() == len(bits)


@given(VALUES)
def test_rotation_is_undone(value: int) -> None:
    """In every table; the first one sorts fingerprints as they are."""
    assert [restored(rotated(value, table), table) for table in range(TABLES)] == [value] * TABLES
    assert rotated(value, 0) == value


@given(VALUES, VALUES, st.integers(0, 2**16 - 1))
def test_a_block_is_shared_where_a_range_is(value: int, other: int, mask: int) -> None:
    """Table by table: the block is the same exactly where the other stands in the range."""
    for one in (other, value ^ mask, value ^ mask << 48):
        inside = [found.first <= rotated(one, found.table) <= found.last for found in ranges(value)]
        assert [ours == theirs for ours, theirs in zip(blocks(value), blocks(one), strict=True)] == inside
    assert len(set(blocks(value))) == TABLES
    assert all(0 <= block < BLOCKS for block in blocks(value))


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
