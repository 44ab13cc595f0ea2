"""What workers find for each other: sent once, read once, and not lost to an error in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.fleet.link_exchange import LINKS_A_MESSAGE
from crawlerproject.fleet.redis import redis_exchange
from crawlerproject.fleet.redis.redis_exchange import HeldPartitions, RedisExchange
from crawlerproject.frontier.other_workers import Changed, Links, pack_message, unpack_message
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.url.urls import Address, parse
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

OURS, THEIRS = 1, 2


class Redis:
    """The buffered store of a worker, as far as messages go."""

    def __init__(self) -> None:
        self.posted: list[tuple[int, bytes]] = []
        self.inboxes: dict[int, list[bytes]] = {}
        self.read: list[tuple[int, int]] = []
        self.looked_up = 0
        self.away = False
        self.store = SimpleNamespace(partition=lambda host: OURS if host.startswith("ours") else THEIRS)
        self.outbox = SimpleNamespace(
            post=lambda *message: self.posted.append(message),
            messages_read=lambda *count: self.read.append(count),
            unread=self.messages,
        )

    def look_up(self, pages: Iterable[tuple[bytes, str]]) -> None:
        """Redis may be away."""
        if self.away:
            raise StorageError("away")
        self.looked_up += len(list(pages))

    def at_hand(self, hosts: Iterable[str], pages: Iterable[tuple[bytes, str]]) -> None:
        """As ``look_up``, of what is known of pages."""
        self.look_up(pages)

    def messages(self, partitions: list[int], most: int) -> dict[int, list[bytes]]:
        """The first of each inbox."""
        return {partition: self.inboxes[partition][:most] for partition in partitions if self.inboxes.get(partition)}

    def links(self) -> list[list[str]]:
        """The URLs of each message that was posted."""
        messages = [unpack_message(packed) for _, packed in self.posted]
        return [[item.address.url for item in message.found] for message in messages if isinstance(message, Links)]


def exchange(redis: Redis) -> tuple[RedisExchange, Bench]:
    """That of a worker that holds one partition, and its frontier."""
    held = HeldPartitions(cast("Any", redis), 1.0)
    held.take(OURS, 1e12, 0.0)
    return RedisExchange(cast("Any", redis), held), Bench(MemoryStore())


def found(*urls: str) -> list[DiscoveredUrl]:
    """Links of a page."""
    return [DiscoveredUrl(parse(url), 1, "L", "http://ours.test/", 10) for url in urls]


def take(mail: RedisExchange, bench: Bench, *urls: str) -> None:
    """A page names these."""
    assert mail.take(found(*urls), bench.frontier, bench.now) == 0


def deliver(mail: RedisExchange, bench: Bench) -> None:
    """As between the beginning of a commit and its end."""
    asyncio.run(mail.deliver(bench.frontier, lambda: bench.now))


def test_what_is_found_waits_for_the_next_commit() -> None:
    """The store is asked about all of it together."""
    mail, bench = exchange(Redis())
    links, changed = found("http://ours.test/1"), announced("http://ours.test/2")

    assert mail.take(links, bench.frontier, bench.now) == 0
    assert mail.changed(changed, bench.frontier, bench.now) == 0
    assert (mail.outbox, mail.announced, mail.empty) == (links, changed, False)


def test_what_was_found_for_a_host_that_went_is_sent() -> None:
    """Its partition left between two commits."""
    redis = Redis()
    mail, bench = exchange(redis)
    mail.take(found("http://ours.test/1"), bench.frontier, bench.now)
    mail.changed(announced("http://ours.test/2"), bench.frontier, bench.now)
    mail._held.leaving.add(OURS)

    deliver(mail, bench)

    messages = [(partition, unpack_message(packed)) for partition, packed in redis.posted]
    wanted = [Changed(announced("http://ours.test/2")), Links(found("http://ours.test/1"))]
    assert messages == [(OURS, message) for message in wanted]
    assert (mail.empty, bench.frontier.hosts.waiting_urls) == (True, 0)


def test_own_urls_are_queued_and_others_are_sent() -> None:
    """By partition, each URL once, so many a message."""
    redis = Redis()
    mail, bench = exchange(redis)
    take(mail, bench, "http://ours.test/1", "http://theirs.test/1", "http://theirs.test/1")
    take(mail, bench, *(f"http://theirs.test/more/{number}" for number in range(LINKS_A_MESSAGE)))

    deliver(mail, bench)

    assert bench.frontier.hosts.waiting_urls == 1
    assert [len(urls) for urls in redis.links()] == [LINKS_A_MESSAGE, 1]
    assert {partition for partition, _ in redis.posted} == {THEIRS}
    assert (mail.outbox, mail.moved, redis.looked_up) == ([], True, 1)


def test_nothing_found_is_lost_while_the_store_is_away() -> None:
    """It is in the outbox again, before what comes meanwhile."""
    redis = Redis()
    mail, bench = exchange(redis)
    take(mail, bench, "http://ours.test/1", "http://theirs.test/1")
    redis.away = True

    with pytest.raises(StorageError):
        deliver(mail, bench)
    take(mail, bench, "http://ours.test/2")
    redis.away = False
    deliver(mail, bench)

    assert bench.frontier.hosts.waiting_urls == 2
    assert redis.links() == [["http://theirs.test/1"]]


def test_a_message_is_gone_only_with_the_commit_that_holds_what_came_of_it() -> None:
    """Read once, answered by ``settle``; until then it is not read again."""
    redis = Redis()
    mail, bench = exchange(redis)
    redis.inboxes[OURS] = [
        pack_message(Links(found("http://ours.test/1"))),
        pack_message(Links(found("http://ours.test/2"))),
    ]

    for _ in range(2):
        asyncio.run(mail.read(bench.frontier, lambda: bench.now))
    assert (bench.frontier.hosts.waiting_urls, redis.read) == (2, [])
    mail.settle()

    assert redis.read == [(OURS, 2)]
    mail.settle()
    assert len(redis.read) == 1


def test_messages_of_a_partition_that_went_are_answered_by_its_next_worker() -> None:
    """They stay in the inbox."""
    redis = Redis()
    mail, bench = exchange(redis)
    redis.inboxes[OURS] = [pack_message(Links(found("http://ours.test/1")))]
    asyncio.run(mail.read(bench.frontier, lambda: bench.now))

    mail.forget(OURS)
    mail.settle()

    assert redis.read == []


def test_the_last_commit_takes_all_along() -> None:
    """Without an event loop: own URLs are queued, others sent."""
    redis = Redis()
    mail, bench = exchange(redis)
    take(mail, bench, "http://ours.test/1", "http://theirs.test/1")

    mail.deliver_now(bench.frontier, bench.now)

    assert (bench.frontier.hosts.waiting_urls, redis.links(), mail.outbox) == (1, [["http://theirs.test/1"]], [])


def test_the_last_commit_loses_nothing_while_the_store_is_away() -> None:
    """A WARC file is full in that moment: the page is committed later, and what it names with it."""
    redis = Redis()
    mail, bench = exchange(redis)
    changed = announced("http://ours.test/0")
    take(mail, bench, "http://ours.test/1", "http://theirs.test/1")
    mail.changed(changed, bench.frontier, bench.now)
    redis.away = True
    with pytest.raises(StorageError):
        mail.deliver_now(bench.frontier, bench.now)
    assert (mail.outbox, mail.announced) == (found("http://ours.test/1"), changed)

    redis.away = False
    mail.deliver_now(bench.frontier, bench.now)

    assert (bench.frontier.hosts.waiting_urls, redis.links(), mail.empty) == (1, [["http://theirs.test/1"]], True)


def announced(*urls: str) -> list[tuple[Address, float]]:
    """Pages that changed at a moment."""
    return [(parse(url), 5.0) for url in urls]


def test_changed_pages_are_told_to_those_who_hold_them() -> None:
    """Own ones are believed or not, those of others are sent; one that cannot be looked up is not lost."""
    redis = Redis()
    mail, bench = exchange(redis)
    said: list[tuple[Address, float]] = []
    bench.frontier.changed = lambda pages, now: said.extend(pages) or 0  # type: ignore[method-assign, func-returns-value]
    mail.changed(announced("http://ours.test/1", "http://theirs.test/1"), bench.frontier, bench.now)
    redis.away = True
    with pytest.raises(StorageError):
        deliver(mail, bench)
    assert not mail.empty
    redis.away = False
    deliver(mail, bench)

    assert said == announced("http://ours.test/1")
    assert redis.posted == [(THEIRS, pack_message(Changed(announced("http://theirs.test/1"))))]
    assert mail.empty
    mail.changed(announced("http://ours.test/2", "http://theirs.test/2"), bench.frontier, bench.now)
    mail.deliver_now(bench.frontier, bench.now)
    assert said == announced("http://ours.test/1", "http://ours.test/2")
    assert len(redis.posted) == 2


def test_word_of_changed_pages_that_comes_during_a_commit_is_kept() -> None:
    """While Redis is asked about the earlier ones the event loop goes on, and a hub may push."""
    redis = Redis()
    mail, bench = exchange(redis)
    said: list[tuple[Address, float]] = []

    def believed(pages: Iterable[tuple[Address, float]], now: float) -> int:
        if not said:
            mail.changed(announced("http://ours.test/2"), bench.frontier, now)
        said.extend(pages)
        return 0

    bench.frontier.changed = believed  # type: ignore[method-assign]
    mail.changed(announced("http://ours.test/1"), bench.frontier, bench.now)
    deliver(mail, bench)

    assert said == announced("http://ours.test/1", "http://ours.test/2")
    assert mail.empty


def test_word_of_changed_pages_is_read() -> None:
    """An address that this version refuses is left out."""
    redis = Redis()
    mail, bench = exchange(redis)
    said: list[tuple[Address, float]] = []
    bench.frontier.changed = lambda pages, now: said.extend(pages) or 0  # type: ignore[method-assign, func-returns-value]
    redis.inboxes[OURS] = [
        pack_message(Changed(announced("http://ours.test/1"))),
        b'["changed",[["ftp://ours.test/",5.0]]]',
    ]
    asyncio.run(mail.read(bench.frontier, lambda: bench.now))

    assert said == announced("http://ours.test/1")


ANSWER_SECONDS = 10.0
LEASE_SECONDS = 60.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Seconds since boot, in the test's hand."""
    now = [1000.0]
    monkeypatch.setattr(redis_exchange, "since_boot", lambda: now[0])
    return lambda seconds: now.__setitem__(0, seconds)


def held(posted: list[tuple[int, bytes]] | None = None) -> HeldPartitions:
    """Of a store with ten partitions; a host's is its last digit."""
    outbox = SimpleNamespace(
        crowded=False, post=lambda *message: (posted if posted is not None else []).append(message)
    )
    store = SimpleNamespace(store=SimpleNamespace(partition=lambda host: int(host[-1])), outbox=outbox)
    return HeldPartitions(cast("Any", store), ANSWER_SECONDS)


def test_a_host_is_asked_only_while_its_answer_comes_within_the_lease(clock: Callable[[float], None]) -> None:
    """Ten seconds for an answer: the last ones of a lease begin nothing, and a renewal goes on."""
    ours = held()
    ours.take(1, 1000.0 + LEASE_SECONDS, 0.0)
    assert ours.may_ask("host1")
    assert not ours.may_ask("host2")

    clock(1000.0 + LEASE_SECONDS - ANSWER_SECONDS + 0.1)
    assert not ours.may_ask("host1")
    assert ours.mine("host1")
    ours.renewed(1050.0 + LEASE_SECONDS)
    assert ours.may_ask("host1")
    assert ours.ask_until("host1") == 1050.0 + LEASE_SECONDS


def test_a_partition_that_leaves_is_decided_about_no_more(clock: Callable[[float], None]) -> None:
    """It is held until it is dropped, so that what is unfinished can be stored."""
    ours = held()
    for partition in (1, 2):
        ours.take(partition, 2000.0, 0.0)
    ours.leaving.add(1)

    assert (ours.mine("host1"), ours.may_ask("host1"), 1 in ours, ours.all()) == (False, False, True, [1, 2])
    assert ours.staying() == [2]
    ours.drop(1)
    assert (1 in ours, ours.leaving, ours.all()) == (False, set(), [2])
    assert ours.ask_until("host1") == 0.0


def test_what_a_former_holder_may_have_asked_is_known_by_host() -> None:
    """Epoch seconds; 0 where it left in good order, and of hosts of others."""
    ours = held()
    ours.take(1, 2000.0, 1_800_000_000.0)
    ours.take(2, 2000.0, 0.0)

    assert [ours.unsure_until(f"host{number}") for number in (1, 2, 3)] == [1_800_000_000.0, 0.0, 0.0]


def test_a_message_goes_to_the_hosts_partition() -> None:
    """And is remembered as work, so that no worker takes the crawl for finished."""
    posted: list[tuple[int, bytes]] = []
    ours = held(posted)

    ours.send("host7", Links([]))

    assert [(partition, unpack_message(packed)) for partition, packed in posted] == [(7, Links([]))]
    assert ours.sent


def test_a_frontier_without_a_partition_owns_no_host() -> None:
    """As at the start of a worker: it is not the only process of its crawl."""
    nothing = held()

    bench = Bench(MemoryStore(), ownership=nothing)

    assert bench.frontier.hosts.ownership is nothing
    assert not bench.frontier.hosts.ownership.mine("host1")
