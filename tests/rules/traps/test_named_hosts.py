"""Hosts that a domain names: how many without an address, and when each is looked up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.traps.named_hosts import EARNED_NAMES, FIRST_NAMES, NamedHosts


def test_the_links_of_a_page_are_looked_up_at_once_and_what_follows_at_a_pace() -> None:
    """A hundred now, then eight a second while nothing is known of them."""
    named = NamedHosts()
    moments = [named.name(1000.0) for _ in range(300)]

    assert moments[:101] == [1000.0] * 101
    assert [moment - 1000.0 for moment in moments[101:]] == [number / 8 for number in range(1, 200)]


def test_live_names_hardly_wait_and_dead_ones_do() -> None:
    """The pace follows what became of the last ones."""
    live, dead = NamedHosts(), NamedHosts()
    for _ in range(100):
        live.looked_up(found=True)
        dead.looked_up(found=False)

    assert max(live.name(0.0) for _ in range(1000)) < 5.0
    assert max(dead.name(0.0) for _ in range(1000)) > 100.0


def test_no_more_without_an_address_than_the_budget() -> None:
    """It is spent by names that have none, and grows with those that have."""
    named = NamedHosts(unresolved=FIRST_NAMES)
    assert named.full
    named.looked_up(found=False)
    assert named.full
    named.looked_up(found=True)
    assert named.most - named.unresolved == EARNED_NAMES + 1


@given(st.lists(st.booleans(), max_size=300), st.floats(0.0, 10.0))
def test_law_a_moment_is_known_before(found: list[bool], step: float) -> None:
    """Each name has a turn, not before it was named; ``ready`` says whether it is at once."""
    named, now = NamedHosts(), 1000.0
    for each in found:
        ready = named.ready(now)
        moment = named.name(now)
        assert moment >= now
        assert ready == (moment == now)
        named.looked_up(found=each)
        now += step
    assert NamedHosts.unpack(named.pack()).unresolved == named.unresolved
