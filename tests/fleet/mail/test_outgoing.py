"""What is sent to a worker: in order, what is synced, no more at a time than the window, and again after a break."""

from __future__ import annotations

import pytest

from crawlerproject.fleet.mail import outgoing
from crawlerproject.fleet.mail.frames import Post
from crawlerproject.fleet.mail.outgoing import Outgoing
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
    monkeypatch.setattr(outgoing, "WINDOW_BYTES", 1300)
    monkeypatch.setattr(outgoing, "SLICE_BYTES", 600)
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
