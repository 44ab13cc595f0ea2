"""What is sent to a worker: in order, what is synced, no more at a time than the window, and again after a break."""

from __future__ import annotations

import pytest

from crawlerproject.fleet.messaging import message_delivery
from crawlerproject.fleet.messaging.message_delivery import BrokenConnection, Connection, Incoming, Outgoing, Post
from crawlerproject.stores.protocols import Box, Changes
from tests.stores.memory_store import MemoryStore


class Sender:
    """A store and what it has for one receiver."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.out = Outgoing(self.store.messages)

    def box(self, partition: int) -> Box:
        """Of the own outbox."""
        return Box(partition, self.store.messages.outbox)

    def write(self, *messages: tuple[int, bytes], sync: bool = True) -> None:
        """One commit."""
        self.store.apply(Changes(messages=list(messages)))
        if sync:
            self.store.sync()
            for partition in self.store.messages.take_changed():
                self.out.more(self.box(partition))

    def all(self) -> list[Post]:
        """Slices until there is none."""
        posts: list[Post] = []
        while some := self.out.next():
            posts += some
        return posts


@pytest.fixture
def sender() -> Sender:
    """With an empty store."""
    return Sender()


def test_each_message_names_the_one_before_it(sender: Sender) -> None:
    """In the order of numbers, box by box; what comes later goes behind."""
    sender.write((1, b"a"), (2, b"b"), (1, b"c"))
    one, two = sender.box(1), sender.box(2)
    assert sender.all() == [Post(one, 0, 1, b"a"), Post(one, 1, 3, b"c"), Post(two, 0, 2, b"b")]
    sender.write((1, b"d"))
    assert sender.all() == [Post(one, 3, 4, b"d")]
    assert not sender.out.empty


def test_nothing_is_sent_that_is_not_synced(sender: Sender) -> None:
    """Though its box has older messages to be sent: its number may yet be given to another."""
    sender.write((1, b"a"))
    sender.write((1, b"b"), sync=False)
    assert [post.number for post in sender.all()] == [1]
    sender.store.sync()
    sender.out.more(sender.box(1))
    assert [post.number for post in sender.all()] == [2]


def test_messages_of_other_outboxes_are_sent_too(sender: Sender) -> None:
    """They were moved here; their numbers have nothing to do with ours."""
    far = Box(1, b"another outbox..")
    sender.store.messages._boxes[far] = {900: b"old", 901: b"older"}
    out = Outgoing(sender.store.messages, [far])
    assert not out.empty
    assert [(post.box, post.number) for post in out.next()] == [(far, 900), (far, 901)]


def test_no_more_is_on_its_way_than_the_window(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes take turns; what is acknowledged makes room; one message there is, whatever its size."""
    monkeypatch.setattr(message_delivery, "WINDOW_BYTES", 1300)
    monkeypatch.setattr(message_delivery, "SLICE_BYTES", 600)
    sender.write(*[(number % 2, b"x" * 100) for number in range(20)], (2, b"y" * 5000))
    posts = sender.all()
    assert [(post.box.partition, post.number) for post in posts] == [(0, 1), (0, 3), (1, 2), (1, 4), (2, 21)]
    sender.out.acknowledged(sender.box(2), 21)
    sender.out.acknowledged(sender.box(0), 2)
    assert [(post.box.partition, post.number) for post in sender.all()] == [(0, 5), (0, 7)]
    assert sender.out.take_delivered() == [(sender.box(2), 21), (sender.box(0), 1)]
    assert sender.out.take_delivered() == []


def test_after_a_break_all_that_is_not_acknowledged_comes_again(sender: Sender) -> None:
    """From the first of each box on, without waiting for the rows of others to go."""
    sender.write((1, b"a"), (1, b"b"), (2, b"c"), (1, b"d"))
    sender.all()
    sender.out.acknowledged(sender.box(1), 1)
    sender.out.acknowledged(sender.box(2), 3)
    sender.out.lost()
    assert sender.all() == [Post(sender.box(1), 0, 2, b"b"), Post(sender.box(1), 2, 4, b"d")]
    sender.out.acknowledged(sender.box(1), 4)
    assert sender.out.empty
    sender.out.acknowledged(sender.box(1), 9)
    sender.out.lost()
    assert sender.all() == []
    assert [number for _, number in sender.out.take_delivered()] == [1, 3, 2, 4]


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
    monkeypatch.setattr(message_delivery, "MOST_BYTES", 3)
    receiver.mail.take(receiver.connect(), posts(1, 2))
    assert (receiver.mail.full, receiver.mail.bytes) == (False, 2)
    receiver.mail.take(receiver.connect(), posts(1, 2, 3))
    assert receiver.mail.full
    receiver.read(1)
    assert not receiver.mail.full
