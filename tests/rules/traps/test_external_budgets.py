"""Budgets of those who name URLs of hosts that are not theirs."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.traps.external_budgets import (
    EARNED_NAMED,
    EVERYONE,
    FIRST_NAMED,
    OTHERS,
    ExternalBudgets,
    external_key,
    may_take,
)
from crawlerproject.rules.traps.template_yield import FIRST_PAGES, HOST_FIRST_PAGES


def spend(strangers: ExternalBudgets, domain: str, new: bool = False, most: int = 10_000) -> int:
    """How many pages of a domain's are asked for before its budget is spent."""
    for asked in range(most):
        if strangers.spent(domain):
            return asked
        strangers.learn(domain, new, 1)
    return most


def test_each_domain_has_a_budget_of_its_own() -> None:
    """Dead links of one cost the others nothing."""
    strangers = ExternalBudgets()
    assert spend(strangers, "evil.test") == FIRST_PAGES
    assert strangers.spent("evil.test") == "evil.test"
    assert not strangers.spent("honest.test")
    assert spend(strangers, "honest.test", new=True, most=1000) == 1000


def test_a_farm_of_domains_has_one_together() -> None:
    """Each of them is far from its own."""
    strangers = ExternalBudgets()
    asked = sum(spend(strangers, f"evil{number}.test", most=5) for number in range(1000))
    assert asked == HOST_FIRST_PAGES
    assert strangers.spent("honest.test") == EVERYONE


def test_what_is_queued_grows_with_what_it_brings() -> None:
    """So many URLs at first, so many more for a new text; and of all domains no more than a host may have."""
    strangers = ExternalBudgets()
    assert sum(strangers.admit("evil.test", 10_000) for _ in range(1000)) == FIRST_NAMED
    strangers.learn("evil.test", True, 1)
    assert sum(strangers.admit("evil.test", 10_000) for _ in range(1000)) == EARNED_NAMED
    assert sum(strangers.admit("other.test", FIRST_NAMED + EARNED_NAMED + 7) for _ in range(1000)) == 7


def test_what_is_kept_is_bounded() -> None:
    """Ten thousand domains, each with texts: those that come late share a budget."""
    strangers = ExternalBudgets()
    for number in range(10_000):
        strangers.admit(f"evil{number}.test", 10_000_000)
        strangers.new_text(f"http://a.test/{number}", [number * 2654435761 % 2**32])
        strangers.learn(f"evil{number}.test", True, 1)
    assert len(strangers.pack()) < 12_500
    for _ in range(10_000):
        strangers.learn("one.more.test", False, 1)
    assert strangers.spent("another.test") in (OTHERS, EVERYONE)


def test_a_restart_forgets_nothing() -> None:
    """pack and unpack are inverse; what is spent stays so."""
    strangers = ExternalBudgets()
    strangers.admit("evil.test", 10)
    spend(strangers, "evil.test")
    strangers.refused("evil.test")
    strangers.new_text("http://a.test/1", [7])

    again = ExternalBudgets.unpack(strangers.pack())

    assert again.pack() == strangers.pack()
    assert again.spent("evil.test") == "evil.test"
    assert again.named("http://a.test/1")
    assert not again.new_text("http://a.test/2", [7])
    assert [(found.template, found.fetched, found.refused) for found in again.trapped()] == [("@evil.test", 40, 1)]
    with pytest.raises(ValueError, match="version"):
        ExternalBudgets.unpack(b"\x09" * 40)


@given(st.binary(min_size=24, max_size=24))
def test_a_strangers_key_leads_back_to_the_pages(key: bytes) -> None:
    """And stays with its host."""
    assert external_key(external_key(key)) == key
    assert external_key(key)[:8] == key[:8]


def test_what_the_version_before_kept_is_read() -> None:
    """It counted no ports."""
    strangers = ExternalBudgets()
    strangers.admit("evil.test", 100)
    strangers.take_port("evil.test")
    packed = strangers.pack()
    head = orjson.loads(packed[5 : 5 + int.from_bytes(packed[1:5], "little")])
    shares = orjson.dumps([head[0][:5], [share[:6] for share in head[1]]])
    before = b"\x01" + len(shares).to_bytes(4, "little") + shares + packed[5 + int.from_bytes(packed[1:5], "little") :]

    back, old = ExternalBudgets.unpack(packed), ExternalBudgets.unpack(before)

    assert (back.everyone.named, back.everyone.ports) == (1, 1)
    assert (old.everyone.named, old.everyone.ports) == (1, 0)
    assert back.may_take_port("evil.test", 2)
    assert not back.may_take_port("evil.test", 1)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.booleans())), st.integers(0, 40))
def test_no_domain_alone_takes_the_places_of_the_others(tries: list[tuple[str, bool]], most: int) -> None:
    """Of those that are there one has half at most; dead ones come back, but never to who had them."""
    named: dict[str, int] = {}
    live: dict[str, int] = {}
    for domain, there in tries:
        if may_take(named, domain, most - sum(live.values())):
            named[domain] = named.get(domain, 0) + 1
            live[domain] = live.get(domain, 0) + there
    assert sum(live.values()) <= most
    assert all(had <= most for had in named.values())
    first = next(iter(live), "")
    if set(live) == {first}:
        assert live[first] <= (most + 1) // 2
