"""A crawl ends when it has had as much as its operator wants, and never asks for a page too many."""

from __future__ import annotations

import pytest

from crawlerproject.crawl.limits import CrawlLimits, refuse_sums
from crawlerproject.crawl.progress.totals import TotalsBook
from crawlerproject.crawl.run import Run
from crawlerproject.errors import OperatorError
from crawlerproject.rules.limits import Limits
from crawlerproject.stores.memory import MemoryStore
from crawlerproject.stores.protocols import Changes
from tests.crawl.sessions import run_of


def limits(
    run: Run, *, pages: int = 0, seconds: float = 0.0, most: int = 0, store: MemoryStore | None = None
) -> CrawlLimits:
    """Of a crawl that may have 5 requests in flight."""
    totals = TotalsBook(store or MemoryStore(), run.tallies, 0.0)
    return CrawlLimits(Limits(pages, seconds, most), totals, run, 5)


@pytest.fixture
def run() -> Run:
    """A new one."""
    return run_of()


def test_without_a_limit_only_the_most_in_flight_counts(run: Run) -> None:
    """FRONTIER_MAX_IN_FLIGHT."""
    run.tallies.pages = 10**9

    assert limits(run).reached() == ""
    assert [limits(run).room(under_way) for under_way in (0, 4, 5)] == [True, True, False]


def test_the_number_of_pages_is_never_exceeded(run: Run) -> None:
    """What is under way counts as if it had come."""
    limited = limits(run, pages=10)
    run.tallies.pages = 7

    assert [limited.room(under_way) for under_way in (2, 3)] == [True, False]
    run.tallies.pages = 10
    assert limited.reached() == "max_pages=10"


def test_pages_and_bytes_count_over_all_starts(run: Run) -> None:
    """As committed; a second start does not begin at nothing."""
    store = MemoryStore()
    before = run_of()
    book = TotalsBook(store, before.tallies, 0.0)
    before.tallies.pages, before.tallies.bytes = 6, 1000
    store.apply(Changes(facts=book.facts()))
    assert limits(run, pages=6, store=store).reached() == "max_pages=6"
    assert limits(run, most=1000, store=store).reached() == "max_bytes=1000"
    assert not limits(run, most=1000, store=store).room(0)
    assert limits(run, pages=7, store=store).room(0)


def test_time_counts_from_this_start(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl that is continued has its time again."""
    monkeypatch.setattr(Run, "running_seconds", 60.0)

    assert limits(run, seconds=60).reached() == "max_time=60"
    assert limits(run, seconds=61).reached() == ""


def test_several_workers_cannot_hold_sums() -> None:
    """None of them knows what all have fetched; each knows the time."""
    for given in (Limits(1, 0.0, 0), Limits(0, 0.0, 1)):
        with pytest.raises(OperatorError):
            refuse_sums(given)
    refuse_sums(Limits(0, 60.0, 0))
