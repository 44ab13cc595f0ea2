"""Ordinary pages that look like anti-bot walls are fetched, all of them, by their servers' logs; walls are obeyed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.arena import Arena, Asked, Crawled, answer, arena, most_late_seconds
from tests.hostile.ledger import pays
from tests.reading.wall_shapes import CHL, DATADOME_TAG, ECHO, INCAPSULA, JSD, ORDINARY, WALLS, bare, read
from tests.reading.wall_shapes import page as page_of
from tests.web import zygote

PAGES = 30
LETTERS = "abcdefghij"
WALL = answer(bare(CHL), "403 Forbidden", cf_mitigated="challenge")
SEARCH = "/search?q=" + ECHO.replace(" ", "+")


def page(number: int, words: int, head: str = "", walled: str = "", **headers: str) -> bytes:
    """A page with a text of its own; it leads to the next three, and to what is walled."""
    said = "".join(LETTERS[int(digit)] for digit in f"{number:02}")
    text = " ".join(f"{said}{LETTERS[at % 10]}{LETTERS[at // 10 % 10]}{LETTERS[at // 100]}" for at in range(words))
    paths = [f"/{near}" for near in range(number + 1, min(number + 4, PAGES))]
    links = "".join(f"<p><a href='{path}'>on</a>" for path in ([walled] if walled else []) + paths)
    return answer(page_of(0, head, f"<p>{text}</p>{links}", title=said), **headers)


def number_of(asked: Asked) -> int | None:
    """Which of the site's pages is asked for."""
    number = asked.path.removeprefix("/") or "0"
    return int(number) if number.isdigit() and int(number) < PAGES else None


def control(asked: Asked) -> bytes | None:
    """Pages with no mark."""
    number = number_of(asked)
    return None if number is None else page(number, 100)


def detections(asked: Asked) -> bytes | None:
    """Cloudflare's JavaScript detections in pages of 100 words."""
    number = number_of(asked)
    return None if number is None else page(number, 100, JSD)


def mixed(asked: Asked) -> bytes | None:
    """The same in pages of 400 words, every tenth of which has 60."""
    number = number_of(asked)
    return None if number is None else page(number, 60 if number % 10 == 3 else 400, JSD)


def imperva(asked: Asked) -> bytes | None:
    """Imperva's script."""
    number = number_of(asked)
    return None if number is None else page(number, 60, INCAPSULA)


def datadome(asked: Asked) -> bytes | None:
    """DataDome's header, as on every answer of its customers, and its tag."""
    number = number_of(asked)
    head = DATADOME_TAG if number and number % 2 else ""
    return None if number is None else page(number, 500, head, X_DataDome="protected")


def search(asked: Asked) -> bytes | None:
    """A search that shows what was looked for; a stranger links to it."""
    if asked.path.startswith("/search"):
        return answer(bare(f"<p>Nothing found for {ECHO}</p>"))
    return control(asked)


def login(asked: Asked) -> bytes | None:
    """An open site whose login alone is behind a wall: each page has a link to it, with the page in its query."""
    if asked.path.startswith("/login"):
        return WALL
    number = number_of(asked)
    return None if number is None else page(number, 100, JSD, walled=f"/login?next={number}")


def walled(asked: Asked) -> bytes | None:
    """Behind a wall from its front page on."""
    return None if asked.path == "/robots.txt" else WALL


SITES = {
    "control.test": control,
    "detections.test": detections,
    "mixed.test": mixed,
    "imperva.test": imperva,
    "datadome.test": datadome,
    "search.test": search,
    "login.test": login,
}
OWN = {"/", *(f"/{number}" for number in range(1, PAGES))}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Arena, Crawled]]:
    """One crawl of them all to its end."""
    with arena(tmp_path_factory.mktemp("lookalikes")) as web:
        seeds = [web.site(name, make) for name, make in SITES.items()]
        stranger = web.url("search.test", SEARCH)
        seeds.append(
            web.site(
                "stranger.test", lambda asked: answer(f"<a href='{stranger}'>look</a>") if asked.path == "/" else None
            )
        )
        seeds += [
            web.site("walled.test", walled),
            *(web.url("walled.test", f"/{number}") for number in range(1, PAGES)),
        ]
        yield web, web.crawl(*seeds)


def reasons(crawl: Crawled, host: str) -> set[str]:
    """What the request log says of a host's pages that are there."""
    rows = (row for row in read_log(crawl.folder / "log") if row["host"].startswith(host))
    return {row["reason"] for row in rows if row["status"] != 404}


@pytest.mark.parametrize("name", SITES)
def test_every_page_is_fetched(crawled: tuple[Arena, Crawled], name: str) -> None:
    """30 of 30, as at the control."""
    web, _ = crawled
    fetched = OWN & set(web.paths(name))
    pays("pages that look like an anti-bot wall", "the site", len(fetched), f"of {PAGES} pages", at_least=PAGES)
    assert web.longest_gap(name) <= web.longest_gap("control.test") + most_late_seconds()


@pytest.mark.parametrize("name", [name for name in SITES if name != "login.test"])
def test_none_of_them_is_a_wall(crawled: tuple[Arena, Crawled], name: str) -> None:
    """Not even once."""
    assert reasons(crawled[1], name) == {"fetched"}


def test_the_echo_was_asked_for(crawled: tuple[Arena, Crawled]) -> None:
    """The stranger's link was followed, and changed nothing."""
    assert SEARCH in crawled[0].paths("search.test")


def test_walls_before_a_login_are_noted_and_cost_the_site_nothing(crawled: tuple[Arena, Crawled]) -> None:
    """Each of its 30 addresses is its own challenge."""
    web, crawl = crawled
    assert sum(path.startswith("/login") for path in web.paths("login.test")) == PAGES
    assert reasons(crawl, "login.test") == {"fetched", "challenge"}


def test_a_site_behind_a_wall_is_left_alone(crawled: tuple[Arena, Crawled]) -> None:
    """After HOST_MAX_FAILURES, 3 here, as the log says."""
    web, crawl = crawled
    assert len(web.paths("walled.test")) == 3
    assert "walled.test" in crawl.log


def test_the_shapes_that_we_know() -> None:
    """Those of tests/reading/wall_shapes.py, each with its source."""
    taken = [shape.name for shape in ORDINARY if read(shape).challenge]
    vendors = len({shape.vendor for shape in ORDINARY})
    attack = f"{len(ORDINARY)} ordinary answers with marks of {vendors} vendors"
    pays(attack, "the site", len(taken), "taken for a wall", at_most=0)
    known = [shape.name for shape in WALLS if read(shape).challenge == shape.vendor]
    pays("walls of the same vendors", "the crawl", len(known), "recognised", at_least=len(WALLS))


def why(crawl: Crawled, url: str) -> dict[str, Any]:
    """What ``scrapy why`` says of a URL."""
    command = [sys.executable, "-m", "scrapy", "why", "-s", f"CRAWL_DIR={crawl.folder}", url, "--json"]
    found: dict[str, Any] = json.loads(zygote.run(command).stdout)
    return found


@pytest.mark.parametrize(
    ("name", "path", "reason", "marks"),
    [
        ("detections.test", "/7", "fetched", "cloudflare: /cdn-cgi/challenge-platform/"),
        ("datadome.test", "/8", "fetched", "datadome: x-datadome"),
        ("search.test", SEARCH, "fetched", "unnamed: hecking your browser before accessing"),
        ("control.test", "/7", "fetched", None),
    ],
)
def test_why_shows_what_was_seen(
    crawled: tuple[Arena, Crawled], name: str, path: str, reason: str, marks: str | None
) -> None:
    """From the metadata record; a page without a mark has no such line."""
    web, crawl = crawled
    found = why(crawl, web.url(name, path))
    assert (found["reason"], found.get("wall_marks"), found.get("challenge")) == (reason, marks, None)


def test_why_names_the_wall(crawled: tuple[Arena, Crawled]) -> None:
    """And by which marks it is known."""
    web, crawl = crawled
    found = why(crawl, web.url("login.test", "/login?next=3"))
    assert (found["reason"], found["challenge"]) == ("challenge", "cloudflare")
    assert found["wall_marks"].startswith("cloudflare: cf-mitigated: challenge; cloudflare: _cf_chl_opt")
