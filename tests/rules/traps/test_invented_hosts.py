"""Hosts of one domain, and hosts that one domain names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.traps.invented_hosts import EARNED_NAMES, FIRST_NAMES, PAGES_A_HOST, DomainHosts, NamedHosts
from crawlerproject.rules.url.domains import bounded_domain


def test_pages_with_new_texts_earn_hosts() -> None:
    """A site whose names show pages of their own outgrows the bound; one that has none stays there."""
    farm, site = DomainHosts(hosts=1000), DomainHosts(hosts=1000, pages=3000)

    assert farm.full(1000)
    assert not site.full(1000)
    assert site.most(1000) == 1000 + 3000 // PAGES_A_HOST


def test_round_trip() -> None:
    """What is stored comes back."""
    back = DomainHosts.unpack(DomainHosts(12, 345, 2**40).pack())

    assert (back.hosts, back.pages, back.refused) == (12, 345, 2**40)


def test_who_named_hosts_comes_back() -> None:
    """What was stored before that was known is read as well; a dead host of its own domain's keeps its place."""
    domain = DomainHosts(2, 3, 4)
    old = domain.pack()
    domain.take_up("evil.test")
    domain.dead = 2
    back = DomainHosts.unpack(domain.pack())

    assert (back.hosts, back.dead, back.named, back.taken) == (3, 2, {"evil.test": 1}, 2)
    assert DomainHosts.unpack(old).named == {}


def test_the_domain_of_a_farm_below_an_unknown_suffix() -> None:
    """Names below a suffix that the list does not know count by their last two labels; others as registered."""
    assert bounded_domain("x1.y2.farm.test:8080") == "farm.test"
    assert bounded_domain("farm.test") == "farm.test"
    assert bounded_domain("intranet") == "intranet"
    assert bounded_domain("a.b.example.co.uk") == "example.co.uk"
    assert bounded_domain("one.github.io") == "one.github.io"
    assert bounded_domain("192.0.2.1:81") == "192.0.2.1"
    assert bounded_domain("[2001:db8::1]:81") == "[2001:db8::1]"


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
