"""Pages of many sites that call interfaces of others from the browser: limited, slow and hanging ones, without malice.

Three of the sites that are called have articles, of which as many are fetched as of a site that nothing calls.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.arena import NO_RULES, NOT_FOUND, Arena, Asked, Crawled, Visit, answer, arena, page
from tests.hostile.ledger import pays
from tests.web import zygote
from tests.web.profiles.apps import shell
from tests.web.running import one_pace
from tests.web.waiting import busyness

ARTICLES = 80
PACE_SECONDS = 0.15
CALLED = ("limited.test", "slow.test", "hanging.test")
CONTROL = "control.test"
# Interfaces without pages: one of a few answers, one that never tires of answering the same.
QUOTA, OPEN = "quota.test", "open.test"
QUOTA_CALLS = 4
WIDGETS = [f"widget{number}.test" for number in range(3)]
PAGES = 3  # of each of these
CALLS = 8  # of each page to each interface, each with a URL of its own
GREEDY = "greedy.test"  # its two pages want more of OPEN than one domain may have of a host
GREEDY_CALLS = 30
BUDGET = 40  # rules/traps/budgets.py
RETRY_SECONDS = 3.0  # of an idle machine: where the same pages take longer, as many calls are made meanwhile
# What a server sees of a pause may be shorter than what was kept: its last write returns after we have read it.
SEEN_SECONDS = 0.03
LEAST = 0.9  # of what the control gets
SETTINGS = {
    **one_pace(PACE_SECONDS),
    "PACE_MAX_SECONDS": "10",
    # What a busy machine makes an answer late by would lengthen one site's pause as much: 73 of 80 articles were left.
    # What slow interfaces take would still lengthen it.
    "PACE_MULTIPLIER": "0.1",
    "BACKOFF_START_SECONDS": "2",
    "BACKOFF_MAX_SECONDS": "3600",
    "RENDER": "auto",
    "RENDER_MAX_IN_FLIGHT": "3",
    "RENDER_SCREENSHOT": "False",
}


class Site:
    """One that is called, with articles or without."""

    def __init__(self, articles: int, retry_seconds: int) -> None:
        self._articles = articles
        self._retry_seconds = retry_seconds
        self._calls = 0

    async def talk(self, asked: Asked, writer: asyncio.StreamWriter) -> float:
        """Its own pages at once, its interface as its name says."""
        made = NO_RULES if asked.path == "/robots.txt" else self._page(asked.path)
        if asked.path.startswith("/api"):
            self._calls += 1
            await asyncio.sleep({"slow.test": 3.0, "hanging.test": 12.0}.get(asked.host, 0.0))
            spent = asked.host == "limited.test" or (asked.host == QUOTA and self._calls > QUOTA_CALLS)
            status, more = (
                ("429 Too Many Requests", {"Retry_After": f"{self._retry_seconds}"}) if spent else ("200 OK", {})
            )
            made = answer("{}", status, mime="application/json", Access_Control_Allow_Origin="*", **more)
        handed_over = time.time()
        writer.write(made)
        await writer.drain()
        return handed_over

    def _page(self, path: str) -> bytes:
        name = path.removeprefix("/article/")
        number = 0 if path == "/" else int(name) if name.isdigit() else self._articles + 1
        if number > self._articles:
            return NOT_FOUND
        said = "".join("abcdefghij"[int(digit)] for digit in str(number))
        text = " ".join(f"{said}x{place}" for place in range(60))
        return page(*(f"/article/{near}" for near in range(number + 1, min(number + 6, self._articles + 1))), text=text)


def widgets(web: Arena, asked: Asked) -> bytes | None:
    """A page whose script calls interfaces, and shows what it has whether or not they answer."""
    greedy = asked.host == GREEDY
    number = asked.path.strip("/") or "0"
    if not number.isdigit() or int(number) >= (2 if greedy else PAGES):
        return None
    names, most = ((OPEN,), GREEDY_CALLS) if greedy else ((*CALLED, QUOTA), CALLS)
    urls = [web.url(name, f"/api?{asked.host}-{number}-{call}") for call in range(most) for name in names]
    shown = "document.getElementById('root').innerHTML = 'shown '.repeat(300)"
    links = "".join(f"<a href='/{other}'>{other}</a> " for other in range(1, PAGES))
    return answer(shell(f"<script>{shown}; for (const url of {urls!r}) fetch(url).catch(() => 0)</script>", body=links))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Arena, Crawled]]:
    """One crawl for all tests here, until the control has its articles and all pages were in the browser."""
    retry_seconds = math.ceil(RETRY_SECONDS * busyness())
    with arena(tmp_path_factory.mktemp("widgets")) as web:
        called = [web.raw_site(name, Site(ARTICLES, retry_seconds).talk) for name in (*CALLED, CONTROL)]
        for name in (QUOTA, OPEN):
            web.raw_site(name, Site(0, retry_seconds).talk)
        calling = [web.site(name, lambda asked: widgets(web, asked)) for name in (*WIDGETS, GREEDY)]

        def over() -> bool:
            return len(articles(web, CONTROL)) == ARTICLES and len(rendered(web)) == len(WIDGETS) * PAGES + 2

        yield web, web.crawl(*calling, *called, settings=SETTINGS, until=over, seconds=90)


def articles(web: Arena, host: str, until: float = float("inf")) -> list[str]:
    """The articles that a site was asked for."""
    return [visit.path for visit in web.of(host) if visit.path.startswith("/article/") and visit.start <= until]


def calls(web: Arena, host: str) -> list[Visit]:
    """The calls of its interface, in order."""
    return [visit for visit in web.of(host) if visit.path.startswith("/api")]


def rows_of(web: Arena) -> list[dict[str, Any]]:
    """The request log."""
    return list(read_log(web.folder / "crawl" / "log"))


def rendered(web: Arena) -> list[str]:
    """The pages that were in the browser, and how that ended."""
    log = web.folder / "crawl" / "log"
    return [row["reason"] for row in rows_of(web) if row["rendered"]] if log.exists() else []


@pytest.mark.parametrize("name", CALLED)
def test_a_site_that_is_called_gets_its_own_crawl(crawled: tuple[Arena, Crawled], name: str) -> None:
    """Nine tenths of what the control has when that has all, though its interface refuses, is slow or hangs."""
    web, _ = crawled
    last = max(visit.start for visit in web.of(CONTROL))

    assert calls(web, name)
    share = len(articles(web, name, until=last)) / ARTICLES
    pays("pages that call an interface in the browser", "the site called", share, "of its pages", at_least=LEAST)


def test_a_domain_has_a_budget_in_the_browser_too(crawled: tuple[Arena, Crawled]) -> None:
    """What its pages load from another domain's host is charged as their links are."""
    web, _ = crawled
    reasons = Counter(row["reason"] for row in rows_of(web) if row["host"].startswith(OPEN) and row["hop"] == "E")

    asked = len(web.paths(OPEN))
    assert asked >= BUDGET
    assert reasons["stranger-budget"] == 2 * GREEDY_CALLS - asked
    # One of them had a content that was new, which earns ten more.
    pays("pages that want more and more of an interface", "the site called", asked, "requests", at_most=BUDGET + 10)


def test_pages_show_what_can_be_had(crawled: tuple[Arena, Crawled]) -> None:
    """All are rendered; a limited interface answers what it will, and what is not asked for then has its word."""
    web, crawl = crawled
    rows = [row for row in rows_of(web) if row["hop"] == "E" and row["host"].startswith(QUOTA)]

    assert set(rendered(web)) == {"rendered"}
    assert [row["status"] for row in rows if row["status"]][: QUOTA_CALLS + 1] == [200] * QUOTA_CALLS + [429]
    assert {row["reason"] for row in rows} <= {"fetched", "rate-limited", "stranger-door", "render-pace"}
    refused = next(row["url"] for row in rows if row["reason"] == "stranger-door")
    command = [sys.executable, "-m", "scrapy", "why", refused, "-s", f"CRAWL_DIR={crawl.folder}"]
    assert "stranger-door" in zygote.run(command).stdout


@pytest.mark.parametrize(("name", "free"), [("limited.test", 0), (QUOTA, QUOTA_CALLS)])
def test_an_interface_that_asks_to_wait_is_left_alone(crawled: tuple[Arena, Crawled], name: str, free: int) -> None:
    """Its Retry-After holds for all pages that call it, whichever site they belong to."""
    web, _ = crawled
    limited = calls(web, name)[free:]
    pauses = [after.start - before.end for before, after in pairwise(limited)]

    assert len(limited) >= 1
    assert min(pauses, default=RETRY_SECONDS) >= RETRY_SECONDS - SEEN_SECONDS
