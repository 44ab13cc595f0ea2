"""Every lease's Page, from the dedup to the end of the lease, whatever goes wrong on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request

from crawlerproject.crawl.completion.long_pages import MOST_AT_ONCE
from crawlerproject.crawl.completion.pipeline import PagePipeline
from crawlerproject.crawl.dispatch import UnderWay
from crawlerproject.crawl.intake import Intake
from crawlerproject.errors import StorageError
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.pipelines.dedup import DedupPipeline
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.poison import Poison
from tests.crawl.sessions import HOST, Bench, page_of


class Line(Bench):
    """A session and its pipeline."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.add(f"{HOST}/one", f"{HOST}/two")
        self.errors = self.woken = 0
        self.poison = Poison(self.folder, self.now)
        self.under_way = UnderWay()
        self.intake = Intake(self.session, self.run, self._wake)
        dedup = DedupPipeline(self.session.models.duplicates, self.poison, self.stats)
        self.pipeline = PagePipeline(dedup, self.intake, self.session.pages, self.poison, self.under_way, self._count)

    def _wake(self) -> None:
        self.woken += 1

    def _count(self) -> None:
        self.errors += 1

    def complete(self, page: Any) -> None:
        """In a loop, until nothing is left to take in."""

        async def run() -> None:
            await self.pipeline.complete(page)
            while len(self.pipeline.long) and not self.run.paused:
                await asyncio.sleep(0.001)

        asyncio.run(run())


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """With two pages queued."""
    return Line(tmp_path)


def links(count: int, start: int = 0) -> list[DiscoveredUrl]:
    """So many links of one page."""
    return [DiscoveredUrl(parse(f"{HOST}/p{start + number}"), 1, "L", HOST, 10) for number in range(count)]


def test_a_pages_links_are_queued_before_it_ends(line: Line) -> None:
    """How many were new is known when it is logged."""
    page = page_of(line.page_lease(), line.now, found=links(5))
    line.complete(page)

    assert page.lease.ended
    assert page.new_links == 5
    assert line.frontier.hosts.waiting_urls == 6


def test_very_many_links_are_taken_in_slices(line: Line) -> None:
    """The page ends after the last of them."""
    page = page_of(line.page_lease(), line.now, found=links(MOST_AT_ONCE + 1))
    line.complete(page)

    assert page.lease.ended
    assert page.new_links == len(page.found)
    assert line.woken > 0


def test_without_room_for_links_the_page_waits(line: Line) -> None:
    """The crawl pauses; when that is over the links are queued and the page ends."""
    page = page_of(line.page_lease(), line.now, found=links(3))
    line.store.full = "no room"
    line.complete(page)
    assert line.run.paused == "no room"
    assert not page.lease.ended

    line.store.full = ""
    line.run.go_on()
    line.session.write_again(line.now)

    async def go_on() -> None:
        line.pipeline.long.go_on()
        while len(line.pipeline.long):
            await asyncio.sleep(0.001)

    asyncio.run(go_on())
    assert page.lease.ended


def test_a_fault_of_ours_leaves_the_page_queued(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted, and the page tried again."""

    def broken(page: Any) -> None:
        raise RuntimeError("a fault")

    page = page_of(line.page_lease(), line.now)
    with monkeypatch.context() as faulty:
        faulty.setattr(line.session.pages, "finish", broken)
        line.complete(page)
    line.complete(page_of(line.page_lease(), line.now))

    assert line.errors == 1
    assert page.lease.ended
    assert line.stats["pages/fetched"] == 1


def test_a_suspect_that_was_read_is_acquitted(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ended the last process, it was not this page."""
    acquitted: list[bytes] = []
    lease = line.page_lease()
    line.poison.suspects[lease.row.key] = SimpleNamespace(poison=False)  # type: ignore[assignment]
    monkeypatch.setattr(line.poison, "acquit", acquitted.append)
    line.complete(page_of(lease, line.now))

    assert acquitted == [lease.row.key]


def test_a_request_that_was_replaced_ends_as_its_own_reason(line: Line) -> None:
    """A middleware of the project sent another request in its place; one that the engine still has goes on."""
    lease, request = line.page_lease(), Request(f"{HOST}/one")
    line.under_way.sent(lease, request)
    asyncio.run(line.pipeline.complete_replaced({request}))
    assert not lease.ended

    asyncio.run(line.pipeline.complete_replaced(set()))
    assert lease.ended
    assert line.stats[f"pages/{Reason.MIDDLEWARE}"] == 1


def test_a_page_whose_lease_is_over_is_left_alone(line: Line) -> None:
    """A second Page of the same lease changes nothing."""
    page = page_of(line.page_lease(), line.now)
    line.complete(page)
    line.complete(page_of(page.lease, line.now))

    assert line.stats["pages/fetched"] == 1


def test_changed_pages_are_believed_where_the_store_takes_them(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list's word is taken; where the store cannot take it the crawl pauses, and the list says it again."""
    page = page_of(line.page_lease(), line.now, changed=[(parse(f"{HOST}/x"), line.now)])
    said: list[Any] = []
    monkeypatch.setattr(line.session.frontier.announcements, "changed", lambda pages, now: said.extend(pages))
    line.complete(page)
    assert said == page.changed

    def away(pages: Any, now: float) -> int:
        raise StorageError("away")

    monkeypatch.setattr(line.session.frontier.announcements, "changed", away)
    line.intake.announced(page.changed)
    assert line.run.paused == "away"
