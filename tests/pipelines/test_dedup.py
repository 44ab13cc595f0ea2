"""What a page repeats is found before it is archived."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from scrapy.utils.defer import ensure_awaitable

from crawlerproject.errors import StorageError
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.items import LeaseResult
from crawlerproject.pipelines.dedup import DedupPipeline
from crawlerproject.rules.url.urls import parse
from crawlerproject.runtime.services import Services
from crawlerproject.stores.poison import Poison
from crawlerproject.stores.protocols import Fingerprint, NearText
from tests.crawl.sessions import HOST, Bench, page_of

TEXT = " ".join(f"word{number % 97} and {number % 31}" for number in range(400)).encode()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session with three pages queued."""
    bench = Bench(tmp_path)
    bench.add(*(f"{HOST}/{number}" for number in range(3)))
    return bench


def compared(bench: Bench, page: LeaseResult) -> LeaseResult:
    """The page after its dedup."""
    services = Services()
    services.provide(bench.session.models.duplicates, Poison(bench.folder, bench.now))
    dedup = DedupPipeline(services, bench.stats)

    async def process() -> None:
        await ensure_awaitable(dedup.process_item(page))

    asyncio.run(process())
    return page


def ended(bench: Bench, **more: Any) -> LeaseResult:
    """A page that was compared and has ended."""
    page = compared(bench, page_of(bench.page_lease(), bench.now, **more))
    bench.session.pages.finish(page)
    return page


def test_the_same_bytes(bench: Bench) -> None:
    """Exact, whatever the text says; noted in the record, counted."""
    first = ended(bench, body=b"<p>same", text=TEXT)
    second = ended(bench, body=b"<p>same", text=b"other")

    assert first.duplicate is None
    assert second.duplicate is not None
    assert (second.duplicate.kind, second.duplicate.url) == ("exact", first.lease.row.url)
    assert ("duplicate-of", first.lease.row.url) in second.notes
    assert bench.stats["duplicates/exact"] == 1


def test_a_canonical_that_was_never_fetched_says_nothing(bench: Bench) -> None:
    """As of a mirror, all of whose pages name their originals elsewhere: their texts are compared as any."""
    elsewhere = parse("http://original.test/1")
    pages = [
        ended(bench, body=b"1", text=TEXT, canonical=elsewhere),
        ended(bench, body=b"2", text=TEXT[::-1], canonical=elsewhere),
        ended(bench, body=b"3", text=TEXT + b" one more", canonical=elsewhere),
    ]

    assert [page.duplicate for page in pages[:2]] == [None, None]
    found = pages[2].duplicate
    assert found is not None
    assert (found.kind, found.url) == ("near", pages[0].lease.row.url)


def test_a_canonical_counts_where_it_was_fetched_and_says_nearly_the_same(bench: Bench) -> None:
    """Of two pages that name it the one with its text; the other is new, and so is one that names itself."""
    bench.add(f"{HOST}/3")
    first = ended(bench, body=b"1", text=TEXT, canonical=parse(f"{HOST}/0"))
    named = parse(first.lease.row.url)
    same = ended(bench, body=b"2", text=TEXT + b" one more", canonical=named)
    other = ended(bench, body=b"3", text=TEXT[::-1], canonical=named)
    short = ended(bench, body=b"4", text=b"too short to be compared", canonical=named)

    assert [page.duplicate for page in (first, other, short)] == [None, None, None]
    found = same.duplicate
    assert found is not None
    assert (found.kind, found.url) == ("canonical", named.url)
    assert ("simhash-distance", str(found.bits)) in same.notes
    assert bench.stats["duplicates/canonical"] == 1


def test_nearly_the_same_text(bench: Bench) -> None:
    """By SimHash, with the distance in the record."""
    first = ended(bench, body=b"1", text=TEXT)
    second = ended(bench, body=b"2", text=TEXT + b" one more")

    assert second.duplicate is not None
    assert (second.duplicate.kind, second.duplicate.url) == ("near", first.lease.row.url)
    assert ("simhash-distance", str(second.duplicate.bits)) in second.notes


class Others:
    """What other workers archived."""

    def __init__(self) -> None:
        self.asked: list[Fingerprint] = []
        self.added: list[str] = []

    async def near(self, made: Fingerprint) -> NearText | None:
        """All of it repeats one page."""
        self.asked.append(made)
        await asyncio.sleep(0)
        return NearText(2, b"1" * 24, "http://b.test/")

    def add(self, made: Fingerprint, url: str) -> None:
        """Remember it."""
        self.added.append(url)

    def facts(self) -> list[tuple[str, bytes]]:
        """Nothing waits."""
        return []

    def stored(self, facts: list[tuple[str, bytes]]) -> None:
        """Nothing waited."""


def test_nearly_the_text_of_another_workers_page(bench: Bench) -> None:
    """Asked about what repeats nothing here; what repeats nothing anywhere is made known to the others."""
    others = Others()
    first = ended(bench, body=b"1", text=TEXT)
    bench.session.models.duplicates.others = others
    here = ended(bench, body=b"2", text=TEXT + b" one more")
    there = ended(bench, body=b"3", text=TEXT[::-1])

    assert here.duplicate is not None
    assert here.duplicate.url == first.lease.row.url
    assert there.duplicate == Duplicate("near", "http://b.test/", 2)
    assert ("duplicate-of", "http://b.test/") in there.notes
    assert [made.key for made in others.asked] == [there.lease.row.page_key]
    assert others.added == []


def test_links_of_a_repetition_wait_behind_others(bench: Bench) -> None:
    """All of them, in their order."""
    found = [DiscoveredUrl(parse(f"{HOST}/{number}"), 1, "L", HOST, 10) for number in range(12_000)]
    ended(bench, body=b"same", text=TEXT)
    page = ended(bench, body=b"same", text=TEXT, found=list(found))

    assert [link.address.url for link in page.found] == [link.address.url for link in found]
    assert all(link.priority > 10 for link in page.found)


def test_what_is_no_html_page_is_not_compared(bench: Bench) -> None:
    """Its bytes are archived once all the same."""
    page = compared(bench, page_of(bench.page_lease(), bench.now))

    assert page.duplicate is None
    assert page.digest == b""


def test_a_store_that_cannot_compare_stops_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is archived like any other."""

    def gone(*given: object) -> None:
        raise StorageError("away")

    monkeypatch.setattr(bench.store, "near", gone)
    assert compared(bench, page_of(bench.page_lease(), bench.now, text=TEXT)).duplicate is None
