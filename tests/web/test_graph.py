"""The model of the synthetic web knows what a polite crawler fetches."""

from __future__ import annotations

from tests.web.profiles.broad import broad_world
from tests.web.profiles.sites import small_world

PORT = 8080


def test_profile_has_the_promised_size() -> None:
    """Some two dozen hosts and about 200 pages: a crawl of it stays short."""
    world = small_world(PORT)
    assert 20 <= len(world.sites) <= 35
    assert 150 <= len(world.expected()) <= 250


def test_world_is_deterministic() -> None:
    """The same port gives the same pages, byte for byte."""
    assert small_world(PORT).sites["plain3.test"].pages == small_world(PORT).sites["plain3.test"].pages


def test_expected_and_forbidden_are_apart() -> None:
    """Nothing is both wanted and refused; every kind of refusal is there."""
    world = small_world(PORT)
    forbidden = world.forbidden()
    assert not world.expected() & forbidden
    for url in ("http://rules.test:8080/private/1", "http://excluded.test:8080/", "http://10.0.0.1/private",
                "http://etiquette.test:8080/quiet/archive.zip", "http://etiquette.test:8080/quiet/link",
                "http://down.test:8080/", "http://moved.test:8080/hidden"):  # fmt: skip
        assert url in forbidden, url


def test_expected_follows_redirects_and_longer_allow() -> None:
    """Chains lead to their end, and what robots.txt opens again is wanted."""
    expected = small_world(PORT).expected()
    assert "http://redirects.test:8080/end/chain" in expected
    assert "http://rules.test:8080/private/open/1" in expected


def test_no_expected_address_has_a_fragment() -> None:
    """Fragments never leave a crawler."""
    assert not [url for url in small_world(PORT).expected() if "#" in url]


def test_every_host_has_its_own_address_but_the_neighbours() -> None:
    """Addresses are shared by the three neighbours only."""
    world = small_world(PORT)
    addresses = [site.ip for site in world.sites.values() if not site.host.startswith("shared-")]
    assert len(set(addresses)) == len(addresses)
    assert len({world.sites[f"shared-{letter}.test"].ip for letter in "abc"}) == 1


def test_broad_world_is_a_tree_without_end() -> None:
    """Every page links to two new ones, every host has an address of its own."""
    world = broad_world(PORT, 600, 0.0)
    site = world.sites["h00599.test"]
    assert len({each.ip for each in world.sites.values()}) == 600
    assert site.endless is not None
    page = site.endless("/p/7")
    assert page is not None
    assert b'"/p/15"' in page.pieces[0] and b'"/p/16"' in page.pieces[0]
    assert site.endless("/elsewhere") is None
