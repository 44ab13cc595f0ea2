"""What is counted of answers and pauses."""

from __future__ import annotations

from itertools import accumulate

from crawlerproject.crawl.run import Classes, Tallies, TotalsBook
from crawlerproject.stores.protocols import Changes
from tests.stores.memory_store import MemoryStore


def test_a_value_is_in_the_first_class_that_holds_it() -> None:
    """Bounds belong to their class, as Prometheus' ``le`` says."""
    classes = Classes((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        classes.add(value)

    assert list(accumulate(classes.counts)) == [2, 3, 4]
    assert classes.as_dict() == {"bounds": [1.0, 2.0], "counts": [2, 1, 1], "sum": 12.0}


def test_statuses_and_times_are_counted() -> None:
    """An answer from the cache of a browser has no time to its first byte."""
    tallies = Tallies()
    for status, seconds in ((200, 0.2), (200, None), (404, 3.0)):
        tallies.answered(status, seconds)

    facts = tallies.as_dict()
    assert facts["statuses"] == {"200": 2, "404": 1}
    assert sum(facts["first_byte_seconds"]["counts"]) == 2


def test_a_pause_that_is_too_short_is_counted() -> None:
    """Rounding of a thousandth of a second is none; what is short takes nothing from the sum."""
    tallies = Tallies()
    for kept in (5.0, 4.9995, 4.5, 7.0):
        tallies.paused(kept, 5.0)

    facts = tallies.as_dict()
    assert facts["short_pauses"] == 1
    assert facts["pause_excess_seconds"]["sum"] == 2.0
    assert (facts["promised_pause_seconds"], facts["least_pause_margin_seconds"]) == (20.0, -0.5)


def test_commits_are_counted_with_their_time() -> None:
    """Those that failed apart: they took no time that means anything."""
    tallies = Tallies()
    assert tallies.as_dict()["least_pause_margin_seconds"] is None
    tallies.commits.add(0.02)
    tallies.commit_failed()

    facts = tallies.as_dict()
    assert (sum(facts["commit_seconds"]["counts"]), facts["commit_seconds"]["sum"]) == (1, 0.02)
    assert facts["commit_failures"] == 1


def commit(store: MemoryStore, book: TotalsBook) -> None:
    """One commit."""
    facts = book.facts()
    store.apply(Changes(facts=facts))
    book.stored(Changes(), facts)


def test_what_is_not_committed_yet_counts() -> None:
    """For those who watch; since when it counts is kept."""
    store, tallies = MemoryStore(), Tallies()
    book = TotalsBook(store, tallies, 100.0)
    tallies.pages, tallies.bytes, tallies.errors = 3, 900, 1

    assert book.now() == (3, 900, 1, 100.0)
    commit(store, book)
    assert TotalsBook(store, Tallies(), 500.0).now() == (3, 900, 1, 100.0)


def test_a_session_that_begins_anew_counts_from_the_last_commit() -> None:
    """Pages that were not committed are another worker's; the process's own count goes on."""
    store, tallies = MemoryStore(), Tallies()
    book = TotalsBook(store, tallies, 0.0)
    tallies.pages = 5
    commit(store, book)
    tallies.pages = 9
    anew = TotalsBook(store, tallies, 0.0)
    assert anew.now().pages == 5

    tallies.pages = 10
    assert anew.now().pages == 6


def test_what_has_not_changed_is_not_stored_again() -> None:
    """An idle crawl writes nothing."""
    store, tallies = MemoryStore(), Tallies()
    book = TotalsBook(store, tallies, 0.0)
    tallies.pages = 1
    commit(store, book)

    assert book.facts() == []
    tallies.errors = 1
    assert book.facts()
