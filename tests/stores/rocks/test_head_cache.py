"""Rows read ahead: an unbroken beginning of a queue, bounded."""

from __future__ import annotations

import pytest

from crawlerproject.stores.rocks import head_cache
from crawlerproject.stores.rocks.head_cache import PackedRow, QueueHeadCache


def rows(*numbers: int) -> list[PackedRow]:
    """Rows whose keys sort as their numbers."""
    return [(b"host%03d" % number, b"value") for number in numbers]


def test_answers_only_what_it_holds() -> None:
    """More rows than are kept, or another host, means to ask the store."""
    ahead = QueueHeadCache()
    ahead.keep("a", rows(1, 2, 3))
    assert ahead.first("a", 2) == rows(1, 2)
    assert ahead.first("a", 4) is None
    assert ahead.first("b", 1) is None


def test_a_row_that_joins_within_is_seen_and_one_beyond_is_not() -> None:
    """Whatever lies behind the last row kept may have neighbours that only the store knows."""
    ahead = QueueHeadCache()
    ahead.keep("a", rows(2, 5))
    for row in rows(1, 3, 9):
        ahead.queued("a", *row)
    assert ahead.first("a", 4) == rows(1, 2, 3, 5)
    assert ahead.first("a", 5) is None


def test_a_row_written_over_is_the_new_one() -> None:
    """A place holds one row."""
    ahead = QueueHeadCache()
    ahead.keep("a", rows(2, 5))
    ahead.queued("a", b"host002", b"newer")
    assert ahead.first("a", 2) == [(b"host002", b"newer"), *rows(5)]


def test_removed_rows_leave_and_the_last_takes_the_host_along() -> None:
    """After it nothing is known of the queue."""
    ahead = QueueHeadCache()
    ahead.keep("a", rows(1, 2))
    for row in rows(7, 1, 2):
        ahead.removed("a", row[0])
    assert ahead.first("a", 1) is None
    assert ahead._bytes == 0


def test_no_room_means_those_within_stay() -> None:
    """Hosts that come in turn would else each be thrown out just before their turn."""
    ahead = QueueHeadCache(max_bytes=300)
    ahead.keep("a", rows(1))
    ahead.keep("b", rows(1))
    ahead.keep("c", rows(1))
    assert [ahead.first(host, 1) is not None for host in "abc"] == [True, True, False]
    ahead.removed("a", b"host001")
    ahead.keep("c", rows(1))
    assert ahead.first("c", 1) == rows(1)


def test_without_room_nothing_is_read_ahead_until_hosts_left() -> None:
    """A question that is answered with no counts as a refusal: after very many of them those within go."""
    ahead = QueueHeadCache(max_bytes=5000)
    assert ahead.has_room()
    ahead.keep("a", [(b"host001", bytes(1000))])
    assert not ahead.has_room()
    ahead.removed("a", b"host001")
    assert ahead.has_room()


def test_hosts_that_never_come_back_do_not_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many refusals everything goes."""
    monkeypatch.setattr(head_cache, "_REFUSALS", 3)
    ahead = QueueHeadCache(max_bytes=5000)
    ahead.keep("gone", [(b"host001", bytes(1000))])
    assert [ahead.has_room() for _ in range(4)] == [False, False, False, True]
