"""A crawl in Redis as versions 1.5 to 1.7 write it: workers of today take it over, killed anywhere."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, Posted
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.keys import fleet_keys, partition_keys, worker_keys
from crawlerproject.stores.redis.membership import RedisFleet, Report
from crawlerproject.stores.redis.redis_crawl import RedisCrawl
from crawlerproject.stores.redis.scripts import Script, script
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from tests.stores.redis_servers import RedisServer

CRAWL, LEASE_MS = "old", 60_000
HOSTS, PAGES = [f"h{number}.test" for number in range(3, 7)], 12
CASES = Path(__file__).parents[2] / "cases" / "redis"
COMMANDS = json.loads((CASES / "format_two.json").read_text())
# As version 1.7.0 has them.
SCRIPTS = {name: script(text) for name, text in json.loads((CASES / "format_two_scripts.json").read_text()).items()}


@pytest.fixture
def link(server: RedisServer) -> Iterator[RedisLink]:
    """With that crawl alone, whose worker has left."""
    with closing(RedisLink(server.url)) as made:
        fill(made)
        yield made


def fill(link: RedisLink) -> None:
    """The crawl as it was."""
    link.call("FLUSHALL")
    link.many([Call(name.decode(), [key], rest) for name, key, *rest in (map(b64decode, each) for each in COMMANDS)])


class Cut(RedisLink):
    """Answers so many times, and then no more."""

    left = 1 << 30

    def many(self, calls: Sequence[Call]) -> list[Any]:
        """As ever, or StorageError."""
        self.left -= 1
        if self.left < 0:
            raise StorageError("it is gone")
        return super().many(calls)


def opened(folder: Path, link: RedisLink, worker: str = "w1") -> JournaledStore:
    """A worker's frontier."""
    store = JournaledStore(folder, PartitionJournals(link, CRAWL, worker, 8))
    store.journals.begin("life")
    return store


def known(store: JournaledStore, hosts: Sequence[str]) -> dict[str, Any]:
    """What a frontier knows of hosts."""
    pages = [parse(f"http://{host}/{page}") for host in hosts for page in range(PAGES)]
    records = {page.url: record for page in pages if (record := store.page(page.key)) is not None}
    return {
        "waiting": [row for host in hosts for row in store.head(host, 1000)],
        "known": store.known([page.key for page in pages]),
        "pages": records,
        "hosts": [store.host(host) for host in hosts],
        "robots": [store.robots(f"http://{host}") for host in hosts],
        "facts": [store.fact(f"traps/{host}") for host in hosts],
        "near": [store.near(host, 2 * 2**40 + int(host[1]), 0) for host in hosts],
    }


def is_whole(found: dict[str, Any], hosts: int) -> None:
    """Half of the pages wait, half are decided."""
    assert len(found["waiting"]) == len(found["pages"]) == hosts * PAGES // 2
    assert all(found["known"])
    assert all(len(state) > 20 for state in found["hosts"])
    assert found["robots"] == [b"robots"] * hosts
    assert found["facts"] == [b"yields"] * hosts
    assert [len(near) for near in found["near"]] == [1] * hosts


def test_workers_take_it_over(tmp_path: Path, link: RedisLink, server: RedisServer) -> None:
    """Every row, the worker's facts and each message once; another worker has all of it from the copies."""
    with closing(opened(tmp_path / "one", RedisLink(server.url))) as first:
        for partition in range(2):
            taken = first.take(partition, LEASE_MS)
            assert taken is not None
            assert sorted(taken[1]) == [host for host in HOSTS if partition_of(host, 2) == partition]
        before = known(first, HOSTS)
        is_whole(before, len(HOSTS))
        assert (first.fact("scope"), first.fact("warc")) == (b"h0.test h1.test", b'["a.warc.gz",10]')
        first.journals.post([(0, Posted(b"o" * 16, 7, b'["today"]'))])
        inboxes = first.unread([0, 1], 10)
        assert [each[1:3] for each in inboxes[0].messages] == [(1, b'["first"]'), (2, b'["second"]'), (7, b'["today"]')]
        assert inboxes[1].messages == [Posted(bytes(16), 1, b'["third"]')]
        for partition in range(2):
            first.give_back(partition)
    with closing(opened(tmp_path / "two", RedisLink(server.url), "w2")) as second:
        assert all(second.take(partition, LEASE_MS) for partition in range(2))
        assert known(second, HOSTS) == before
    left = {key.decode().partition(":")[2] for key in link.call("KEYS", [], "*")}
    assert left == {"facts", "ledger", "holder", "lease", "copy.1", "state", "payloads"}


def test_it_may_be_killed_anywhere(tmp_path: Path, link: RedisLink, server: RedisServer) -> None:
    """After each answer of Redis: the next start, with this disk or another, has everything."""
    hosts, cut = [host for host in HOSTS if partition_of(host, 2) == 0], 0
    ended = False
    while not ended:
        fill(link)
        broken = Cut(server.url)
        with closing(opened(tmp_path / f"{cut}", broken)) as first:
            broken.left = cut
            try:
                ended = first.take(0, LEASE_MS) is not None
            except StorageError:
                broken.left = 1 << 30
        folder = tmp_path / (f"{cut}" if cut % 2 else f"{cut}-other")
        with closing(opened(folder, RedisLink(server.url))) as second:
            assert second.take(0, LEASE_MS) is not None
            is_whole(known(second, hosts), len(hosts))
        cut += 1
    assert cut > 10


def test_a_worker_of_before_holds_it_up(tmp_path: Path, link: RedisLink, server: RedisServer) -> None:
    """One that has a lease, or that has reported: nothing is changed. Those of before refuse what is of today."""
    now = int(link.call("TIME")[0])
    held, seen = partition_keys(CRAWL, 0).old_lease, fleet_keys(CRAWL).old_seen
    for take, give in (
        (("HSET", held, "holder", "w1", "until", (now + 30) * 1000), ("HSET", held, "holder", "", "until", 0)),
        (("ZADD", seen, now * 1000, "w1"), ("ZREM", seen, "w1")),
    ):
        link.call(take[0], [take[1]], *take[2:])
        with pytest.raises(
            OperatorError, match="A worker of an earlier version, 'w1', may be at work on the crawl 'old'"
        ):
            opened(tmp_path / "one", RedisLink(server.url))
        assert link.call("HGET", ["{old.fleet}:facts"], "format") == b"2"
        link.call(give[0], [give[1]], *give[2:])
    opened(tmp_path / "one", RedisLink(server.url)).close()
    assert link.call("HGET", ["{old.fleet}:facts"], "format") == b"3"


class Before:
    """A process of version 1.7.0, as far as it asks Redis."""

    def __init__(self, link: RedisLink, worker: str) -> None:
        self.link, self.worker, self.life, self.serial = link, worker, f"life of {worker}", 0
        self.tokens: dict[int, int] = {}

    def join(self) -> None:
        """Once it has looked at the format."""
        keys = fleet_keys(CRAWL)
        names = [keys.old_seen, *keys[2:9]]  # as far as the round
        answer = self.link.call(SCRIPTS["REPORT"], names, self.worker, self.life, "", LEASE_MS, 0, 0, "{}", 2, "", "")
        assert answer[1:3] == [1, 1]
        self.serial = int(self.link.call(SCRIPTS["BEGIN"], list(worker_keys(CRAWL, self.worker)[:3]), self.life))

    def acquire(self, partition: int) -> bool:
        """Whether it has the partition now."""
        tag = f"{{{CRAWL}.{partition}}}:"
        answer = self.link.call(SCRIPTS["ACQUIRE"], [f"{tag}lease", f"{tag}behind"], self.worker, LEASE_MS)
        self.tokens[partition] = int(answer[0])
        return bool(answer[0])

    def renew(self, partition: int) -> bool:
        """Whether it still has it."""
        lease = f"{{{CRAWL}.{partition}}}:lease"
        return bool(self.link.call(SCRIPTS["RENEW"], [lease], self.worker, self.tokens[partition], LEASE_MS))

    def commit(self, *partitions: int) -> bytes:
        """Change a fact, and nothing of these partitions."""
        state = worker_keys(CRAWL, self.worker)
        keys, words = [state.state, state.fenced], list[Any]()
        for each in partitions:
            names = ("lease", "work", "pages", "hosts", "robots", "inbox", "prints")
            keys += [f"{{{CRAWL}.{each}}}:{name}" for name in names]
            words += [each, self.tokens[each], len(names), 11, 9, *[0] * 9, ""]
        head = [self.worker, self.life, self.serial + 1, 1, len(partitions), "warc", "[]"]
        answer: list[bytes] = self.link.call(SCRIPTS["COMMIT"], keys, *head, *words)
        self.serial += answer[0] == b"ok"
        return answer[0]


def test_a_frozen_worker_of_before_is_refused_when_it_wakes(
    tmp_path: Path, link: RedisLink, server: RedisServer
) -> None:
    """Also for a partition that was not taken since, and one that had looked at the format and not joined yet."""
    frozen, joining = Before(link, "w1"), Before(link, "w9")
    frozen.join()
    assert [frozen.acquire(partition) for partition in range(2)] == [True, True]
    assert (frozen.renew(0), frozen.commit(0, 1), frozen.commit()) == (True, b"ok", b"ok")
    for partition in range(2):
        link.call("HSET", [partition_keys(CRAWL, partition).old_lease], "until", 1)
    link.call("ZADD", [fleet_keys(CRAWL).old_seen], 1, "w1")
    with closing(opened(tmp_path / "one", RedisLink(server.url), "w2")) as store:
        taken = store.take(0, LEASE_MS)
        assert taken is not None
        assert taken[0].unsure_until > 0  # it may have asked until then
        facts = link.call("HGETALL", [worker_keys(CRAWL, "w1").state])
        assert [frozen.renew(partition) for partition in range(2)] == [False, False]
        assert not {frozen.commit(1), frozen.commit(0), frozen.commit()} & {b"ok"}
        assert [frozen.acquire(partition) for partition in range(2)] == [False, False]
        joining.join()
        assert [joining.acquire(partition) for partition in range(2)] == [False, False]
        assert link.call("HGETALL", [worker_keys(CRAWL, "w1").state]) == facts
        fleet = RedisFleet(link, CRAWL, "w2", LEASE_MS)
        status = fleet.begin("life", [], 2)
        assert status.workers == 1  # no part of the partitions is left for those
        assert set(RedisCrawl(link, CRAWL, 2).lease_ends()) == {"w2"}
        assert store.take(1, LEASE_MS) is not None
        is_whole(known(store, HOSTS), len(HOSTS))
        assert fleet.report("life", Report(False, 0, "{}"), 2) is not None
    with closing(opened(tmp_path / "two", RedisLink(server.url), "w1")) as same:
        same.apply(Changes(facts=[("warc", b"[]")]))
        same.sync()


class Slow(RedisLink):
    """Between its first question and what comes of that others do something."""

    meanwhile: Callable[[], None] | None = None

    def call(self, name: Script | str, keys: Sequence[str | bytes] = (), *arguments: Any) -> Any:
        """As ever, then that."""
        answer = super().call(name, keys, *arguments)
        if self.meanwhile is not None and name == "HMGET":
            do, self.meanwhile = self.meanwhile, None
            do()
        return answer


@pytest.mark.parametrize("done", [False, True])
def test_workers_that_begin_together_make_it_one_of_today_once(
    tmp_path: Path, link: RedisLink, server: RedisServer, done: bool
) -> None:
    """The slow one finds the other at work, or at the end of it, and disturbs neither its leases nor its changes."""
    slow, held = Slow(server.url), list[JournaledStore]()

    def quick() -> None:
        first = opened(tmp_path / "one", RedisLink(server.url))
        held.append(first)
        for partition in range(2 if done else 1):
            assert first.take(partition, LEASE_MS) is not None
        if done:
            opened(tmp_path / "three", RedisLink(server.url), "w3").close()  # finds that nothing is left

    slow.meanwhile = quick
    with closing(opened(tmp_path / "two", slow, "w2")) as second:
        assert (link.call("HGET", [fleet_keys(CRAWL).facts], "of format 2") is None) == done
        [first] = held
        assert first.journals.renew(LEASE_MS) == []
        first.apply(Changes(facts=[("warc", b"[]")]))
        first.sync()
        assert second.take(0, LEASE_MS) is None
        assert (second.take(1, LEASE_MS) is None) == done
        first.close()
