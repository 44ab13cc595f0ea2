"""Pages with very many links: taken in by slices, each page's end after its last link, whatever comes between."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from crawlerproject.crawl.intake import LongPages
from crawlerproject.frontier.passage import DiscoveredUrl, Lease
from crawlerproject.items import LeaseResult
from crawlerproject.reading.page_reader import Unmarked
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.url.urls import parse


class Taker:
    """The intake and the pipeline in one: notes what it is given, in order."""

    def __init__(self) -> None:
        self.said: list[tuple[str, Any]] = []
        self.paused = ""
        self.errors = 0
        self.pause_at = self.fail_at = -1
        self.added = 0
        self.seconds_a_link = 0.0
        self.by_host: dict[str, Any] = {}  # what is in flight

    def add(self, found: list[DiscoveredUrl]) -> int:
        """A slice of links, all of them new."""
        self.added += len(found)
        self.said.append(("add", [item.address.url for item in found]))
        until = time.monotonic() + len(found) * self.seconds_a_link
        while time.monotonic() < until:
            pass
        if 0 <= self.fail_at < self.added:
            raise RuntimeError("a fault of ours")
        if 0 <= self.pause_at < self.added:
            self.paused = "no room"
        return len(found)

    def announced(self, pages: list[Any]) -> None:
        """A slice of known pages that changed."""
        self.said.append(("announced", len(pages)))

    def finish(self, result: LeaseResult) -> None:
        """All is taken in."""
        self.said.append(("end", result.lease.row.url))

    def requeue(self, lease: Lease) -> None:
        """The page is tried again."""
        self.said.append(("requeue", lease.row.url))

    def count_error(self) -> None:
        """A fault of ours."""
        self.errors += 1

    def over(self, lease: Lease) -> None:
        """The page is under way no more."""

    def wake(self) -> None:
        """There may be work."""

    def words(self) -> list[str]:
        """What was done, in order."""
        return [word for word, _ in self.said]


def long_page(name: str, links: int, changed: int = 0) -> LeaseResult:
    """A page that names so many URLs."""
    lease: Any = SimpleNamespace(row=SimpleNamespace(url=name))
    found = [DiscoveredUrl(parse(f"http://{name}.test/{number}"), 1, "L", "", 10) for number in range(links)]
    known = [(item.address, 1.0) for item in found[:changed]]
    return LeaseResult(lease.row, Reason.FETCHED, lease=lease, wire=Wire(), found=found, changed=known)


def long_pages(taker: Taker) -> LongPages:
    """The line, between intake and pipeline of the test."""
    return LongPages(taker, taker, Unmarked(), taker, taker.count_error)  # type: ignore[arg-type]


async def _until_empty(pages: LongPages) -> int:
    """Let the loop turn until all have ended; how many turns that took."""
    issuer = 0
    while len(pages):
        await asyncio.sleep(0.001)
        issuer += 1
        assert issuer < 10_000
    return issuer


def test_every_link_is_taken_in_once_and_the_end_comes_last() -> None:
    """What changed first, then the links in their order, then the end."""
    taker, page = Taker(), long_page("a", 1_234, changed=250)

    async def run() -> None:
        pages = long_pages(taker)
        pages.begin(page)
        assert taker.said == []  # not in this turn of the loop
        await _until_empty(pages)

    asyncio.run(run())

    assert list(dict.fromkeys(taker.words())) == ["announced", "add", "end"]
    assert sum(pages for word, pages in taker.said if word == "announced") == 250
    assert taker.words() == sorted(taker.words(), key=["announced", "add", "end"].index)
    assert [url for word, urls in taker.said if word == "add" for url in urls] == [
        found.address.url for found in page.found
    ]
    assert page.new_links == 1_234


def test_a_shorter_page_does_not_wait_for_a_longer_one() -> None:
    """They take turns."""
    taker = Taker()

    async def run() -> None:
        pages = long_pages(taker)
        pages.begin(long_page("long", 5_000))
        pages.begin(long_page("short", 300))
        await _until_empty(pages)

    asyncio.run(run())

    ends = [url for word, url in taker.said if word == "end"]
    assert ends == ["short", "long"]


def test_links_that_take_long_are_taken_in_a_few_at_a_time() -> None:
    """So that a slice is short whatever a link costs."""
    taker = Taker()
    taker.seconds_a_link = 0.001

    async def run() -> None:
        pages = long_pages(taker)
        pages.begin(long_page("slow", 60))
        await _until_empty(pages)

    asyncio.run(run())

    assert [len(urls) for word, urls in taker.said if word == "add"] == [25, 10, 10, 10, 5]


@pytest.mark.parametrize("others", [0, 1])
def test_others_that_are_in_flight_have_the_loop_for_several_turns(others: int) -> None:
    """A request takes some turns of the loop; none of them is to wait for another slice."""
    taker, turns = Taker(), 0
    taker.seconds_a_link = 0.000_1
    taker.by_host = {"long.test": None, **{f"{number}.test": None for number in range(others)}}
    added, slices_at = -1, []

    async def run() -> None:
        nonlocal turns, added
        pages = long_pages(taker)
        pages.begin(long_page("long", 2_000))
        while len(pages):
            if taker.added > added:
                added = taker.added
                slices_at.append(turns)
            turns += 1
            await asyncio.sleep(0)

    asyncio.run(run())

    most = max(after - before for before, after in pairwise(slices_at))
    assert most >= 10 if others else most <= 3


def test_a_pause_stops_between_two_slices_and_the_rest_follows() -> None:
    """Without room nothing ends; pages whose links wait for room end after the pause."""
    taker = Taker()
    taker.pause_at = 299

    async def run() -> None:
        pages = long_pages(taker)
        pages.begin(long_page("a", 1_000))
        while not taker.paused:
            await asyncio.sleep(0)
        pages.hold(long_page("held", 10))
        before = taker.words()
        await asyncio.sleep(0.01)
        assert taker.words() == before
        taker.paused, taker.pause_at = "", -1
        pages.go_on()
        await _until_empty(pages)

    asyncio.run(run())

    assert taker.added == 1_000
    assert {url for word, url in taker.said if word == "end"} == {"a", "held"}


def test_a_fault_of_ours_puts_the_page_back_and_counts() -> None:
    """The other pages go on."""
    taker = Taker()
    taker.fail_at = 500

    async def run() -> None:
        pages = long_pages(taker)
        pages.begin(long_page("a", 1_000))
        while taker.errors == 0:
            await asyncio.sleep(0)
        taker.fail_at = -1
        pages.begin(long_page("b", 300))
        await _until_empty(pages)

    asyncio.run(run())

    assert taker.errors == 1
    assert [each for each in taker.said if each[0] in ("requeue", "end")] == [("requeue", "a"), ("end", "b")]


@pytest.mark.parametrize("paused", ["", "no room"])
def test_at_the_close_pages_end_or_go_back(paused: str) -> None:
    """With room all are ended before the last commit; without, their rows stay queued."""
    taker = Taker()

    async def run() -> None:
        pages = long_pages(taker)
        pages.begin(long_page("a", 5_000))
        taker.paused = paused
        await pages.finish()
        assert len(pages) == 0

    asyncio.run(run())

    assert taker.said[-1] == ("requeue" if paused else "end", "a")
    assert taker.added == (0 if paused else 5_000)
