"""How many page requisites one host is asked for, and for whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.traps.external_budgets import external_key
from crawlerproject.rules.traps.requisite_budgets import FIRST_NAMED, RequisiteBudgets, requisite_key
from crawlerproject.rules.traps.template_yield import FIRST_PAGES

URL = "http://a.test/images/"


def spend(budgets: RequisiteBudgets, domain: str, *, new: bool = False, most: int = 1000) -> int:
    """How many pictures with changing queries are asked for before a budget is spent."""
    for asked in range(most):
        url = f"{URL}?n={asked}"
        if budgets.spent(url, domain):
            return asked
        budgets.learn(url, domain, asked if new else 7, wanted=True)
    return most


def test_one_picture_under_ever_new_addresses_is_a_trap() -> None:
    """The first bytes were new, the rest were not; other shapes are as before."""
    budgets = RequisiteBudgets()

    assert FIRST_PAGES <= spend(budgets, "") <= FIRST_PAGES + 2
    assert not budgets.spent("http://a.test/style.css", "")


def test_what_others_name_costs_them_alone() -> None:
    """A domain's budget is spent; neither the host's own requisites nor another domain's are concerned."""
    budgets = RequisiteBudgets()
    spend(budgets, "evil.test")

    assert budgets.spent(URL, "evil.test") == "@evil.test"
    assert not budgets.spent(URL, "honest.test")
    assert not budgets.spent(URL, "")


def test_pictures_of_their_own_go_on() -> None:
    """Each with bytes that no other had."""
    assert spend(RequisiteBudgets(), "", new=True) == 1000
    assert spend(RequisiteBudgets(), "site.test", new=True) == 1000


def test_errors_and_html_are_not_wanted() -> None:
    """However new their bytes are."""
    budgets = RequisiteBudgets()
    for number in range(FIRST_PAGES):
        assert not budgets.spent(f"{URL}{number}.png", "")
        budgets.learn(f"{URL}{number}.png", "", number, wanted=False)

    assert budgets.spent(f"{URL}99.png", "")


def test_no_more_are_queued_than_the_operator_allows() -> None:
    """Of the host's own, and half as many of others; one other domain has so many at first."""
    budgets = RequisiteBudgets()

    assert sum(budgets.admit("", 100) for _ in range(300)) == 100
    assert sum(budgets.admit(f"d{number}.test", 100) for number in range(300)) == 50
    assert sum(RequisiteBudgets().admit("", 10) for _ in range(3)) == 3
    alone = RequisiteBudgets()
    assert sum(alone.admit("one.test", 100_000) for _ in range(FIRST_NAMED + 50)) == FIRST_NAMED


def test_what_is_not_asked_for_is_listed() -> None:
    """Shapes and domains, with how many were refused."""
    budgets = RequisiteBudgets()
    spend(budgets, "")
    spend(budgets, "evil.test")
    for name in (budgets.spent(URL + "?n=1", ""), "@evil.test", "@evil.test"):
        budgets.refused(name)

    listed = {found.template: found for found in budgets.trapped()}

    assert [found.refused for found in listed.values()] == [1, 2]
    assert "@evil.test" in listed
    assert all(found.why.startswith("of what pages need to be seen, ") for found in listed.values())


def test_packed_and_unpacked() -> None:
    """All of it is kept; anything else is refused."""
    budgets = RequisiteBudgets()
    spend(budgets, "evil.test")
    spend(budgets, "")
    budgets.admit("", 100)

    again = RequisiteBudgets.unpack(budgets.pack())

    assert again.pack() == budgets.pack()
    assert again.spent(URL, "evil.test") == "@evil.test"
    assert again.named == 1
    for wrong in (b"", b"\x09" + budgets.pack()[1:]):
        with pytest.raises(ValueError, match="version"):
            RequisiteBudgets.unpack(wrong)


@given(st.binary(min_size=24, max_size=24))
def test_a_key_of_its_own(key: bytes) -> None:
    """Of the same host, back again by itself, and a stranger's only by chance."""
    apart = requisite_key(key)

    assert apart[:8] == key[:8]
    assert len(apart) == len(key)
    assert requisite_key(apart) == key
    if key[8:16] != key[16:][::-1] and key[8:] != key[8:][::-1]:
        assert apart != key


def test_three_keys_of_one_url() -> None:
    """A page's, a stranger's and a requisite's differ."""
    key = bytes(range(24))

    assert len({key, external_key(key), requisite_key(key)}) == 3
