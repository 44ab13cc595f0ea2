"""Rendered pages that want forty files of a site that is none of theirs: it is asked no faster than by a crawl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from crawlerproject.stores.logs.request_log import read_log
from tests.commands.crawled import scrapy
from tests.hostile.arena import SETTINGS, Arena, Asked, Crawled, answer, arena, page
from tests.hostile.ledger import pays
from tests.web.profiles.apps import shell
from tests.web.running import one_pace

PACE_SECONDS = 0.8
WAIT_SECONDS = 3.0
WANTED = 40
PAGES = 3
# What a server sees of a pause may be shorter than what was kept: its last write returns after we have read it.
SEEN_SECONDS = 0.03


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Arena, Crawled]]:
    """One crawl for all tests here: three pages on two hosts of the attacker's, three victims."""
    with arena(tmp_path_factory.mktemp("third")) as web:

        def evil(asked: Asked) -> bytes | None:
            if asked.path == "/robots.txt":
                return None
            urls = [
                f"http://{victim}:{web.port}/{asked.path.strip('/')}{asked.host[:3]}-{number}.json"
                for number in range(WANTED // 3)
                for victim in ("victim.test", "idle.test", "closed.test")
            ]
            code = f"for (const url of {urls!r}) fetch(url, {{mode: 'no-cors'}}).catch(() => 0)"
            second = '<a href="/second">second</a>' if asked.host == "evil.test" else ""
            return answer(shell(f"<script>{code}</script>", body=second))

        def victim(asked: Asked) -> bytes | None:
            if asked.path.endswith(".json"):
                return answer("{}", mime="application/json")
            return page(*(f"/{number}" for number in range(12)), text=f"victim {asked.path} " * 60)

        def closed(asked: Asked) -> bytes | None:
            rules = "User-agent: *\nDisallow: /\n"
            return answer(rules, mime="text/plain") if asked.path == "/robots.txt" else answer("{}")

        seeds = [web.site("evil.test", evil), web.site("bad.test", evil), web.site("victim.test", victim)]
        web.site("closed.test", closed)
        web.site("idle.test", victim)
        pace = one_pace(PACE_SECONDS)
        settings = {**SETTINGS, **pace, "RENDER": "auto", "RENDER_WAIT_SECONDS": str(WAIT_SECONDS)}
        yield web, web.crawl(*seeds, web.innocent(pages=15), settings=settings)


def test_the_victim_keeps_its_pace_and_its_own_crawl(crawled: tuple[Arena, Crawled]) -> None:
    """Every two requests are a whole pause apart, robots.txt came first, and its own pages were not held up."""
    web, _ = crawled
    visits = web.of("victim.test", robots=True)
    own = [visit for visit in web.of("victim.test") if not visit.path.endswith(".json")]

    assert visits[0].path == "/robots.txt"
    pauses = [after.start - before.end for before, after in pairwise(visits)]
    least = PACE_SECONDS - SEEN_SECONDS
    pays("scripts that want files of a third site", "the third site", min(pauses), "s between requests", at_least=least)
    assert len(own) == 13
    # What pages elsewhere want came behind all of it.
    assert all(visit.start > own[-1].start for visit in web.of("victim.test") if visit not in own)
    waited, most = max(after.start - before.end for before, after in pairwise(own)), PACE_SECONDS + 1.5
    pays("scripts that want files of a third site", "the third site", waited, "s of waiting", at_most=most)
    web.assert_undisturbed(pace_seconds=PACE_SECONDS, least=15)


def test_what_could_not_be_had_in_time_is_refused_by_its_word(crawled: tuple[Arena, Crawled]) -> None:
    """A few files a page were fetched; each other one is in the log, in the statistics, and answers `scrapy why`."""
    web, crawl = crawled
    rows = list(read_log(crawl.folder / "log"))
    reasons = Counter(row["reason"] for row in rows if row["host"].startswith("idle") and row["hop"] == "E")
    files = [visit for visit in web.of("idle.test") if visit.path.endswith(".json")]

    assert sum(row["rendered"] and row["reason"] == "rendered" for row in rows) == PAGES
    assert 0 < len(files) <= PAGES * (WAIT_SECONDS / PACE_SECONDS + 1)
    assert reasons["fetched"] == len(files)
    assert reasons["render-pace"] >= PAGES * (WANTED // 3) - len(files) - PAGES
    assert "'refused/render-pace': " in crawl.log
    refused = next(row["url"] for row in rows if row["reason"] == "render-pace" and "idle" in row["host"])
    told = scrapy("why", refused, "-s", f"CRAWL_DIR={crawl.folder}")
    assert "refused (render-pace)" in told.stdout, told.stdout + told.stderr
    fetched = scrapy("why", web.url("idle.test", files[0].path), "-s", f"CRAWL_DIR={crawl.folder}")
    assert f"for: {web.url('evil.test')}" in fetched.stdout or f"for: {web.url('bad.test')}" in fetched.stdout


def test_a_site_that_forbids_all_is_asked_for_its_robots_txt_alone(crawled: tuple[Arena, Crawled]) -> None:
    """Once, at its pace, whatever pages elsewhere want of it."""
    web, _ = crawled

    assert [visit.path for visit in web.of("closed.test", robots=True)] == ["/robots.txt"]


def test_the_audit_finds_nothing(crawled: tuple[Arena, Crawled]) -> None:
    """And the guard had nothing to refuse."""
    _, crawl = crawled
    done = scrapy("audit", str(crawl.folder))

    assert done.returncode == 0, done.stdout[-2000:]
    assert "0 violations" in done.stdout
    assert "pace/guard_refused" not in crawl.log
