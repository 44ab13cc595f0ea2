"""What is stored when: a crash, a commit that fails, one that runs while pages end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.frontier.frontier_state import HostOwnership
from crawlerproject.stores.protocols import Box, Changes
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

A, B = "http://a.example/", "http://b.example/"


def test_a_crash_returns_the_lease(bench: Bench, again: Callable[..., Bench]) -> None:
    """What was leased but not committed is leased again, after the host's whole delay."""
    bench.add(A, A + "x")
    bench.through_robots()
    page = bench.next()
    assert page is not None
    bench.answer(page)  # no commit

    other = again(bench.store, now=bench.now + 1, clean=False)

    assert other.frontier.hosts.waiting_urls == 2
    assert other.next() is None
    other.now += 6
    leased = other.next()
    assert leased is not None
    assert leased.row.url == A


def test_a_rest_survives_a_crash(bench: Bench, again: Callable[..., Bench]) -> None:
    """Retry-After holds across a restart even when the crash came before the commit."""
    bench.add(A)
    bench.through_robots()
    page = bench.next()
    assert page is not None
    bench.answer(page, 429, retry_after_seconds=900.0)
    until = page.host.rest_until

    other = again(bench.store, now=bench.now + 1, clean=False)

    assert other.next() is None
    assert other.frontier.workbench.hosts["a.example"].next_free >= until


def test_robots_whose_record_was_not_committed_is_asked_for_again(bench: Bench, again: Callable[..., Bench]) -> None:
    """Its capture was cut from the archive, so its answer never was."""
    bench.add(A)
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, body=b"User-agent: *\nCrawl-delay: 30")

    other = again(bench.store, now=bench.now + 31, clean=False)
    other.now += 31
    first = other.next()

    assert first is not None
    assert first.row.kind.is_robots
    assert first.delay_seconds == 30  # yet the pause it asked for was kept


def test_counts_stay_true_over_a_failed_commit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room nothing changes; the same commit goes through later."""
    bench.add(A, A + "x")
    bench.through_robots()
    page = bench.next()
    assert page is not None
    bench.answer(page, 429, retry_after_seconds=1.0)
    good = bench.store.apply

    def full(changes: Changes) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(bench.store, "apply", full)
    with pytest.raises(StorageError):
        bench.commit()
    monkeypatch.setattr(bench.store, "apply", good)
    bench.commit()

    assert bench.frontier.hosts.waiting_urls == 2
    assert page.host.rows == 2
    assert page.host.taken == set()


def test_links_found_without_room_are_queued_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was discovered is lost to a full disk."""
    good = bench.store.apply

    def full(changes: Changes) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(bench.store, "apply", full)
    with pytest.raises(StorageError):
        bench.add(A)
    monkeypatch.setattr(bench.store, "apply", good)

    bench.frontier.admission.add_again(bench.now)

    assert bench.frontier.hosts.waiting_urls == 1
    assert bench.next() is not None


def test_a_page_that_ended_during_a_commit_is_not_taken_again(bench: Bench) -> None:
    """Its host has no more work and leaves the workbench before the next commit; a new link brings it back."""
    bench.seed("http://a.test/")
    bench.through_robots()
    lease = bench.next()
    assert lease is not None
    changes = bench.frontier.state.take_changes()  # a commit begins
    bench.answer(lease)  # while its archive bytes are written
    bench.frontier.state.apply(changes, [])
    bench.now += 60
    assert bench.next() is None  # the host's clock is free: it is forgotten
    bench.add("http://a.test/next")

    again = bench.next()

    assert again is not None
    assert again.row.url == "http://a.test/next"


def test_a_queue_that_cannot_be_read_is_asked_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is away for a moment: its host is not lost, it has its turn later."""
    bench.add(A)
    bench.through_robots()

    def away(*_: object) -> None:
        raise StorageError("away")

    with monkeypatch.context() as patched:
        patched.setattr(bench.store, "head", away)
        with pytest.raises(StorageError):
            bench.next()
    assert bench.next() is None
    bench.now += 5.0
    leased = bench.next()

    assert leased is not None
    assert leased.row.url == A


def test_a_clock_set_back_between_two_runs_loses_no_row(bench: Bench, again: Callable[..., Bench]) -> None:
    """Rows are ordered by when they came; two at the same moment by their clocks are still two."""
    urls = [f"{A}{number}" for number in range(20)]
    bench.add(*urls)

    other = again(bench.store, now=bench.now - 10e-6)
    later = [f"{A}later/{number}" for number in range(20)]
    other.add(*later)

    rows = other.store.head("a.example", 100)
    assert [row.url for row in rows] == urls + later
    assert other.frontier.hosts.waiting_urls == 40


def test_a_row_put_back_by_a_run_whose_clock_was_set_back_displaces_none(
    bench: Bench, again: Callable[..., Bench]
) -> None:
    """A page that failed goes behind those that an earlier run queued."""
    urls = [f"{A}{number}" for number in range(20)]
    bench.add(*urls)
    bench.through_robots()
    bench.commit()

    other = again(bench.store, now=bench.now)
    other.now += 10.0
    page = other.next()
    assert page is not None
    other.now = page.row.arrival / 1e6 - 1.0
    other.answer(page, None)
    other.commit()

    assert [row.url for row in other.store.head("a.example", 100)] == [*urls[1:], urls[0]]


class Writing(HostOwnership):
    """Has a message for another worker."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[int, bytes]] = []

    def add_messages(self, changes: Changes) -> None:
        """All that was written since."""
        changes.messages.extend(self.written)
        self.written.clear()


def test_messages_outlast_a_failed_commit_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that come meanwhile go behind them; what was read and what is delivered waits for the same commit."""
    owner = Writing()
    bench, box = Bench(MemoryStore(), ownership=owner), Box(5, b"another outbox..")
    store, state = bench.store, bench.frontier.state
    own = Box(1, store.messages.outbox)
    store.apply(Changes(messages=[(1, b"first")]))

    owner.written.append((1, b"a"))
    state.changes.read.append((box, 7))
    state.changes.delivered.append((own, 1))
    with monkeypatch.context() as patch:
        patch.setattr(store, "apply", _full)
        with pytest.raises(StorageError):
            bench.commit()
    owner.written.append((1, b"b"))
    assert (store.messages.applied.last, store.messages.read_up_to(box)) == (1, 0)
    bench.commit()

    assert store.messages.of(own, 0, 99, 99) == [(2, b"a"), (3, b"b")]
    assert store.messages.read_up_to(box) == 7


def _full(changes: Changes) -> None:
    raise StorageError("no room")
