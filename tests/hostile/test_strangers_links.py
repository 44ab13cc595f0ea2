"""A stranger's dead links close nothing: they are charged to the site that invented them, by the victims' logs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.hostile.arena import Arena, Asked, Crawled, answer, arena, page
from tests.hostile.ledger import pays
from tests.web import zygote
from tests.web.running import one_pace

ARTICLES = 80
AHEAD = 12  # articles that each one links to
PACE_SECONDS = 0.005
SETTINGS = {
    # Fast enough for some hundreds of pages of one host.
    **one_pace(PACE_SECONDS),
    "SCOPE_MAX_URLS_PER_HOST": str(ARTICLES + 10),
    "HOST_MAX_FAILURES": "2",
}
REAL = {f"/article/{number}" for number in range(1, ARTICLES + 1)}
TEXT = " ".join(f"word{place}" for place in range(30))
LETTERS = "abcdefghij"

# What the stranger names at each victim: none of it is there but the last one's articles.
NAMED = {
    "template.test": [f"/article/{number}" for number in range(900_000, 900_060)],  # the shape of its articles
    "host.test": [f"/{LETTERS[n % 10] * (n // 10 + 1)}/y" for n in range(400)],  # shapes of no others
    "count.test": [f"/article/{number}" for number in range(900_000, 900_150)],  # more than a host may have
    "moved.test": [f"/old/{number}" for number in range(900_000, 900_060)],  # each moves to a missing article
    "failing.test": [f"/report?n={number}" for number in range(10)],  # each is an error of the server's
    "articles.test": [*(f"/article/{number}" for number in (*range(900_000, 900_060), *range(ARTICLES, 0, -1)))],
    "allowed.test": [f"/article/{number}" for number in range(900_000, 900_060)],  # as the first, but see ALLOWED
}
ALLOWED = "allowed.test"  # the operator says that the stranger is none there


def text_of(number: int) -> str:
    """A text of its own, without digits."""
    said = " ".join(LETTERS[int(digit)] * (place + 3) for place, digit in enumerate(f"{number:04}"))
    return f"{said} {TEXT}"


def victim(asked: Asked) -> bytes | None:
    """Numbered articles, which the front page and other articles name; all else is missing."""
    if asked.path.startswith("/old/"):
        return answer(status="301 Moved", Location=asked.path.replace("/old/", "/article/"))
    if asked.path.startswith("/report"):
        return answer("broken", "500 Oops")
    if asked.path != "/" and asked.path not in REAL:
        return None
    number = int(asked.path.rpartition("/")[2] or 0)
    links = [f"/article/{near}" for near in range(number + 1, min(number + 1 + AHEAD, ARTICLES + 1))]
    return page(*links, text=text_of(number))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Arena, Crawled]]:
    """One crawl of all victims, found beside a page that names what they do not have."""
    with arena(tmp_path_factory.mktemp("strangers")) as web:
        victims = [web.site(name, victim) for name in NAMED]
        links = [web.url(name, path) for name, paths in NAMED.items() for path in paths]
        evil = web.site("evil.test", lambda asked: page(*links, text="links") if asked.path == "/" else None)
        allow = web.folder / "allow.txt"
        allow.write_text(f"{ALLOWED}:{web.port} @evil.test\n")
        settings = {**SETTINGS, "TRAP_ALLOW_FILE": str(allow)}
        yield web, web.crawl(evil, *victims, web.innocent(pages=60), settings=settings)


def told(crawl: Crawled, *command: str) -> str:
    """What a looking command says of a crawl."""
    line = [sys.executable, "-m", "scrapy", *command, "-s", f"CRAWL_DIR={crawl.folder}"]
    return zygote.run(line, check=True).stdout


@pytest.mark.parametrize("name", NAMED)
def test_every_real_article_is_fetched(name: str, crawled: tuple[Arena, Crawled]) -> None:
    """Once each, whatever the stranger named."""
    paths = [path for path in crawled[0].paths(name) if path in REAL]
    assert len(paths) == len(set(paths)) <= ARTICLES
    pays("dead links of a stranger", "the site that is named", len(paths), f"of {ARTICLES} pages", at_least=ARTICLES)


@pytest.mark.parametrize("name", sorted(set(NAMED) - {"failing.test", ALLOWED}))
def test_a_stranger_costs_some_dozens_of_requests(name: str, crawled: tuple[Arena, Crawled]) -> None:
    """Not one for each address that it names; those that move count at their old and at their new place."""
    asked = [path for path in crawled[0].paths(name) if path not in REAL and path != "/"]
    assert len(asked) >= 20
    pays("dead links of a stranger", "the site that is named", len(asked), "dead requests", at_most=45)


def test_what_the_host_names_comes_first(crawled: tuple[Arena, Crawled]) -> None:
    """But for what was asked before its front page was read, a stranger's URLs come last."""
    paths = crawled[0].paths("template.test")
    first = next(place for place, path in enumerate(paths) if path in REAL)
    last = max(place for place, path in enumerate(paths) if path in REAL)
    assert first <= 5
    assert [path for path in paths[first:last] if path not in REAL] == []


def test_an_error_of_a_strangers_page_stops_no_host(crawled: tuple[Arena, Crawled]) -> None:
    """All ten are asked, and again, as any page that fails; the host is not given up for it."""
    web, crawl = crawled
    assert len([path for path in web.paths("failing.test") if path.startswith("/report")]) == 20
    assert "left alone" not in crawl.log


def test_the_operator_lets_a_domain_in(crawled: tuple[Arena, Crawled]) -> None:
    """With a line of ``scrapy traps`` in TRAP_ALLOW_FILE all that it names is asked for."""
    assert set(NAMED[ALLOWED]) <= set(crawled[0].paths(ALLOWED))


def test_who_invented_them_is_told(crawled: tuple[Arena, Crawled]) -> None:
    """By ``scrapy traps``, the statistics and ``scrapy why``; no template of a victim is a trap."""
    web, crawl = crawled
    listed = told(crawl, "traps")
    assert "template.test @evil.test  evil.test named 60 URLs of this host" in listed
    assert "{n}" not in listed
    assert "'refused/stranger-budget'" in crawl.log
    refused = [path for path in NAMED["template.test"] if path not in web.paths("template.test")]
    why = told(crawl, "why", web.url("template.test", refused[0]))
    assert "refused (stranger-budget)" in why
    assert "scrapy traps" in why


def test_the_innocent_host_is_undisturbed(crawled: tuple[Arena, Crawled]) -> None:
    """At its pace."""
    crawled[0].assert_undisturbed(pace_seconds=PACE_SECONDS, least=60)
