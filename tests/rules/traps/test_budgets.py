"""Budgets of those who name URLs of hosts that are not theirs, of page requisites, and of hosts."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.row_kinds import external_key, requisite_key
from crawlerproject.rules.traps.budgets import (
    EARNED_NAMED,
    EARNED_NAMES,
    EVERYONE,
    FIRST_NAMED,
    FIRST_NAMES,
    FIRST_REQUISITES,
    OTHERS,
    PAGES_A_HOST,
    DomainHosts,
    ExternalBudgets,
    NamedHosts,
    RequisiteBudgets,
    may_take,
)
from crawlerproject.rules.traps.template_yield import FIRST_PAGES, HOST_FIRST_PAGES
from crawlerproject.rules.url.domains import bounded_domain


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


URL = "http://a.test/images/"


def spend_requisites(budgets: RequisiteBudgets, domain: str, *, new: bool = False, most: int = 1000) -> int:
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

    assert FIRST_PAGES <= spend_requisites(budgets, "") <= FIRST_PAGES + 2
    assert not budgets.spent("http://a.test/style.css", "")


def test_what_others_name_costs_them_alone() -> None:
    """A domain's budget is spent; neither the host's own requisites nor another domain's are concerned."""
    budgets = RequisiteBudgets()
    spend_requisites(budgets, "evil.test")

    assert budgets.spent(URL, "evil.test") == "@evil.test"
    assert not budgets.spent(URL, "honest.test")
    assert not budgets.spent(URL, "")


def test_pictures_of_their_own_go_on() -> None:
    """Each with bytes that no other had."""
    assert spend_requisites(RequisiteBudgets(), "", new=True) == 1000
    assert spend_requisites(RequisiteBudgets(), "site.test", new=True) == 1000


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
    assert sum(alone.admit("one.test", 100_000) for _ in range(FIRST_REQUISITES + 50)) == FIRST_REQUISITES


def test_what_is_not_asked_for_is_listed() -> None:
    """Shapes and domains, with how many were refused."""
    budgets = RequisiteBudgets()
    spend_requisites(budgets, "")
    spend_requisites(budgets, "evil.test")
    for name in (budgets.spent(URL + "?n=1", ""), "@evil.test", "@evil.test"):
        budgets.refused(name)

    listed = {found.template: found for found in budgets.trapped()}

    assert [found.refused for found in listed.values()] == [1, 2]
    assert "@evil.test" in listed
    assert all(found.why.startswith("of what pages need to be seen, ") for found in listed.values())


def test_packed_and_unpacked() -> None:
    """All of it is kept; anything else is refused."""
    budgets = RequisiteBudgets()
    spend_requisites(budgets, "evil.test")
    spend_requisites(budgets, "")
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
