"""The store in Redis keeps the contract, alone, as a cluster and in Valkey; what is at hand is what is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from crawlerproject.errors import StorageError
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.buffer import at_hand, queue_heads
from crawlerproject.stores.redis.buffer import buffered_store as buffered_store
from crawlerproject.stores.redis.buffer.buffered_store import BufferedStore
from crawlerproject.stores.redis.redis_queues import QueuePlace
from crawlerproject.stores.redis.redis_store import RedisStore
from tests.stores.conformance import ContentContract, StoreContract, key_of, record, row
from tests.stores.memory_store import MemoryStore
from tests.stores.redis_crawls import PARTITIONS, opened
from tests.stores.redis_servers import RedisServer


class TestRedisStore(StoreContract):
    """The contract, in Redis."""


class TestRedisClusterStore(StoreContract):
    """The contract, in a cluster of three."""

    @pytest.fixture
    def store(self, cluster: list[RedisServer]) -> Iterator[RedisStore]:
        """A new crawl, all of it held."""
        made = opened(cluster[0].url)
        assert made.link.cluster
        yield made
        made.close()


class TestValkeyStore(StoreContract):
    """The contract, in Valkey."""

    @pytest.fixture
    def store(self, valkey: RedisServer) -> Iterator[BufferedStore]:
        """A new crawl, all of it held."""
        made = opened(valkey.url)
        assert made.link.call("INFO")["server_name"] == "valkey"
        yield BufferedStore(made)
        made.close()


class TestAheadStore(StoreContract, ContentContract):
    """The contract, for what a worker's frontier sees: everything answered before it is sent."""

    across_hosts = False

    @pytest.fixture
    def store(self, store: RedisStore) -> BufferedStore:
        """A new crawl, all of it held."""
        return BufferedStore(store)


class AheadMachine(RuleBasedStateMachine):
    """Whatever is applied, sent, forgotten and asked in whatever order: memory and Redis say the same."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.base = opened(self.url)
        self.store = BufferedStore(self.base)
        self.model = MemoryStore()
        self.arrival = 100

    @rule(host=st.sampled_from("ab"), priorities=st.lists(st.integers(0, 2), max_size=40), early=st.booleans())
    def queue(self, host: str, priorities: list[int], early: bool) -> None:
        rows = []
        for priority in priorities:
            self.arrival += 1
            rows.append(row(host, self.arrival - (60 if early else 0) * 1000 + 60_000, priority))
        for each in (self.store, self.model):
            each.apply(Changes(queued=rows))

    @rule(host=st.sampled_from("ab"), count=st.integers(1, 20))
    def take(self, host: str, count: int) -> None:
        rows = self.model.head(host, count)
        again = [found._replace(tries=found.tries + 1, priority=2) for found in rows[::3]]
        changes = Changes(
            removed=rows, queued=again, pages=[(found.key, record(found.arrival)) for found in rows[1::3]]
        )
        self.store.apply(changes)
        self.model.apply(changes)

    @rule()
    def send(self) -> None:
        self.store.sync()

    @rule()
    def send_in_vain(self) -> None:
        """A full server: what was to be sent is kept, and asked about while it is."""
        self.base.link.call("CONFIG", [], "SET", "maxmemory", "1")
        with contextlib.suppress(StorageError):
            self.store.sync()
        self.base.link.call("CONFIG", [], "SET", "maxmemory", "0")

    @rule()
    def forget(self) -> None:
        """Another worker, or the same one later: only what was sent is left."""
        self.store.sync()
        hosts = list(self.base.hosts_with_work())
        self.store = BufferedStore(self.base)
        for host in hosts:
            self.store.queues.arrive(host)

    @rule()
    def make_room(self) -> None:
        """More hosts than there is room for: what was at hand of one must be read anew."""
        heads, most = self.store.queues, queue_heads._ROWS
        queue_heads._ROWS = 0
        for name in [*heads._heads]:
            heads._make_room(name)
        queue_heads._ROWS = most

    @rule(host=st.sampled_from("ab"), limit=st.integers(1, 40))
    def look(self, host: str, limit: int) -> None:
        assert self.store.head(host, limit) == self.model.head(host, limit)

    @rule()
    def known(self) -> None:
        keys = [key_of("a", number) for number in range(60_000, 60_200)]
        assert self.store.known(keys) == self.model.known(keys)

    def teardown(self) -> None:
        self.store.sync()
        for host in "ab":
            assert self.base.head(host, 10_000) == self.model.head(host, 10_000)
        self.base.close()


def test_what_is_at_hand_is_what_is_there(server: RedisServer) -> None:
    """Random changes, sends and looks against the store in memory."""
    AheadMachine.url = server.url
    run_state_machine_as_test(AheadMachine, settings=settings(max_examples=25, stateful_step_count=30))


def test_a_long_queue_is_read_once(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are refused before anything is sent: reading on costs by the row, not by what was removed before."""
    rows = [row("a", number) for number in range(3_000)]
    store.apply(Changes(queued=rows))
    ahead = BufferedStore(store)
    ahead.queues.arrive("a")
    members: list[int] = []
    heads = store.queues.first_members

    def counted(hosts: Mapping[str, QueuePlace], limit: int) -> list[list[bytes]]:
        found = heads(hosts, limit)
        members.extend(map(len, found))
        return found

    monkeypatch.setattr(store.queues, "first_members", counted)
    met = []
    while some := ahead.head("a", 64):
        met += some
        ahead.apply(Changes(removed=some))

    assert met == rows
    assert sum(members) <= len(rows)
    ahead.sync()
    assert list(store.hosts_with_work()) == []


def test_a_beat_that_could_not_be_sent_is_sent_later(store: RedisStore) -> None:
    """Redis refuses for a while: nothing is lost, nothing is written twice, letters stay until they are answered."""
    ahead = BufferedStore(store)
    store.post([(1, b"one"), (1, b"two")])
    assert ahead.outbox.unread(range(PARTITIONS), 1) == {1: [b"one"]}
    ahead.outbox.messages_read(1, 1)
    ahead.apply(Changes(queued=[row("a", 1)]))
    store.link.call("CONFIG", [], "SET", "maxmemory", "1")
    try:
        with pytest.raises(StorageError):
            ahead.sync()
        ahead.apply(Changes(queued=[row("a", 2)]))
        assert ahead.outbox.unread(range(PARTITIONS), 1) == {}
        with pytest.raises(StorageError):
            ahead.sync()
    finally:
        store.link.call("CONFIG", [], "SET", "maxmemory", "0")
    assert [found.arrival for found in ahead.head("a", 9)] == [1, 2]
    ahead.sync()
    assert [found.arrival for found in store.head("a", 9)] == [1, 2]
    assert ahead.outbox.unread(range(PARTITIONS), 9) == {1: [b"two"]}


def test_what_is_not_sent_is_at_hand_however_little_is_kept(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts' states and robots.txt that were thrown out before they were sent are not asked of Redis."""
    monkeypatch.setattr(buffered_store, "_STATES", 1)
    monkeypatch.setattr(at_hand, "_FIELDS", 1)
    ahead = BufferedStore(store)
    names = [(f"host-{number}", b"%d" % number) for number in range(3)]
    ahead.apply(Changes(hosts=names, robots=[(f"https://{name}", packed) for name, packed in names]))
    assert [ahead.host(name) for name, _ in names] == [packed for _, packed in names]
    assert [ahead.robots(f"https://{name}") for name, _ in names] == [packed for _, packed in names]
