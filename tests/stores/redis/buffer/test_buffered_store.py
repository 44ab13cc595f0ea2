"""What waits to be sent to Redis: in the order of its coming, once, whatever answers are lost."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any
from uuid import UUID

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.buffer.buffered_store import Outbox
from crawlerproject.stores.redis.connection import Call
from crawlerproject.stores.redis.redis_store import RedisStore
from tests.stores.conformance import row

DIGEST = bytes(20)
ORIGINAL = Original(f"<urn:uuid:{UUID(int=1)}>", "http://a.example/", "2026-01-01T00:00:00Z")
OURS, OTHER = 0, 1  # partitions


@pytest.fixture
def outbox(store: RedisStore) -> Outbox:
    """Empty."""
    return Outbox(store, RLock())


def send(outbox: Outbox) -> None:
    """All of it, without bundles."""
    outbox.send(lambda host: None)


def losing(store: RedisStore, patch: pytest.MonkeyPatch, number: int, *, after: bool) -> None:
    """The connection breaks at round trip ``number``, before Redis has the calls or after it has done them."""
    many, left = store.link.many, [number]

    def broken(calls: Sequence[Call]) -> list[Any]:
        if calls:
            left[0] -= 1
        lost = bool(calls) and left[0] == 0
        answers = many(calls) if after or not lost else []
        if lost:
            raise StorageError("the connection broke")
        return answers

    patch.setattr(store.link, "many", broken)


@pytest.mark.parametrize("after", [False, True], ids=["before it is done", "after it is done"])
@pytest.mark.parametrize(("kind", "steps"), [("store", 3), ("spread", 4)], ids=["one server", "cluster"])
def test_a_sending_that_breaks_anywhere_counts_once(
    request: pytest.FixtureRequest, kind: str, steps: int, after: bool
) -> None:
    """What was decided meanwhile comes behind it; no message is lost, no capture named before it counts."""
    store: RedisStore = request.getfixturevalue(kind)
    outbox, rows = Outbox(store, RLock()), [row("a", number) for number in range(2 * steps)]
    for step in range(steps):
        first, second, fact = rows[2 * step], rows[2 * step + 1], f"warc{step}"
        digest, message = bytes([step]) * 20, b"moved %d" % step
        outbox.merge(Changes(queued=[first], facts=[(fact, b"1")], payloads=[(digest, ORIGINAL)]))
        outbox.post(OTHER, message)
        with pytest.MonkeyPatch.context() as patch:
            losing(store, patch, step + 1, after=after)
            with pytest.raises(StorageError):
                send(outbox)
        assert not outbox.empty
        assert store.original(digest) is None or store.fact(fact) == b"1"
        outbox.merge(Changes(queued=[second]))

        send(outbox)

        assert outbox.empty
        assert store.head("a", 99) == rows[: 2 * step + 2]
        assert store.fact(fact) == b"1"
        assert store.original(digest) == ORIGINAL
        assert message in outbox.unread([OTHER], 99)[OTHER]


def test_messages_that_were_answered_go_with_the_answer(outbox: Outbox, store: RedisStore) -> None:
    """Until then nobody reads behind them; other partitions are read meanwhile."""
    for partition, message in ((OURS, b"one"), (OURS, b"two"), (OTHER, b"three")):
        outbox.post(partition, message)
    send(outbox)
    assert outbox.unread([OURS, OTHER], 1) == {OURS: [b"one"], OTHER: [b"three"]}

    outbox.messages_read(OURS, 1)
    outbox.merge(Changes(queued=[row("a", 0)]))
    assert outbox.unread([OURS, OTHER], 9) == {OTHER: [b"three"]}
    send(outbox)

    assert outbox.unread([OURS, OTHER], 9) == {OURS: [b"two"], OTHER: [b"three"]}


def test_the_newest_decision_about_a_payload_is_believed(outbox: Outbox) -> None:
    """Nothing, a capture, and that there is none any more are three answers."""
    assert outbox.original(DIGEST) is None
    outbox.merge(Changes(payloads=[(DIGEST, ORIGINAL)]))
    assert outbox.original(DIGEST) == (ORIGINAL,)
    outbox.merge(Changes(payloads=[(DIGEST, None)]))
    assert outbox.original(DIGEST) == (None,)


def test_a_worker_that_decides_faster_than_redis_takes_it_is_slowed(outbox: Outbox) -> None:
    """Ten thousand rows in one batch; sent, there is room again."""
    rows = [row("a", number) for number in range(10_000)]
    outbox.merge(Changes(queued=rows[:-1]))
    assert not outbox.crowded
    outbox.merge(Changes(queued=rows[-1:]))
    assert outbox.crowded

    send(outbox)

    assert not outbox.crowded
