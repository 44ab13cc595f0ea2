"""robots.txt that is answered, but never by its owner with rules: no page is asked for, and its host is left alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from crawlerproject.stores.logs.request_log import read_log
from tests.commands.running import scrapy
from tests.hostile.arena import SETTINGS, Arena, Crawled, answer, arena, page
from tests.web import zygote
from tests.web.running import IDENTITY

MOST_FAILURES = int(SETTINGS["HOST_MAX_FAILURES"])
UNASKED = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
NEVER = {
    "limited.test": answer("later", "429 Too Many Requests"),
    "asking.test": answer("later", "429 Too Many Requests", Retry_After="1"),
    "busy.test": answer("later", "503 Service Unavailable", Retry_After="1"),
    "odd.test": answer("no", "999 Request denied"),
    "cached.test": UNASKED,
}
"""What robots.txt is answered with, always."""

CHALLENGE = (
    "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body><script>window._cf_chl_opt = {};"
    "a.src = '/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1';</script></body></html>"
)
WALLS = {
    "forbidding.test": answer(CHALLENGE, "403 Forbidden"),
    "smiling.test": answer(CHALLENGE, "200 OK"),
    "plainly.test": answer("challenge", "403 Forbidden", "text/plain", cf_mitigated="challenge"),
}
"""The same, by an anti-bot wall: to crawlers both 403 and 200 would say that there are no rules."""

NO_WALLS = {
    "private.test": answer("<h1>Forbidden</h1>", "403 Forbidden"),
    "front.test": answer("<!doctype html><title>Shop</title><p>Our shop.</p>"),
    "mentions.test": answer("User-agent: *\nDisallow: /cdn-cgi/challenge-platform/h/g/orchestrate/\n# _cf_chl_opt\n"),
}
"""Owners' answers: each lets its pages be asked for."""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Crawled, Arena]:
    """One crawl of them all, which ends by itself."""
    with arena(tmp_path_factory.mktemp("robots")) as web:
        answers = NEVER | WALLS | NO_WALLS

        def site(name: str) -> str:
            return web.site(name, lambda asked: answers[name] if asked.path == "/robots.txt" else page(text=name))

        return web.crawl(*map(site, answers), seconds=30), web


def why(crawled: tuple[Crawled, Arena], name: str) -> str:
    """What is said of a host's front page."""
    crawl, web = crawled
    return scrapy("why", web.url(name), "-s", f"CRAWL_DIR={crawl.folder}").stdout


@pytest.mark.parametrize("name", NEVER)
def test_the_host_is_left_alone(crawled: tuple[Crawled, Arena], name: str) -> None:
    """After HOST_MAX_FAILURES answers that say nothing and one probe, without a page."""
    _, web = crawled
    assert web.of(name) == []
    assert len(web.of(name, robots=True)) == MOST_FAILURES + 1
    assert "host-parked" in why(crawled, name)


@pytest.mark.parametrize("name", WALLS)
def test_a_wall_is_no_word_of_the_owners(crawled: tuple[Crawled, Arena], name: str) -> None:
    """As before a whole host: after HOST_MAX_FAILURES of them it is left alone; why names the wall."""
    crawl, web = crawled
    assert web.of(name) == []
    assert len(web.of(name, robots=True)) == MOST_FAILURES
    assert {row["reason"] for row in read_log(crawl.folder / "log") if name in row["host"]} == {"challenge"}
    said = why(crawled, name)
    assert "host-parked" in said
    assert "an anti-bot wall (cloudflare) answered, not the owner" in said


@pytest.mark.parametrize("name", NO_WALLS)
def test_what_resembles_one_is_an_answer(crawled: tuple[Crawled, Arena], name: str) -> None:
    """A plain 403 and a page of HTML mean that there are no rules; rules may name a wall's paths."""
    _, web = crawled
    assert web.paths(name) == ["/"]


def test_a_command_is_refused_as_well(tmp_path: Path) -> None:
    """What the frontier knows nothing of is judged by the guard, which says why."""
    with arena(tmp_path) as web:
        url = web.site("wall.test", lambda asked: WALLS["smiling.test"] if asked.path == "/robots.txt" else page())
        given = {**IDENTITY, "CRAWL_DIR": tmp_path / "crawl", "FETCH_HOSTS_FILE": tmp_path / "hosts"}
        given["FETCH_ALLOW_NETWORKS"] = "127.0.0.0/8"
        options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
        done = zygote.run([sys.executable, "-m", "scrapy", "fetch", url, *options])  # an event loop of its own
    assert web.of("wall.test") == []
    assert "robots-unreachable" in done.stderr
    assert "an anti-bot wall (cloudflare) answered" in done.stderr
