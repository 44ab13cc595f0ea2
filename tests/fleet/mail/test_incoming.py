"""What comes from other workers: taken once, in order, kept until it is read, acknowledged when that is durable."""

from __future__ import annotations

import pytest

from crawlerproject.fleet.mail import incoming
from crawlerproject.fleet.mail.frames import BrokenConnection, Post
from crawlerproject.fleet.mail.incoming import Connection, Incoming
from crawlerproject.stores.protocols import Box, Changes
from tests.stores.memory_store import MemoryStore

BOX, OTHER = Box(1, b"one's outbox...."), Box(1, b"another outbox..")


class Receiver:
    """A store and what comes to it."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.mail = Incoming(store.messages, {1})
        self.woken = 0

    def connect(self) -> Connection:
        """From any worker."""
        return self.mail.begin(self.wake)

    def wake(self) -> None:
        """There is something to acknowledge."""
        self.woken += 1

    def read(self, count: int) -> list[int]:
        """So many take effect and are in a change that is applied; their numbers."""
        some = [self.mail.unread[place] for place in range(count)]
        self.mail.read(some)
        self.store.apply(Changes(read=[(each.box, each.number) for each in some]))
        self.mail.applied()
        return [each.number for each in some]


def posts(*numbers: int, box: Box = BOX) -> list[Post]:
    """Of one connection, from its beginning."""
    return [Post(box, before, number, b"%d" % number) for before, number in zip((0, *numbers), numbers, strict=False)]


@pytest.fixture
def receiver() -> Receiver:
    """With an empty store."""
    return Receiver(MemoryStore())


def test_it_is_acknowledged_once_it_is_durable(receiver: Receiver) -> None:
    """Not when it is taken, nor read, nor applied; up to the last that is, by box."""
    connection = receiver.connect()
    receiver.mail.take(connection, [*posts(3, 5, 9), *posts(4, box=OTHER)])
    receiver.read(2)
    receiver.mail.synced()
    assert (connection.take_acks(), receiver.woken) == ([], 0)
    receiver.store.sync()
    receiver.read(1)
    receiver.mail.synced()
    assert (connection.take_acks(), receiver.woken) == ([(BOX, 5)], 1)
    assert not receiver.mail.empty
    receiver.read(1)
    receiver.store.sync()
    receiver.mail.synced()
    assert connection.take_acks() == [(BOX, 9), (OTHER, 4)]
    assert (receiver.mail.empty, receiver.mail.bytes) == (True, 0)


def test_what_comes_again_is_taken_once(receiver: Receiver) -> None:
    """Over the same connection or another, before it is read and after; what is durable is acknowledged at once."""
    first = receiver.connect()
    receiver.mail.take(first, posts(1, 2))
    receiver.mail.take(first, posts(1, 2))
    second = receiver.connect()
    receiver.mail.take(second, posts(1, 2, 3))
    assert receiver.read(3) == [1, 2, 3]
    assert not receiver.mail.unread
    receiver.mail.end(first)
    receiver.store.sync()
    receiver.mail.synced()
    third = receiver.connect()
    receiver.mail.take(third, posts(2, 3, 4))
    assert [each.number for each in receiver.mail.unread] == [4]
    assert (first.take_acks(), second.take_acks(), third.take_acks()) == ([], [(BOX, 3)], [(BOX, 3)])


def test_after_a_start_the_store_says_what_was_read(receiver: Receiver) -> None:
    """What was taken and not read is taken again."""
    receiver.mail.take(receiver.connect(), posts(1, 2, 3))
    receiver.read(2)
    later = Receiver(receiver.store)
    later.mail.take(connection := later.connect(), posts(1, 2, 3))
    assert [each.number for each in later.mail.unread] == [3]
    assert connection.take_acks() == [(BOX, 2)]


def test_a_gap_ends_the_connection(receiver: Receiver) -> None:
    """What came before it is kept."""
    connection = receiver.connect()
    receiver.mail.take(connection, posts(1))
    with pytest.raises(BrokenConnection, match="after message 1 comes the one behind 2"):
        receiver.mail.take(connection, [Post(BOX, 2, 3, b"")])
    with pytest.raises(BrokenConnection):
        receiver.mail.take(receiver.connect(), [Post(BOX, 1, 2, b"")])
    assert [each.number for each in receiver.mail.unread] == [1]


def test_what_is_for_another_worker_is_not_taken(receiver: Receiver) -> None:
    """It would be marked as read where nothing came of it."""
    with pytest.raises(BrokenConnection, match="partition 2, which another worker holds"):
        receiver.mail.take(receiver.connect(), posts(1, box=Box(2, BOX.outbox)))
    assert receiver.mail.empty


def test_it_says_when_it_is_full(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the bytes that wait to be read."""
    monkeypatch.setattr(incoming, "MOST_BYTES", 3)
    receiver.mail.take(receiver.connect(), posts(1, 2))
    assert (receiver.mail.full, receiver.mail.bytes) == (False, 2)
    receiver.mail.take(receiver.connect(), posts(1, 2, 3))
    assert receiver.mail.full
    receiver.read(1)
    assert not receiver.mail.full
