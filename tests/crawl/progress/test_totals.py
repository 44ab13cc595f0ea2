"""How much the whole crawl has done, over all its starts."""

from __future__ import annotations

from crawlerproject.crawl.progress.tallies import Tallies
from crawlerproject.crawl.progress.totals import TotalsBook
from crawlerproject.stores.memory import MemoryStore
from crawlerproject.stores.protocols import Changes


def commit(store: MemoryStore, book: TotalsBook) -> None:
    """One commit."""
    facts = book.facts()
    store.apply(Changes(facts=facts))
    book.stored(facts)


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
