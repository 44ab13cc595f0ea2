"""What is known of where queues begin: always an unbroken beginning, and bounded."""

from __future__ import annotations

import random

import pytest

from crawlerproject.stores.rocks import rocks_queues
from crawlerproject.stores.rocks.rocks_queues import MAX_PLACES, MAX_ROWS, PackedRow, QueueHeadCache
from crawlerproject.stores.row_codec import PLACE_BYTES, place_after


def place(number: int) -> bytes:
    """One that sorts as its number."""
    return place_after(b"", 1, number)[:PLACE_BYTES]


def rows(*numbers: int, host: str = "a") -> list[PackedRow]:
    """Rows whose keys sort as their numbers."""
    return [(host.encode() + place(number), b"value") for number in numbers]


def places(*numbers: int) -> list[bytes]:
    """Their places."""
    return [place(number) for number in numbers]


def join(ahead: QueueHeadCache, *joined: PackedRow) -> None:
    """Rows join the queue: those that must be are reported, all at once."""
    places = {key[-PLACE_BYTES:]: packed for key, packed in joined if key[-PLACE_BYTES:] <= ahead.last("a")}
    if places:
        ahead.queued("a", places)


def known(ahead: QueueHeadCache, limit: int) -> list[bytes] | None:
    """The places of the first rows."""
    found = ahead.first("a", limit)
    return None if found is None else found[0]


def test_answers_only_what_it_knows() -> None:
    """More rows than are known, or another host, means to ask the store."""
    ahead = QueueHeadCache()
    ahead.keep("a", rows(1, 2, 3), whole=False)
    assert known(ahead, 2) == places(1, 2)
    assert known(ahead, 4) is None
    assert ahead.first("b", 1) is None


def test_a_whole_queue_answers_any_question() -> None:
    """Also one that is empty: there is nothing to ask the store for."""
    ahead = QueueHeadCache()
    ahead.keep("a", rows(1), whole=True)
    assert known(ahead, 9) == places(1)
    ahead.removed("a", rows(1)[0][0])
    assert known(ahead, 9) == []
    join(ahead, *rows(7))
    assert known(ahead, 9) == places(7)


def test_a_row_that_joins_within_is_seen_and_one_beyond_is_not() -> None:
    """Whatever lies behind the last row known may have neighbours that only the store knows."""
    ahead = QueueHeadCache()
    ahead.keep("a", rows(2, 5), whole=False)
    join(ahead, *rows(1, 3, 9))
    assert known(ahead, 4) == places(1, 2, 3, 5)
    assert known(ahead, 5) is None


def test_a_row_written_over_is_the_new_one() -> None:
    """A place holds one row."""
    ahead = QueueHeadCache()
    ahead.keep("a", rows(2, 5), whole=False)
    join(ahead, (rows(2)[0][0], b"newer"))
    assert ahead.first("a", 2) == (places(2, 5), [b"newer", b"value"])


def test_after_the_last_known_row_the_store_is_asked_behind_it() -> None:
    """Nothing is before it, unless it joins later."""
    ahead = QueueHeadCache()
    ahead.keep("a", rows(3), whole=False)
    ahead.removed("a", rows(3)[0][0])
    assert (known(ahead, 1), ahead.start("a")) == (None, places(3)[0])
    join(ahead, *rows(4))
    assert known(ahead, 1) is None
    join(ahead, *rows(2))
    assert known(ahead, 1) == places(2)


def test_a_long_queue_is_known_by_its_first_rows() -> None:
    """What falls behind is the store's to know, and takes no memory."""
    ahead = QueueHeadCache()
    ahead.keep("a", [], whole=True)
    for row in rows(*range(MAX_PLACES, 0, -1), 0):
        join(ahead, row)
    assert known(ahead, MAX_PLACES) == places(*range(MAX_PLACES))
    assert known(ahead, MAX_PLACES + 1) is None
    assert ahead.first("a", MAX_PLACES) == (places(*range(MAX_PLACES)), [b"value"] * MAX_ROWS)


def test_no_room_means_those_within_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts that come in turn would else each be thrown out just before their turn; after many looks all go."""
    monkeypatch.setattr(rocks_queues, "_REFUSALS", 3)
    ahead = QueueHeadCache(max_hosts=2)
    for host in "ab":
        ahead.keep(host, rows(1, host=host), whole=True)
    assert [ahead.has_room(host) for host in "abc"] == [True, True, False]
    for _ in range(3):
        assert not ahead.has_room("c")
        ahead.refused()
    assert ahead.has_room("c")
    assert "a" not in ahead


def test_rows_take_no_more_than_their_room() -> None:
    """Places stay known without them, and what leaves makes room for others."""
    ahead = QueueHeadCache(max_row_bytes=30)  # three rows of five bytes, each behind its length, are 27
    ahead.keep("a", rows(1, 2, 3), whole=True)
    ahead.keep("b", rows(1, host="b"), whole=True)
    assert [ahead.first(host, 9) for host in "ab"] == [(places(1, 2, 3), [b"value"] * 3), (places(1), [])]
    ahead.removed("a", rows(2)[0][0])
    assert ahead.rows_to_read("b", 1) == places(1)
    ahead.keep_rows("b", [b"other"])
    assert [ahead.first(host, 9) for host in "ab"] == [(places(1, 3), [b"value"] * 2), (places(1), [b"other"])]
    ahead.forget("a")
    ahead.forget("b")
    assert ahead._row_room == 30


@pytest.mark.parametrize("seed", range(20))
def test_it_always_answers_as_a_scan_of_the_queue(seed: int) -> None:
    """Rows join, leave, are written over, and are read anew: what is known is the queue's beginning at every step."""
    rng = random.Random(seed)
    ahead, queue = QueueHeadCache(max_row_bytes=rng.choice((0, 2_000, 1 << 20))), dict[bytes, bytes]()
    for step in range(400):
        keys = [key for key, _ in rows(*rng.sample(range(60), rng.choice((1, 1, 2, 9))))]
        if rng.random() < 0.4:
            joined = dict.fromkeys(keys, b"%d" % step)
            queue.update(joined)
            join(ahead, *joined.items())
        else:
            for key in keys:
                if queue.pop(key, None) is not None:
                    ahead.removed("a", key)
        limit = rng.choice((1, 2, 5, MAX_PLACES, 30))
        first = sorted(queue.items())[:limit]
        found = ahead.first("a", limit)
        if found is None:
            behind = b"a" + ahead.start("a")
            read = sorted(row for row in queue.items() if row[0] >= behind)[:limit]
            assert read == first
            if rng.random() < 0.3:
                ahead.keep("a", read, whole=len(read) < limit)
        else:
            assert found[0] == [row[1:] for row, _ in first]
            assert found[1] == [packed for _, packed in first][: len(found[1])]
            if rng.random() < 0.3:
                read_again = ahead.rows_to_read("a", limit)
                ahead.keep_rows("a", [queue[b"a" + place] for place in read_again])
        ahead_of_it = ahead._heads.get("a", b"")
        assert ahead._max_row_bytes - ahead._row_room == max(len(ahead_of_it) - 2 - 9 * sum(ahead_of_it[1:2]), 0)
