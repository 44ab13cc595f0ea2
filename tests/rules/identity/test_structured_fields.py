"""Structured fields as RFC 8941 writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.identity.structured_fields import (
    InnerList,
    Item,
    Token,
    read_dictionary,
    written,
    written_dictionary,
)


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("", {}),
        ('a="x\\"y\\\\"', {"a": Item('x"y\\')}),
        ("a, b;c, d=?0", {"a": Item(True), "b": Item(True, {"c": True}), "d": Item(False)}),
        ("a=1, a=-2.5", {"a": Item(-2.5)}),
        ("a=:aGk=:;x=tok/en", {"a": Item(b"hi", {"x": Token("tok/en")})}),
        ('s=("@a"  "b";k="v" );t=3', {"s": InnerList((Item("@a"), Item("b", {"k": "v"})), {"t": 3})}),
        ("a=()\t,\tb=2", {"a": InnerList(()), "b": Item(2)}),
    ],
)
def test_dictionaries_are_read(text: str, members: dict[str, Item | InnerList]) -> None:
    """RFC 8941 3.2 and 4.2.2."""
    assert read_dictionary(text) == members


@pytest.mark.parametrize(
    "text",
    [
        "A=1", "a=", "a,", "a b", 'a="x', 'a="\\x"', "a=:x", "a=:a=a:", "a=?2", 'a=("b""c")', "a=(1", "a=é",
        "a=1;=2", "a" * 9000, "a=-", '"a"=1',
    ],
)  # fmt: skip
def test_what_is_none_is_refused(text: str) -> None:
    """RFC 8941 1.2: a field that is flawed at all is ignored as a whole."""
    with pytest.raises(ValueError, match=r"."):
        read_dictionary(text)


_VALUES = st.one_of(
    st.booleans(),
    st.integers(-(10**14), 10**14),
    st.binary(max_size=20),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
)
_NAMES = st.from_regex(r"[a-z*][a-z0-9_.*-]{0,9}", fullmatch=True)
_ITEMS = st.builds(Item, _VALUES, st.dictionaries(_NAMES, _VALUES, max_size=3))
_LISTS = st.builds(InnerList, st.lists(_ITEMS, max_size=3).map(tuple), st.dictionaries(_NAMES, _VALUES, max_size=3))


@given(st.dictionaries(_NAMES, st.one_of(_ITEMS, _LISTS), max_size=4))
def test_what_is_written_is_read_again(members: dict[str, Item | InnerList]) -> None:
    """Each way undoes the other."""
    found = read_dictionary(written_dictionary(members.items()))

    assert {name: written(member) for name, member in found.items()} == {
        name: written(member) for name, member in members.items()
    }
