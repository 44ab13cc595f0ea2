"""A worker's frontier: what Redis has of it, how another takes it over, and what counts after a crash."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.errors import LeaseLost, OperatorError, StorageError, StoreForgot
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.copy.copying import take_all
from crawlerproject.stores.protocols import DUE_FACT, IN_MEMORY, Box, Changes, Due, HostFact, Posted, QueuedPage
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.copies import CopySize, PartitionCopies
from crawlerproject.stores.redis.forgetting import forgotten
from crawlerproject.stores.redis.journals import LISTENER, PartitionJournals
from crawlerproject.stores.redis.keys import fleet_keys
from crawlerproject.stores.redis.rejoining import Rejoining
from crawlerproject.stores.redis.worker_log import log_keys
from crawlerproject.stores.rocks import giving_store, journaled_store, partition_rows, rocks_store
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from crawlerproject.stores.rocks.row_packing import Row
from crawlerproject.stores.row_codec import JOURNAL_ROW, MESSAGES, host_prefix, partition_key
from tests.stores.conformance import ContentContract, DueContract, MessageContract, StoreContract
from tests.stores.conformance import row as plain_row
from tests.stores.journaled_crawls import (
    LEASE_MS,
    PARTITIONS,
    decided,
    end_lease,
    host_in,
    journals,
    numbers,
    opened,
    rows_here,
    rows_in_redis,
    take,
)
from tests.stores.redis_servers import RedisServer, redis_server

HOSTS = [host_in(number) for number in range(PARTITIONS)]
OUTBOX = b"another outbox.."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One server for the module."""
    with redis_server(tmp_path_factory.mktemp("redis"), "--appendfsync", "no") as started:
        yield started


@pytest.fixture
def store(server: RedisServer, tmp_path: Path) -> Iterator[JournaledStore]:
    """A worker of a new crawl that holds all of it."""
    with closing(opened(tmp_path, server.url)) as made:
        take(made)
        yield made


@pytest.fixture
def rival(server: RedisServer, tmp_path: Path, store: JournaledStore) -> Iterator[JournaledStore]:
    """Another worker of it that holds nothing."""
    with closing(opened(tmp_path, server.url, "two", store.journals.crawl)) as made:
        yield made


class TestJournaledStore(StoreContract, ContentContract, DueContract, MessageContract):
    """The contract, for a worker that holds every partition."""


def row(host: str, number: int) -> QueuedPage:
    """A queued page whose key begins as that of each page of its host."""
    return plain_row(host, number, key=host_prefix(host)[:8] + number.to_bytes(16, "big"))


def filled(number: int = 0) -> Changes:
    """A page that waits and one that is done on each host, and what is known of hosts."""
    return Changes(
        queued=[row(host, number) for host in HOSTS],
        pages=[(row(host, number + 500).key, decided(host, number + 500)) for host in HOSTS],
        hosts=[(host, b"state %d" % number) for host in HOSTS],
        robots=[(f"https://{host}", b"text") for host in HOSTS],
        facts=[(f"{kind}{host}", b"fact") for kind in HostFact for host in HOSTS] + [("warc", b"%d" % number)],
    )


def again(store: JournaledStore, server: RedisServer, tmp_path: Path) -> JournaledStore:
    """The next process of the worker."""
    store.close()
    return opened(tmp_path, server.url, store.journals.worker, store.journals.crawl)


def unsent(store: JournaledStore, partition: int) -> int:
    """Changes that Redis has not been given."""
    return len(list(store._opened().rows(MESSAGES, prefix=partition_key(JOURNAL_ROW, partition))))


def test_redis_has_what_is_synced(store: JournaledStore) -> None:
    """The rows of each partition, and the facts of the worker; then nothing waits here."""
    store.apply(filled())
    assert not store.quiet
    assert rows_in_redis(store, 0) == {}
    store.apply(Changes(removed=[row(HOSTS[0], 0)], facts=[(DUE_FACT, b"own")]))
    store.sync()
    assert store.quiet
    for partition in range(PARTITIONS):
        assert rows_in_redis(store, partition) == rows_here(store, partition) != {}
        assert unsent(store, partition) == 0
    assert store.journals.facts() == {"warc": b"0"}


@pytest.mark.parametrize("fails", ["opened", "release"])
def test_a_lease_is_not_kept_when_taking_its_partition_failed(
    store: JournaledStore, rival: JournaledStore, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """Redis went away between two questions: the leases end by themselves, and any worker takes the partitions then."""
    store.apply(filled())
    store.sync()
    store.give_back(0, 1)

    def away(*_: object) -> None:
        raise StorageError("no answer")

    with monkeypatch.context() as broken:
        broken.setattr(rival.journals, fails, away)
        with pytest.raises(StorageError):
            rival.take_some([0, 1], LEASE_MS, most_seconds=0.0)  # the second is given back
    assert rival.journals.held == {}
    assert rival.quiet
    assert rival.journals.renew(LEASE_MS) == []
    end_lease(rival, 0, 1)
    assert set(take(store, 0, 1)) == {HOSTS[0], HOSTS[1]}
    store.apply(filled(1))
    store.sync()
    assert rows_in_redis(store, 0) == rows_here(store, 0) != {}


@pytest.mark.parametrize("waits", [False, True])
def test_a_command_takes_nothing_for_the_crawl_that_is_a_part_of_it(
    store: JournaledStore, rival: JournaledStore, *, waits: bool
) -> None:
    """Redis has lost data, and workers stop, or wait for others: what they have would count no more."""
    store.journals.release([*range(PARTITIONS)])
    if waits:
        Rejoining(store.journals.link, store.journals.crawl, "one").begin(["three"], {0: (1, 1)})
    else:
        forgotten(store.journals.link, store.journals.crawl, "lacks something")
    with pytest.raises(OperatorError, match="Redis has lost some"):
        take_all(rival, LEASE_MS)
    assert rival.journals.held == {}


def test_another_takes_over_what_a_dead_worker_had(
    store: JournaledStore, rival: JournaledStore, tmp_path: Path
) -> None:
    """All rows of its partitions, though its disk is gone; and what the taker has of them is what counts from then."""
    store.apply(filled())
    store.sync()
    before = [rows_here(store, partition) for partition in range(PARTITIONS)]
    end_lease(store)
    assert sorted(take(rival)) == sorted(HOSTS)
    assert [rows_here(rival, partition) for partition in range(PARTITIONS)] == before
    assert rival.head(HOSTS[0], 9) == [row(HOSTS[0], 0)]
    rival.apply(Changes(removed=[row(HOSTS[0], 0)]))
    rival.sync()
    store.apply(filled(1))
    with pytest.raises(LeaseLost):
        store.sync()
    assert rival.head(HOSTS[0], 9) == []
    assert rows_in_redis(rival, 0) == rows_here(rival, 0)


def test_a_worker_that_comes_back_has_its_rows(
    store: JournaledStore, server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It loads none of them; no host is due yet, and none counts before its partition is held."""
    store.apply(filled())
    store.apply(Changes(due=[(HOSTS[0], None, 5), (HOSTS[1], None, IN_MEMORY)], facts=[(DUE_FACT, b"counts")]))
    store.sync()
    with monkeypatch.context() as patch, closing(again(store, server, tmp_path)) as later:
        patch.setattr(PartitionCopies, "stored", None)
        assert later.due(9, Due(IN_MEMORY, "")) == []
        assert later.fact(DUE_FACT) is None
        assert list(later.hosts_with_work()) == []
        assert take(later, 0) == HOSTS[:1]
        assert list(later.hosts_with_work()) == HOSTS[:1]
        assert rows_here(later, 0) == rows_in_redis(later, 0)
        later.give_back(0)
        assert take(later, 0) == HOSTS[:1]
        assert rows_here(later, 0) == rows_in_redis(later, 0)


def test_what_was_not_given_to_redis_does_not_count(store: JournaledStore, server: RedisServer, tmp_path: Path) -> None:
    """Neither rows nor facts, be they the first of their name: the archive is cut by them."""
    store.apply(filled())
    store.sync()
    store.apply(filled(1))
    store.apply(Changes(facts=[("seeds", b"known")]))
    with closing(again(store, server, tmp_path)) as later:
        assert (later.fact("warc"), later.fact("seeds")) == (b"0", None)
        take(later)
        assert later.head(HOSTS[0], 9) == [row(HOSTS[0], 0)]
        assert rows_here(later, 0) == rows_in_redis(later, 0)
        later.apply(filled(2))
        later.sync()
        assert rows_here(later, 0) == rows_in_redis(later, 0)


def test_a_capture_that_is_cut_off_is_no_payloads_first(
    store: JournaledStore, server: RedisServer, tmp_path: Path
) -> None:
    """Of a page, or of a robots.txt; those that Redis has been given stay."""
    original = Original("<urn:uuid:12345678-1234-4234-8234-123456789abc>", "http://a/", "2026-11-21T10:11:12Z")
    digests = [bytes([number]) * 20 for number in range(3)]
    store.apply(Changes(payloads=[(digests[0], original)]))
    store.sync()
    store.apply(Changes(payloads=[(digests[1], original)], robots=[(f"http://{HOSTS[0]}", b"text")]))
    store.apply(Changes(payloads=[(digests[2], original)]))
    assert [store.original(digest) for digest in digests] == [original] * 3
    with closing(again(store, server, tmp_path)) as later:
        assert [later.original(digest) for digest in digests] == [original, None, None]
        later.apply(Changes(payloads=[(digests[1], original)]))
        later.sync()
        with closing(again(later, server, tmp_path)) as last:
            assert [last.original(digest) for digest in digests] == [original, original, None]


def test_a_change_that_redis_got_without_an_answer_counts(
    store: JournaledStore, server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker died before it knew."""
    store.apply(filled())
    commit = PartitionJournals.commit

    def lost(*given: object) -> None:
        commit(*given)  # type: ignore[arg-type]
        raise StorageError("lost")

    with monkeypatch.context() as patch:
        patch.setattr(PartitionJournals, "commit", lost)
        with pytest.raises(StorageError):
            store.sync()
    with closing(again(store, server, tmp_path)) as later:
        assert later.fact("warc") == b"0"
        take(later)
        assert later.head(HOSTS[3], 9) == [row(HOSTS[3], 0)]


def test_a_host_is_known_to_the_next_holder_though_it_came_late(store: JournaledStore, rival: JournaledStore) -> None:
    """What a message says of a partition that was given back makes no host known there that its journal lacks."""
    store.give_back(0)
    store.apply(Changes(hosts=[(HOSTS[0], b"late")]))
    assert take(store, 0) == []
    assert rows_here(store, 0) == {}
    store.apply(Changes(queued=[row(HOSTS[0], 1)]))
    store.sync()
    store.give_back(0)
    store.apply(Changes(queued=[row(HOSTS[0], 2)]))  # of no effect
    assert take(store, 0) == HOSTS[:1]
    assert store.head(HOSTS[0], 9) == [row(HOSTS[0], 1)]
    store.give_back(0)
    assert take(rival, 0) == HOSTS[:1]
    assert rival.head(HOSTS[0], 9) == [row(HOSTS[0], 1)]


def test_a_partition_is_given_back_with_all_that_was_changed(store: JournaledStore, rival: JournaledStore) -> None:
    """Synced or not."""
    store.apply(filled())
    store.give_back(2)
    assert take(rival, 2) == [HOSTS[2]]
    assert rival.head(HOSTS[2], 9) == [row(HOSTS[2], 0)]


def test_what_is_given_back_stays_until_another_has_it(
    store: JournaledStore, rival: JournaledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what was taken and not yet loaded; rows that are ahead of the other's are none to be taken again."""
    store.apply(filled())
    store.give_back(2, 3)
    before = rows_here(store, 2)
    store.copy_some()
    with monkeypatch.context() as patch, pytest.raises(StorageError):
        patch.setattr(PartitionJournals, "opened", lambda *_: (_ for _ in ()).throw(StorageError("away")))
        take(rival, 2)
    store.copy_some()
    assert rows_here(store, 2) == before != {}
    assert sorted(store.marks()) == [0, 1, 2, 3]
    take(rival, 2)
    store.copy_some()
    assert rows_here(store, 2) == {}
    assert sorted(store.marks()) == [0, 1, 3]
    rival.apply(Changes(removed=[row(HOSTS[2], 0)]))
    rival.give_back(2)
    assert take(store, 2, 3) == [HOSTS[2], HOSTS[3]]
    assert (store.head(HOSTS[2], 9), store.head(HOSTS[3], 9)) == ([], [row(HOSTS[3], 0)])
    rival.copy_some()
    assert rows_here(rival, 2) == {}


@pytest.mark.parametrize("taken", ["not at all", "and not loaded", "loaded", "and given back"])
def test_what_was_given_back_outlives_redis(
    server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    """The worker that had it whole last has the latest rows; both workers come back to an empty server."""
    crawl = f"given-{next(numbers)}"
    with (
        closing(opened(tmp_path, server.url, "one", crawl, crawl_id="before")) as one,
        closing(opened(tmp_path, server.url, "two", crawl, crawl_id="before")) as two,
    ):
        take(one)
        one.apply(filled())
        one.give_back(1)
        if taken == "and not loaded":
            with monkeypatch.context() as patch, pytest.raises(StorageError):
                patch.setattr(partition_rows, "put", lambda *_: (_ for _ in ()).throw(StorageError("away")))
                take(two, 1)
        elif taken != "not at all":
            take(two, 1)
            two.apply(Changes(removed=[row(HOSTS[1], 0)], queued=[row(HOSTS[1], 9)]))
            two.sync()
            if taken == "and given back":
                two.give_back(1)
        for each in (one, two):
            each.copy_some()
        latest = one if taken in ("not at all", "and not loaded") else two
        before = rows_here(latest, 1)
    one.journals.link.call("FLUSHALL")
    link, later = RedisLink(server.url), dict[str, JournaledStore]()
    for worker in ("two", "one"):
        later[worker] = opened(tmp_path, server.url, worker, crawl, crawl_id="after", rejoins=True)
        Rejoining(link, crawl, worker).begin(["one", "two"], later[worker].marks())
    pending = Rejoining(link, crawl, "one").look()
    assert pending is not None
    assert pending.marks == {number: latest.journals.worker if number == 1 else "one" for number in range(PARTITIONS)}
    finder = later[latest.journals.worker]
    assert finder.take(1, LEASE_MS, latest=True) is not None
    assert rows_here(finder, 1) == rows_in_redis(finder, 1) == before != {}
    other = later["two" if finder is later["one"] else "one"]
    finder.give_back(1)
    assert take(other, 1) == [HOSTS[1]]
    assert rows_here(other, 1) == before
    for store in later.values():
        store.close()
    link.close()


def test_a_message_that_comes_late_is_not_known_as_read(store: JournaledStore) -> None:
    """What was read of a partition that was given back, and no journal has, does not count when it is taken again."""
    store.apply(filled())
    store.give_back(1)
    store.apply(Changes(queued=[row(HOSTS[1], 9)], read=[(Box(1, OUTBOX), 7)]))
    take(store, 1)
    assert store.messages.read_up_to(Box(1, OUTBOX)) == 0
    assert store.head(HOSTS[1], 9) == [row(HOSTS[1], 0)]
    assert rows_here(store, 1) == rows_in_redis(store, 1)


def test_messages_are_posted_before_what_has_caused_them(store: JournaledStore) -> None:
    """A page whose links found no room in Redis is not known as done."""
    store.apply(
        Changes(pages=[(row(HOSTS[0], 1).key, decided(HOSTS[0], 1))], messages=[(1, b"link"), (LISTENER, b"h")])
    )
    store.journals.link.call("CONFIG", ["SET"], "maxmemory", 1)
    with pytest.raises(StorageError, match="no memory left"):
        store.sync()
    store.journals.link.call("CONFIG", ["SET"], "maxmemory", 0)
    assert rows_in_redis(store, 0) == {}
    store.sync()
    assert rows_in_redis(store, 0) == rows_here(store, 0)
    [inbox] = store.unread([1], 9).values()
    assert inbox.messages == [Posted(store.messages.outbox, 1, b"link")]


def test_a_message_takes_effect_once(store: JournaledStore, rival: JournaledStore) -> None:
    """It is a row of its sender's until its effect is in a journal; what is posted again is known as read."""
    store.give_back(0)
    take(rival, 0)
    store.apply(Changes(messages=[(0, b"one"), (0, b"two")]))
    store.sync()
    box = Box(0, store.messages.outbox)
    assert [packed for _, packed in store.messages.of(box, 0, 9, 99)] == [b"one", b"two"]
    [inbox] = rival.unread(range(PARTITIONS), 1).values()
    rival.apply(Changes(queued=[row(HOSTS[0], 1)], read=[(box, 1)]))
    rival.read(0, inbox)
    assert rival.unread([0], 9) == {}  # until it has left the inbox
    assert not rival.quiet
    rival.sync()
    store.sync()
    assert [packed for _, packed in store.messages.of(box, 0, 9, 99)] == [b"two"]
    assert not store.quiet
    [inbox] = rival.unread([0], 9).values()
    assert inbox.removed == 1
    assert inbox.messages == [Posted(box.outbox, 2, b"two", 1)]
    end_lease(rival, 0)
    take(store, 0)
    assert store.messages.read_up_to(box) == 1


def test_each_message_names_the_one_before_it_that_is_still_kept(store: JournaledStore, rival: JournaledStore) -> None:
    """Until its effect is known that one could be lost with the server that has it."""
    store.give_back(0)
    take(rival, 0)
    box = Box(0, store.messages.outbox)
    for number, packed in enumerate((b"one", b"two", b"three"), 1):
        store.apply(Changes(messages=[(0, packed)]))
        store.sync()
        inbox = rival.unread([0], 9)[0]
        assert [each.after for each in inbox.messages] == ([0], [0, 1], [0])[number - 1]
        if number == 2:
            rival.apply(Changes(read=[(box, 2)]))
            rival.read(0, inbox)
            rival.sync()
            store.sync()


def test_how_far_an_outbox_was_read_is_forgotten_once_it_has_no_messages(
    store: JournaledStore, rival: JournaledStore, server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When its worker has another one, and the inbox has nothing of it; of one that has messages it is kept."""
    monkeypatch.setattr(journaled_store, "_LEAST_COPIED_BYTES", 0)
    monkeypatch.setattr(giving_store, "_LOG_BYTES", 0)
    store.give_back(0)
    take(rival, 0)

    def read(up_to: dict[bytes, int]) -> None:
        changes = filled()
        changes.read += [(Box(0, outbox), number) for outbox, number in up_to.items()]
        rival.apply(changes)
        rival.read(0, rival.unread([0], 9)[0])

    def kept() -> list[bytes]:
        """After a copy, in all places."""
        rival.sync()
        rival._copied[0] = CopySize()  # a whole one is due, whatever the last one's size
        rival.copy_some()
        here = [outbox for outbox, _ in partition_rows.read_up_to(rival.tables, 0)]
        marks = rival.journals.link.call("HKEYS", [rival.journals._ledgers[0]])
        assert [mark[2:] for mark in sorted(marks) if mark.startswith(b"0=")] == here
        assert rows_in_redis(rival, 0) == rows_here(rival, 0)
        return here

    outboxes = [store.messages.outbox]
    store.apply(Changes(messages=[(0, b"read")]))
    store.sync()
    read({outboxes[0]: 1})
    assert kept() == outboxes
    store.sync()  # it knows of that
    store.apply(Changes(messages=[(1, b"never posted")]))
    with closing(again(store, server, tmp_path)) as second:
        outboxes.append(second.messages.outbox)
        take(second, 1)
        second.apply(Changes(messages=[(0, b"read")]))
        second.sync()
        read({outboxes[1]: 1})
        assert kept() == sorted(outboxes)  # the first one has a message for another
        second.apply(Changes(read=[(Box(1, outboxes[0]), 2)]))
        second.read(1, second.unread([1], 9)[1])
        second.sync()
        second.sync()
        second.apply(Changes(messages=[(0, b"posted by the next")]))
    with closing(again(second, server, tmp_path)) as third:
        third.sync()
        read({outboxes[1]: 2})
        assert kept() == outboxes[1:]
        third.sync()
    with closing(again(third, server, tmp_path)) as fourth:
        fourth.apply(Changes(messages=[(0, b"last")]))
        fourth.sync()
        rival.apply(filled(1))
        assert kept() == outboxes[1:]  # until the inbox is empty
        read({fourth.messages.outbox: 1})
        assert kept() == [fourth.messages.outbox]


def test_what_waits_while_redis_is_away_is_in_rows(store: JournaledStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory has the first few of a box alone; all are posted in their order, what is written meanwhile too."""
    monkeypatch.setattr(giving_store, "_MOST_BYTES", 1_000)
    number, most, post = 0, giving_store._MOST_LETTERS, store.journals.post

    def write(count: int) -> None:
        nonlocal number
        for _ in range(count):
            number += 1
            store.apply(Changes(messages=[(1, b"%d" % number)]))

    def posted(posts: list[tuple[int, Posted]]) -> None:
        post(posts)
        write(1)

    box = Box(1, store.messages.outbox)
    write(3 * most)
    assert len(store._letters[box]) == most
    with monkeypatch.context() as patch:
        patch.setattr(store.journals, "post", posted)
        store.sync()
    store.sync()
    assert (store._letters[box], store._in_rows) == ([], {})
    write(1)
    assert len(store._letters[box]) == 1
    store.sync()
    [inbox] = store.unread([1], 2 * number).values()
    assert [(each.number, each.packed) for each in inbox.messages] == [(n, b"%d" % n) for n in range(1, number + 1)]
    assert number > 3 * most + 1


@pytest.mark.parametrize("workers", [1, 4])
def test_an_inbox_without_a_holder_does_not_grow(
    store: JournaledStore, rival: JournaledStore, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """More waits at its sender, also of a partition that is given back later; that of others goes on.

    Those of a fleet have one window together: what Redis does with a message is no more in a large one.
    """
    monkeypatch.setattr(giving_store, "_FORGOTTEN_AT_ONCE", 1_000_000)
    monkeypatch.setattr(giving_store, "_WINDOW_BYTES", 2_000 * workers)
    store.share_inboxes(workers)
    store.give_back(0)
    for number in range(100):
        store.apply(filled())
        store.apply(Changes(messages=[(0, b"%300d" % number), (1, b"%300d" % number)]))
        store.sync()
        if number % 9 == 8:  # what is here is read, as ever
            store.read(1, store.unread([1], 5)[1])
    for _ in range(30):
        if (inbox := store.unread([1], 99).get(1)) is not None:
            store.read(1, inbox)
        store.sync()
    take(rival, 0)
    got = list[bytes]()
    for _ in range(100):
        if (inbox := rival.unread([0], 99).get(0)) is not None:
            assert len(inbox.messages) <= 2_000 / 300 + 1
            got += [each.packed for each in inbox.messages]
            rival.apply(Changes(read=[(Box(0, each.outbox), each.number) for each in inbox.messages[-1:]]))
            rival.read(0, inbox)
            rival.sync()
        store.apply(filled())
        store.sync()
        assert len(got) == 100 or not store.quiet
    store.sync()
    assert store.quiet
    assert got == [b"%300d" % number for number in range(100)]


def test_messages_of_an_earlier_process_are_posted(store: JournaledStore, server: RedisServer, tmp_path: Path) -> None:
    """What it had written and not sent, or sent and not known as read."""
    store.apply(Changes(messages=[(1, b"sent")]))
    store.sync()
    store.apply(Changes(messages=[(1, b"left")]))
    with closing(again(store, server, tmp_path)) as later:
        take(later, 1)
        later.sync()
        [inbox] = later.unread([1], 9).values()
        assert [each[1:] for each in inbox.messages] == [(1, b"sent", 0), (1, b"sent", 0), (2, b"left", 1)]


def test_a_copy_made_while_it_changes_is_taken_over(
    store: JournaledStore, rival: JournaledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the copy has too early is in the journal before it counts; another time there is nothing to copy."""
    monkeypatch.setattr(journaled_store, "_LEAST_COPIED_BYTES", 0)
    monkeypatch.setattr(giving_store, "_LOG_BYTES", 0)
    monkeypatch.setattr(partition_rows, "ROWS_AT_A_TIME", 2)
    for partition in (1, 2, 3):
        store.give_back(partition)
    store.apply(filled())
    store.sync()
    all_rows, number = partition_rows.all_rows, 10

    def changed(*of: object) -> Iterator[Row]:
        nonlocal number
        for each in all_rows(*of):  # type: ignore[arg-type]
            yield each
            store.apply(Changes(queued=[row(HOSTS[0], number)], removed=[row(HOSTS[0], number - 1)]))
            number += 1

    with monkeypatch.context() as patch:
        patch.setattr(partition_rows, "all_rows", changed)
        store.copy_some()
    lease = store.journals.link.call("HGETALL", [store.journals._keys[0].lease])
    assert int(lease[b"copy"]) > 0
    assert b"copying" not in lease
    assert rows_in_redis(store, 0) == rows_here(store, 0)
    end_lease(store, 0)
    take(rival, 0)
    assert rows_here(rival, 0) == rows_here(store, 0)


def test_a_copy_does_not_count_what_redis_was_not_given(
    store: JournaledStore, rival: JournaledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies just then has archived nothing that is known as done and lost."""
    monkeypatch.setattr(journaled_store, "_LEAST_COPIED_BYTES", 0)
    monkeypatch.setattr(giving_store, "_LOG_BYTES", 0)
    store.apply(filled())
    store.sync()
    store.apply(filled(1))
    with monkeypatch.context() as patch:
        patch.setattr(PartitionJournals, "commit", lambda *_: (_ for _ in ()).throw(StorageError("away")))
        with pytest.raises(StorageError):
            store.copy_some()
    end_lease(store)
    take(rival)
    for host in HOSTS:
        assert rival.head(host, 9) == [row(host, 0)]


def test_redis_that_came_back_without_the_last_changes_has_forgotten(
    store: JournaledStore, server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is cut back to what it knows: at the next change, at the next start, or as a partition is taken."""
    monkeypatch.setattr(giving_store, "_LOG_BYTES", 0)
    store.apply(filled())
    store.sync()
    facts = fleet_keys(store.journals.crawl).facts
    store.journals.link.call(
        "HSET", [store.journals._ledgers[0]], 0, store.journals.held[0].to_bytes(8, "big") + bytes(16)
    )
    store.apply(filled(1))
    with pytest.raises(StoreForgot):
        store.sync()
    with pytest.raises(StoreForgot):
        again(store, server, tmp_path)
    link = RedisLink(server.url)
    link.call("DEL", [log_keys(store.journals.crawl, "one").log])
    link.call("HDEL", [facts], "forgot")
    with closing(again(store, server, tmp_path)) as later, pytest.raises(StoreForgot):
        take(later, 0)
    link.close()


def test_a_full_disk_is_mended_once_no_thread_reads_it(store: JournaledStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads sync and copy while the loop applies changes; all of it is in Redis in the end."""
    monkeypatch.setattr(journaled_store, "_LEAST_COPIED_BYTES", 0)
    monkeypatch.setattr(rocks_store, "_OPENING_BYTES", 1)
    done, errors = threading.Event(), list[BaseException]()

    def work() -> None:
        try:
            while not done.is_set():
                with contextlib.suppress(StorageError):  # a copy ends where the tables must be opened again
                    store.sync()
                    store.copy_some()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(200):
        store.apply(filled(number))
        store.apply(Changes(messages=[(number % PARTITIONS, b"message")]))
        if number % 50 == 49:
            store._failed = True  # as after a write that found no room
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []
    store.sync()
    for partition in range(PARTITIONS):
        assert rows_in_redis(store, partition) == rows_here(store, partition)
    assert store.journals.facts()["warc"] == b"199"


def test_what_is_here_counts_until_redis_has_it_again(server: RedisServer, tmp_path: Path) -> None:
    """After a loss, also when the first process that rejoins is killed: its archive is not cut to nothing."""
    with closing(opened(tmp_path, server.url, crawl_id="before")) as store:
        take(store)
        store.apply(filled())
        store.sync()
        store.apply(filled(1))
        before = rows_here(store, 0)
    crawl = f"emptied-{store.journals.crawl}"
    with closing(JournaledStore(tmp_path / "one", journals(server.url, "one", crawl, crawl_id="after"), rejoins=True)):
        pass
    for _ in range(2):
        with closing(opened(tmp_path, server.url, "one", crawl, crawl_id="after")) as later:
            assert later.fact("warc") == b"1"
            later.sync()
            assert later.journals.facts()["warc"] == b"1"
    with closing(opened(tmp_path, server.url, "one", crawl, crawl_id="after")) as later:
        assert later.take(0, LEASE_MS, latest=True) is not None
        assert rows_here(later, 0) == rows_in_redis(later, 0) == before
        later.apply(Changes(facts=[("warc", b"2")]))
    with closing(opened(tmp_path, server.url, "one", crawl, crawl_id="after")) as later:
        assert later.fact("warc") == b"1"


def test_a_new_folder_begins_with_what_redis_has(store: JournaledStore, server: RedisServer, tmp_path: Path) -> None:
    """Of a worker whose disk was lost."""
    store.apply(filled())
    store.sync()
    store.close()
    shutil.rmtree(tmp_path / "one")
    with closing(again(store, server, tmp_path)) as later:
        assert later.fact("warc") == b"0"
        assert sorted(take(later)) == sorted(HOSTS)
        assert rows_here(later, 3) == rows_in_redis(later, 3)
        assert later.take(0, LEASE_MS) is not None  # as after an answer that was lost


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_what_came_after_a_lost_answer_is_given_as_well(
    store: JournaledStore, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Changes leave packed together: those that Redis may have by now must not hold what came since."""
    commit, tries = store.journals.commit, 0

    def broken(*given: object) -> None:
        nonlocal tries
        tries += 1
        if lost == "answer":
            commit(*given)  # type: ignore[arg-type]
        raise StorageError("Redis does not answer")

    for number in range(6):
        store.apply(filled(10 * number))
        store.apply(Changes(removed=[row(host, 10 * number) for host in HOSTS]))
        if number % 3 < 2:
            monkeypatch.setattr(store.journals, "commit", broken)
            with pytest.raises(StorageError):
                store.sync()
        else:
            monkeypatch.setattr(store.journals, "commit", commit)
            store.sync()
    assert tries == 4
    for partition in range(PARTITIONS):
        assert rows_in_redis(store, partition) == rows_here(store, partition) != {}
