"""How many hosts a registered domain may have."""

from crawlerproject.rules.traps.domain_hosts import PAGES_A_HOST, DomainHosts
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
