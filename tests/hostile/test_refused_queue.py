"""Thousands of queued pages of a host refused at once, pages with forty thousand links: nobody waits for it."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.rocks.rocks_store import FrontierView
from tests.hostile.arena import SETTINGS, Arena, Asked, answer, arena, page
from tests.web.running import crawl_command, start
from tests.web.waiting import wait_until

ROWS = 12_000
_SITEMAPS, _ENTRIES = 12, 1_000
LINKS = 40_000
# What one piece of work may take of this thread (issue of the second look: 100 ms), some noise of a busy machine added.
MOST_WORK_SECONDS = 0.2


class Long:
    """A host that lists very many pages; ``then`` is called once some of them were asked for."""

    def __init__(self, web: Arena, name: str) -> None:
        self.name = name
        self.rules = b""
        self.asked = 0
        self.after = 3
        self.then: Callable[[], object] = lambda: None
        self.seed = web.site(name, self._answer)

    def close(self) -> None:
        """From now on nothing is allowed."""
        self.rules = b"User-agent: *\nDisallow: /\n"

    def _answer(self, asked: Asked) -> bytes:
        origin = self.seed.rstrip("/")
        if asked.path == "/robots.txt":
            named = "".join(f"Sitemap: {origin}/list/{number}.xml\n" for number in range(_SITEMAPS))
            return answer(self.rules or named, mime="text/plain")
        if asked.path.startswith("/list/"):
            first = int(asked.path[6:-4]) * _ENTRIES
            entries = "".join(
                f"<url><loc>{origin}/item/{number}</loc></url>" for number in range(first, first + _ENTRIES)
            )
            return answer(f"<urlset>{entries}</urlset>", mime="application/xml")
        self.asked += asked.path.startswith("/item/")
        if self.asked == self.after:
            self.then()
        return page(text="always the same words")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Arena]:
    """The arena."""
    with arena(tmp_path) as made:
        yield made


def stat(log: str, name: str) -> float:
    """A number that the crawl says at its end."""
    found = re.search(rf"'{re.escape(name)}': ([0-9.]+)", log)
    return float(found[1]) if found else 0.0


def reasons(crawl: Path, long: Long) -> set[str]:
    """Why some of a host's pages were refused."""
    with FrontierView(crawl / "frontier") as view:
        urls = [f"{long.seed}item/{number}" for number in range(ROWS // 2, ROWS, 500)]
        records = [view.page(parse(url).key) for url in urls]
        packed = view.host(parse(long.seed).host)
    assert packed is not None
    assert Host.unpack(long.name, packed).rows == 0
    return {record.reason if record else "" for record in records}


def test_queues_that_are_refused_as_a_whole_hold_nobody_up(web: Arena, tmp_path: Path) -> None:
    """One host is excluded, one turns its robots.txt to Disallow, one spends its budget: 36,000 rows in one crawl."""
    never = tmp_path / "never.txt"
    never.write_text("# nobody yet\n")
    excluded, disallowed, trapped = (Long(web, name) for name in ("excluded.test", "disallowed.test", "trapped.test"))
    excluded.then = lambda: never.write_text("excluded.test\n")
    disallowed.then = disallowed.close
    seeds = web.innocent(pages=90), excluded.seed, disallowed.seed, trapped.seed
    settings = {"NEVERCRAWL_FILE": str(never), "NEVERCRAWL_RELOAD_SECONDS": "0.2", "ROBOTS_TTL_SECONDS": "4"}

    crawled = web.crawl(*seeds, settings=settings)

    web.assert_undisturbed(least=90, during="36,000 rows refused at their turn")
    assert reasons(crawled.folder, excluded) == {"nevercrawl"}
    assert reasons(crawled.folder, disallowed) == {"robots"}
    assert reasons(crawled.folder, trapped) == {"trap"}
    for reason in ("nevercrawl", "robots", "trap"):
        assert ROWS - 1_000 < stat(crawled.log, f"refused/{reason}") <= ROWS + _SITEMAPS
    assert stat(crawled.log, "loop/longest_work_seconds") < MOST_WORK_SECONDS


def _listing(asked: Asked) -> bytes | None:
    if asked.path != "/":
        return None
    links = "".join(f"<a href=/x/{number}>x</a>" for number in range(LINKS))
    return answer(f"<!doctype html><title>all</title><body>{links}")


def waiting(crawl: Path, host: str) -> tuple[int, bool]:
    """Pages of a host that were queued, and whether its front page counts as fetched."""
    with FrontierView(crawl / "frontier") as view:
        packed = view.host(parse(host).host)
        known = Host.unpack("", packed).known if packed else 0
        return known, view.page(parse(host).key) is not None


def test_a_page_of_very_many_links_holds_nobody_up(web: Arena) -> None:
    """All forty thousand are queued, in slices, while the innocent host keeps its pace."""
    seeds = web.innocent(), web.site("links.test", _listing)

    crawled = web.crawl(*seeds, until=lambda: len(web.of("innocent.test")) >= 30)

    web.assert_undisturbed(least=30, during="a page of 40,000 links")
    assert waiting(crawled.folder, seeds[1]) == (LINKS + 1, True)
    assert stat(crawled.log, "loop/longest_work_seconds") < MOST_WORK_SECONDS


def test_a_page_whose_links_were_cut_off_by_a_kill_brings_them_all_at_the_next_start(web: Arena) -> None:
    """Killed as soon as the page was sent: it does not count as fetched before all its links do."""
    seed = web.site("links.test", _listing)
    listed = web.folder / "killed.seeds.txt"
    listed.write_text(seed + "\n")
    crawl, log = web.folder / "killed", web.folder / "killed.log"
    command = crawl_command(listed, crawl, web.folder / "hosts", SETTINGS)
    with log.open("wb") as output:
        process = start(command, output)
        wait_until(lambda: "/" in web.paths("links.test"), "sent", seconds=30, process=process, log=log)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    known, fetched = waiting(crawl, seed)
    assert not fetched
    assert known <= LINKS + 1

    web.crawl(seed, name="killed", until=lambda: len(web.of("links.test")) >= 5)

    assert waiting(crawl, seed) == (LINKS + 1, True)
    assert web.paths("links.test").count("/") == 2
