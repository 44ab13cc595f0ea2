"""Which known pages are chosen: the table's refusals, the budget, and what is worth most."""

from collections.abc import Iterator
from typing import Any

import pytest

from crawlerproject.frontier.learned import revisits
from crawlerproject.frontier.learned.revisits import (
    SORTED_AT_A_TIME,
    DueRevisit,
    RevisitPolicy,
    again,
    chosen_since,
    due,
)
from crawlerproject.rules.revisits.history import DAY_SECONDS, FEED, REQUISITE, History, HostHistory
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_RECRAWL, FLAG_REQUISITE, REQUISITE_PLACES, priority
from crawlerproject.stores.protocols import PageRecord
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

NOW = 1_800_000_000.0
RECENT = 2 * DAY_SECONDS


def page(name: str, days: float, status: int = 200, **more: Any) -> tuple[bytes, PageRecord]:
    """A page last seen some days ago."""
    seen = NOW - days * DAY_SECONDS
    history = History(visits=1, seen_at=seen)._replace(**more)
    record = PageRecord(f"http://a.test/{name}", "fetched", status, seen, b"d" * 20, history=history.pack())
    return name.encode(), record


def names(pages: list[tuple[bytes, PageRecord]], budget: int | None = None) -> list[str]:
    """The chosen ones, the best first."""
    lists = due(lambda: pages, lambda host: HostHistory(), NOW, RevisitPolicy(budget, RECENT))
    return [one.key.decode() for chosen in lists for one in chosen]


def test_pages_that_need_no_request_are_left_out() -> None:
    """Fresh, recent, waiting in a queue, refused for good; an announced one comes though it is recent."""
    pages = [
        page("due", 5),
        page("recent", 1),
        page("fresh", 5, fresh_until=NOW + 1),
        page("queued", 5, queued_at=NOW - 1),
        page("refused", 5, visits=0, seen_at=0.0),
        page("unseen", 5, visits=0, fresh_until=NOW - 1),
        page("waits", 5, visits=0, fresh_until=NOW + 1),
        page("announced", 1, announced=1.0),
        page("feed", 1, kind=FEED),
    ]

    assert set(names(pages)) == {"due", "announced", "feed", "unseen"}


@pytest.mark.parametrize(
    ("history", "fetched_at", "chosen"),
    [
        (History(visits=1, seen_at=NOW + 1), NOW + 1, False),  # found and visited since
        (History(seen_at=NOW + 1), NOW + 1, False),  # found since, and it showed no page
        (History(), NOW + 1, False),  # found since, and refused for good
        (History(visits=1, seen_at=NOW - 9), NOW - 9, False),
        (History(seen_at=NOW - 9), NOW - 9, False),
        (History(visits=1, seen_at=NOW - 9, queued_at=NOW), NOW - 9, True),
        (History(seen_at=NOW - 9, queued_at=NOW), NOW - 9, True),
        (History(visits=2, seen_at=NOW + 1), NOW + 1, True),
        (History(visits=1, seen_at=NOW - 9), NOW + 1, True),  # visited, without a page this time
        (History(seen_at=NOW - 9), NOW + 1, True),  # again without a page
    ],
)
def test_what_was_chosen_in_this_round_is_known_by_its_record(
    history: History, fetched_at: float, chosen: bool
) -> None:
    """It waits in its queue, or has been asked for since; what is new in this round was not chosen."""
    record = PageRecord("http://a.test/", "fetched", 200, fetched_at)

    assert chosen_since(record, history, NOW) is chosen


def test_a_url_without_a_page_comes_behind_pages_of_its_place() -> None:
    """It waits since it was asked for last, however long ago it was found."""
    pages = [
        page("gone", 5, 404, visits=0, seen_at=NOW - 300 * DAY_SECONDS),
        page("here", 5),
        page("refused", 5, 0, visits=0, seen_at=NOW - 300 * DAY_SECONDS),
    ]

    assert names(pages)[0] == "here"


@pytest.mark.parametrize("budget", [None, 10**9])
def test_all_due_pages_are_never_in_memory_together(monkeypatch: pytest.MonkeyPatch, budget: int | None) -> None:
    """A list is handed out before more is read than it needs; each page is in one of them."""
    monkeypatch.setattr(revisits, "SORTED_OF_A_BUDGET", SORTED_AT_A_TIME)
    count, read = 3 * SORTED_AT_A_TIME + 1, 0

    def pages() -> Iterator[tuple[bytes, PageRecord]]:
        nonlocal read
        for read in range(1, count + 1):
            yield page(str(read), 5 + read % 7)

    found: list[str] = []
    for chosen in due(pages, lambda host: HostHistory(), NOW, RevisitPolicy(budget, RECENT)):
        assert chosen == sorted(chosen, reverse=True)
        found += [one.key.decode() for one in chosen]
        assert len(chosen) <= SORTED_AT_A_TIME
        assert read - len(found) < SORTED_AT_A_TIME

    assert sorted(found, key=int) == [str(number) for number in range(1, count + 1)]


def test_a_budget_takes_the_best() -> None:
    """Announced before all, then the longer unseen, the less deep, those that bring new links."""
    pages = [
        page("plain", 5),
        page("older", 20),
        page("deep", 5, depth=9),
        page("hub", 5, new_links=20.0),
        page("announced", 5, announced=1.0),
        page("gone", 20, status=404),
    ]
    order = names(pages)

    assert order[0] == "announced"
    assert order.index("plain") < order.index("deep")
    assert order.index("hub") < order.index("plain")
    assert order.index("older") < order.index("plain")
    assert order.index("gone") > order.index("older")
    for budget in range(len(pages) + 2):
        assert names(pages, budget) == order[:budget]


def test_nothing_is_left_for_ever() -> None:
    """A deep page that waited five times its tier is chosen before a front page that is due."""
    assert names([page("front", 3), page("deep", 150, depth=9)], budget=1) == ["deep"]


def test_a_rank_says_what_of_a_hosts_queue_comes_first() -> None:
    """New links go into the queue by their rank; one that is in no rank by its depth alone."""
    shares = {"http://a.test/best": 0.995, "http://a.test/good": 0.95, "http://a.test/plain": 0.3}
    bench = Bench(MemoryStore(), less_important=shares.get)
    names = ["plain", "unknown", "good", "best"]

    bench.add(*[f"http://a.test/{name}" for name in names], depth=4, priority=priority(4, "L"))

    rows = bench.store.head("a.test", 10)
    assert [row.url.rpartition("/")[2] for row in rows] == ["best", "good", "plain", "unknown"]


def test_a_requisite_waits_as_what_it_was() -> None:
    """In the place of requisites, charged to the stranger who named it; never where none are wanted any more."""
    history = History(REQUISITE, depth=2, visits=1, seen_at=NOW - 5 * DAY_SECONDS, origin="b.example")
    record = page("sheet.css", 5)[1]._replace(history=history.pack())
    found, kept = again(DueRevisit(1.0, b"", record, history), NOW)

    assert found.flags == FLAG_RECRAWL | FLAG_REQUISITE | FLAG_EXTERNAL
    assert (found.hops, found.note, found.depth, found.priority) == ("EE", "b.example", 0, REQUISITE_PLACES[1])
    assert History.unpack(kept.history).queued_at == NOW
    assert Bench(MemoryStore()).frontier.admission.again([(found, kept)], NOW) == 0
