"""The parts of a running crawl, found by their type."""

from __future__ import annotations

import pytest

from crawlerproject.runtime.services import Services, services_of


class Crawler:
    """Anything that can be referred to weakly."""


def test_a_part_is_found_by_its_class() -> None:
    """The later of two takes the place of the earlier."""
    services = Services()
    services.provide("a", 1)
    services.provide("b")

    assert (services[str], services[int]) == ("b", 1)


def test_outside_a_crawl_there_is_none() -> None:
    """A component may ask first."""
    assert Services().get(str) is None
    with pytest.raises(KeyError):
        Services()[str]


def test_what_is_made_at_its_first_use_is_made_once() -> None:
    """The second who looks it up gets the same object."""
    services, made = Services(), []

    def make() -> list[int]:
        made.append(1)
        return made

    assert services.once(list, make) is services.once(list, make)
    assert made == [1]
    assert services[list] is made


def test_each_crawler_has_its_own() -> None:
    """Two crawls of one process do not meet."""
    one, other = Crawler(), Crawler()
    services_of(one).provide("one")

    assert services_of(one)[str] == "one"
    assert services_of(other).get(str) is None
