"""Every page, from the dedup to the end of its lease, whatever goes wrong on the way."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy.exceptions import DropItem

from crawlerproject.crawl.dispatch import InFlight
from crawlerproject.crawl.intake import MOST_AT_ONCE, Intake, LongPages
from crawlerproject.errors import StorageError
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.pipelines.warc import PageProcessor
from crawlerproject.rules.archive import warc_records
from crawlerproject.rules.url.urls import parse
from crawlerproject.runtime.services import services_of
from crawlerproject.stores import atomic_files
from crawlerproject.stores.archive import archive
from crawlerproject.stores.poison import Poison
from crawlerproject.stores.protocols import QueuedPage
from tests.crawl.sessions import HOST, Bench, page_of


class Line(Bench):
    """A session and its pipelines."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.add(f"{HOST}/one", f"{HOST}/two")
        self.errors = self.woken = 0
        self.in_flight = InFlight()
        self.intake = Intake(self.session, self.run, self._wake)
        self.long = LongPages(self.session.pages, self.intake, self.poison, self.in_flight, self._count)
        self.crawler: Any = self.spider.crawler
        self.crawler.crawling, self.crawler.stats = True, cast("Any", self.stats)
        services_of(self.crawler).provide(
            self.session.models.duplicates, self.poison, self.in_flight, self.intake, self.long
        )
        self.processor = PageProcessor(crawler=self.crawler)

    def _wake(self) -> None:
        self.woken += 1

    def _count(self) -> None:
        self.errors += 1

    def complete(self, page: Any) -> None:
        """In a loop, until nothing is left to take in."""

        async def run() -> None:
            await self.processor.process_item_async(page)
            while len(self.long) and not self.run.paused:
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
        line.long.go_on()
        while len(line.long):
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
    monkeypatch.setattr(line.session.frontier, "changed", lambda pages, now: said.extend(pages))
    line.complete(page)
    assert said == page.changed

    def away(pages: Any, now: float) -> int:
        raise StorageError("away")

    monkeypatch.setattr(line.session.frontier, "changed", away)
    line.intake.announced(page.changed)
    assert line.run.paused == "away"


class Theirs:
    """A project's pipelines: of items, and of pages."""

    def __init__(self, *, for_pages: bool = False, fault: str = "") -> None:
        self.for_pages = for_pages
        self.fault = fault
        self.got: list[Any] = []

    def process_item(self, item: Any) -> Any:
        """Note it, and add a line to a page's metadata record."""
        self.got.append(item)
        if self.fault:
            raise DropItem(self.fault)
        if self.for_pages:
            item.notes.append(("topic", "rivers"))
        return item


def test_a_projects_pipelines_get_items_or_pages(line: Line) -> None:
    """Pages when they say so, else items; what they note stands in the metadata record."""
    items, pages = Theirs(), Theirs(for_pages=True)
    line.processor = PageProcessor(items, pages, crawler=line.crawler)
    page = page_of(line.page_lease(), line.now)
    line.complete(page)
    line.complete({"title": "an item"})
    line.commit()

    assert (items.got, pages.got) == ([{"title": "an item"}], [page])
    (path,) = line.folder.warc.glob("*.open")
    assert b"topic: rivers" in gzip.decompress(path.read_bytes())


def test_no_pipeline_of_a_project_keeps_a_page_from_its_end(line: Line) -> None:
    """It is archived whatever they raise, and that is no error of ours."""
    line.processor = PageProcessor(Theirs(for_pages=True, fault="not wanted"), crawler=line.crawler)
    page = page_of(line.page_lease(), line.now)
    line.complete(page)

    assert page.lease.ended
    assert line.stats["pages/fetched"] == 1
    assert line.errors == 0


def test_a_page_is_marked_while_it_is_compared_and_ends(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: what ends the process is known afterwards; a page that waits for its turn is not marked."""
    marked: list[str] = []
    reading = line.poison.reading

    def marking(row: QueuedPage) -> Poison:
        marked.append(row.url)
        return reading(row)

    page = page_of(line.page_lease(), line.now, text=b"words " * 200)
    monkeypatch.setattr(line.poison, "reading", marking)
    line.complete(page)

    assert marked == [page.lease.row.url]
    assert page.lease.ended
    assert (line.folder / "reading").read_bytes()[0] == 0


def test_nothing_is_marked_while_a_disk_is_waited_for(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed in such a wait, which may be long, was not killed by its page."""
    waited: list[tuple[str, Any]] = []
    write_at, apply, build = atomic_files.write_at, line.store.apply, warc_records.capture

    def noted(where: str, call: Any) -> Any:
        def calling(*given: Any, **named: Any) -> Any:
            waited.append((where, line.poison.left()))
            return call(*given, **named)

        return calling

    robots = line.lease()
    assert robots.row.kind.is_robots
    monkeypatch.setattr(archive, "write_at", noted("disk", write_at))
    monkeypatch.setattr(line.store, "apply", noted("store", apply))
    monkeypatch.setattr(archive, "capture", noted("bytes", build))
    line.complete(page_of(robots, line.now, body=b"User-agent: *\nCrawl-delay: 7\n"))

    read = (robots.row.key, robots.row.url)
    assert waited == [("disk", None), ("bytes", read), ("disk", None), ("store", None)]  # a file's beginning, its page
    assert line.frontier.state.hosts.of(robots.row.host).floor_seconds == 7.0
