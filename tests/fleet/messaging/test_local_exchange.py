"""What a worker finds goes where it belongs, and what it is sent takes effect with a commit, in bounded slices."""

from __future__ import annotations

import asyncio

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.fleet.messaging import local_exchange as module
from crawlerproject.fleet.messaging.local_exchange import LocalExchange, LocalHosts
from crawlerproject.fleet.messaging.message_delivery import Incoming, Outgoing, Post
from crawlerproject.frontier.other_workers import Changed, Links, Message, RobotsGiven, pack_message, unpack_message
from crawlerproject.frontier.passage import DiscoveredUrl, seed_found
from crawlerproject.rules.row_kinds import FLAG_SEED
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Box, Changes
from tests.fleet.messaging.workers import hosts_of, links, plan_of
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

PLAN = plan_of("worker-1", "worker-2")
OURS, THEIRS = hosts_of(PLAN, "worker-1", 1)[0], hosts_of(PLAN, "worker-2", 1)[0]


class One:
    """A worker, without sockets."""

    def __init__(self) -> None:
        self.hosts = LocalHosts(PLAN, "worker-1")
        self.store = MemoryStore()
        self.incoming = Incoming(self.store.messages, self.hosts.partitions)
        self.exchange = LocalExchange(self.store.messages, self.hosts, self.incoming)
        self.bench = Bench(self.store, ownership=self.hosts, max_urls=10**6)
        self._connection = self.incoming.begin(lambda: None)
        self._number = 0

    def comes(self, *messages: Message) -> None:
        """From another worker."""
        box = Box(self.hosts.partition(OURS), b"another outbox..")
        for message in messages:
            self.incoming.take(self._connection, [Post(box, self._number, self._number + 1, pack_message(message))])
            self._number += 1

    def read(self) -> int:
        """As before a commit; in how many turns."""
        reading, turns = self.exchange.read(self.bench.frontier, lambda: self.bench.now), 0
        while True:
            try:
                reading.send(None)
            except StopIteration:
                return turns
            turns += 1

    @property
    def read_up_to(self) -> int:
        """As the store has it."""
        return self.store.messages.read_up_to(Box(self.hosts.partition(OURS), b"another outbox.."))


@pytest.fixture
def one() -> One:
    """With nothing in it."""
    return One()


def test_while_a_backup_is_made_no_row_of_a_message_goes(one: One) -> None:
    """One that is acknowledged stays until that is over: the reader's frontier in the backup may not have it yet."""
    box = Box(one.hosts.partition(THEIRS), one.store.messages.outbox)
    one.store.apply(Changes(messages=[(box.partition, b"written")]))
    one.store.sync()
    outgoing = Outgoing(one.store.messages, [box])
    outgoing.next()
    outgoing.acknowledged(box, 1)
    one.exchange = LocalExchange(one.store.messages, one.hosts, one.incoming, [outgoing])
    changes = one.bench.frontier.state.changes

    one.exchange.keeps_delivered = True
    one.read()
    assert changes.delivered == []

    one.exchange.keeps_delivered = False
    one.read()
    assert changes.delivered == [(box, 1)]


def test_own_links_are_queued_at_once_and_others_written_once(one: One) -> None:
    """What passes the filters; the same of another page is not written again."""
    found = links(f"http://{OURS}/1", f"http://{THEIRS}/1", f"http://{THEIRS}/x.zip", f"http://{THEIRS}/1")
    assert one.exchange.take(found, one.bench.frontier, one.bench.now) == 1
    assert one.exchange.take(found, one.bench.frontier, one.bench.now) == 0
    assert (one.exchange.sent, one.exchange.moved) == (1, False)
    assert not one.exchange.empty
    one.bench.commit()
    one.exchange.settle()
    assert (one.exchange.moved, one.exchange.empty, one.store.messages.applied.last) == (True, True, 1)


def test_seeds_of_others_are_not_sent(one: One) -> None:
    """Every worker is given them; what a seed leads to is sent."""
    seeds = [seed_found(parse(f"http://{host}/")) for host in (OURS, THEIRS)]
    redirected = DiscoveredUrl(parse(f"http://{THEIRS}/home"), 0, "R", f"http://{OURS}/", 1, FLAG_SEED)

    assert one.exchange.take([*seeds, redirected], one.bench.frontier, one.bench.now) == 1
    one.hosts.add_messages(changes := Changes())
    assert [unpack_message(packed) for _, packed in changes.messages] == [Links([redirected])]


def test_word_of_others_changed_pages_is_sent(one: One) -> None:
    """What is said of its own pages it judges at once."""
    pages = [(parse(f"http://{host}/"), 7.0) for host in (OURS, THEIRS)]

    assert one.exchange.changed(pages, one.bench.frontier, one.bench.now) == 0  # it is not known
    one.hosts.add_messages(changes := Changes())
    assert [unpack_message(packed) for _, packed in changes.messages] == [Changed(pages[1:])]


def test_links_of_others_are_written_though_the_disk_is_full(one: One, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for own hosts wait in the frontier; neither is taken twice."""
    with monkeypatch.context() as patch:
        patch.setattr(one.store, "apply", _full)
        with pytest.raises(StorageError):
            one.exchange.take(links(f"http://{OURS}/1", f"http://{THEIRS}/1"), one.bench.frontier, one.bench.now)
    one.bench.frontier.admission.add_again(one.bench.now)
    one.bench.commit()
    assert (one.bench.frontier.hosts.waiting_urls, one.store.messages.applied.last) == (1, 1)


def test_what_is_read_is_marked_with_its_effect(one: One) -> None:
    """Links of several messages are one change of the store; not before the commit are they read."""
    one.comes(*(Links(links(*(f"http://{OURS}/{n}/{each}" for each in range(40)))) for n in range(7)))
    one.comes(RobotsGiven(f"http://{OURS}", 200, b"User-agent: *\nDisallow: /", "fetched"))
    assert one.read() == 4  # 120, 120, 40 links, an answer
    assert (one.bench.frontier.hosts.waiting_urls, one.read_up_to, one.incoming.empty) == (280, 0, False)
    one.bench.commit()
    assert one.read_up_to == 8
    assert not one.bench.frontier.state.robots.rules(f"http://{OURS}").allowed(f"http://{OURS}/x")


def test_so_much_is_read_before_a_commit(one: One, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest before the next one, in its order."""
    monkeypatch.setattr(module, "_URLS_A_COMMIT", 250)
    one.comes(*(Links(links(*(f"http://{OURS}/{n}/{each}" for each in range(100)))) for n in range(5)))
    read = []
    for _ in range(2):
        one.read()
        one.bench.commit()
        one.exchange.settle()
        read.append((one.read_up_to, len(one.incoming.unread)))
    assert read == [(3, 2), (5, 0)]


def test_what_found_no_room_is_read_again(one: One, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the first of the inbox still, and not marked."""
    one.comes(Links(links(f"http://{OURS}/1")))
    with monkeypatch.context() as patch:
        patch.setattr(one.store, "apply", _full)
        with pytest.raises(StorageError):
            asyncio.run(one.exchange.read(one.bench.frontier, lambda: one.bench.now))
    assert (len(one.incoming.unread), one.bench.frontier.state.changes.read) == (1, [])
    one.bench.frontier.admission.add_again(one.bench.now)
    one.read()
    one.bench.commit()
    assert (one.bench.frontier.hosts.waiting_urls, one.read_up_to) == (1, 1)


def _full(changes: Changes) -> None:
    raise StorageError("no room")
