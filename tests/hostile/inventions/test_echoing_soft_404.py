"""A site that answers every address, and repeats it, ends like any other trap; sites with words of their own do not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from urllib.parse import unquote

import pytest

from crawlerproject.rules.traps.template_yield import HOST_FIRST_PAGES, HOST_MOST_PAGES
from tests.hostile.arena import Arena, Asked, Make, arena, page
from tests.hostile.ledger import pays
from tests.web.running import one_pace

PACE_SECONDS = 0.005
SETTINGS = {
    **one_pace(PACE_SECONDS),
    "SCOPE_MAX_DEPTH": "1000000",  # these traps are to be found, not only cut off
}
ARTICLES = 60
SYLLABLES = ["ba", "do", "ki", "lu", "mer", "nos", "pan", "quo", "rit", "sal"]
# A text that is longer than what SimHash needs, and one that is shorter.
SHORT = "Sorry, this server has nothing like it. Please look elsewhere, or write to the people who keep it."
LONG = " ".join(f"{one}{other} is not here" for one in SYLLABLES for other in SYLLABLES)


def name(number: int) -> str:
    """A word for a number, without digits."""
    return "".join(SYLLABLES[int(digit)] for digit in str(number + 1000))


def word_of(asked: Asked) -> int:
    """How far a maze has been followed."""
    last = asked.path.rpartition("/")[2].partition("=")[2] or asked.path.rpartition("/")[2]
    words = unquote(last).replace("-", " ").replace("+", " ").split()
    known = {name(number): number for number in range(2000)}
    return known.get(words[-1], 0) if words else 0


def echo_of_path(asked: Asked) -> bytes:
    """The whole address, its last part as a title, and the time."""
    number, said = word_of(asked), unquote(asked.path)
    text = (
        f"No page called {said.rpartition('/')[2].replace('-', ' ').title()}. {SHORT} ({said}, 12:0{number % 10}:33 PM)"
    )
    return page(*(f"/lost/no-{name(number + ahead)}" for ahead in (1, 2)), text=text)


def echo_of_query(asked: Asked) -> bytes:
    """What was searched for, and the id of the request."""
    number, said = word_of(asked), asked.path.partition("=")[2]
    text = f'{SHORT} You searched for "{unquote(said.replace("+", " "))}". Request {number:08x}f{number % 7}.'
    return page(*(f"/search?q=where+is+{name(number + ahead)}" for ahead in (1, 2)), text=text)


def echo_in_much_text(asked: Asked) -> bytes:
    """The same in a text that is compared by its fingerprint as well."""
    number = word_of(asked)
    return page(*(f"/{name(number + ahead)}" for ahead in (1, 2)), text=f"{asked.path} {LONG} {asked.path}")


def slugs(asked: Asked) -> bytes | None:
    """Articles whose addresses and titles have the same words, and which say something each."""
    number = 0 if asked.path == "/" else word_of(asked)
    if number > ARTICLES:
        return None
    own = " ".join(name(number * 37 + place) for place in range(40))
    links = [f"/news/about-{name(near)}" for near in range(number + 1, min(number + 6, ARTICLES + 1))]
    return page(*links, text=f"About {name(number)}. {own}")


ECHOES = {"path.test": echo_of_path, "query.test": echo_of_query, "long.test": echo_in_much_text}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """One crawl of them all."""
    with arena(tmp_path_factory.mktemp("echoes")) as sites:
        seeds = [sites.site(host, partial(_but_robots, make=make)) for host, make in ECHOES.items()]
        sites.crawl(*seeds, sites.site("slugs.test", slugs), sites.innocent(pages=60), settings=SETTINGS)
        yield sites


def _but_robots(asked: Asked, make: Make) -> bytes | None:
    return None if asked.path == "/robots.txt" else make(asked)


@pytest.mark.parametrize("host", ECHOES)
def test_an_echo_ends(host: str, web: Arena) -> None:
    """The budget of its template, or of the host, and some pages that shared no word with it."""
    asked, most = len(web.paths(host)), HOST_FIRST_PAGES + 10
    assert asked >= 10
    assert most < HOST_MOST_PAGES
    pays("a site that repeats every address", "the crawl", asked, "requests", at_most=most)


def test_titles_that_are_in_the_address_cost_nothing(web: Arena) -> None:
    """A site with a text on each page is crawled whole, though each repeats its address."""
    found = len(set(web.paths("slugs.test")))
    assert found <= ARTICLES + 1
    pays("titles that are in the address", "the site", found, f"of {ARTICLES + 1} pages", at_least=ARTICLES + 1)


def test_the_innocent_host_is_undisturbed(web: Arena) -> None:
    """At its pace."""
    web.assert_undisturbed(pace_seconds=PACE_SECONDS, least=60)
