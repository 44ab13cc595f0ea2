"""A stopped crawl's frontier copied from its folder to where workers meet (Redis), or back, and compared.

Redis gets a copy of each partition (``stores/redis/copies.py``), as a worker gives it; back, all partitions are
taken, as by one worker. A copy that was interrupted goes on behind its last partition. One that is not whole cannot be
crawled: the folder has its name only at the end, and in Redis the crawl says that it is being copied until then.
"""

from __future__ import annotations

import socket
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from crawlerproject.errors import LeaseLost, OperatorError
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.protocols import ARCHIVE_FACT, DUE_FACT, Box, Posted, Text
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.copies import listed
from crawlerproject.stores.redis.forgetting import lost_some
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.keys import (
    COPYING,
    CRAWL_ID,
    FORGOT,
    MOVED,
    fleet_keys,
    partition_keys,
    payloads_key,
    worker_keys,
)
from crawlerproject.stores.redis.rejoining import Rejoining
from crawlerproject.stores.redis.texts import RedisTexts
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from crawlerproject.stores.rocks.partition_rows import MARK_FACT, all_parts, list_hosts, of_all_hosts, put
from crawlerproject.stores.rocks.rocks_store import UNREAD_FACT, RocksMessages
from crawlerproject.stores.rocks.rocks_tables import Tables, open_to_write
from crawlerproject.stores.rocks.row_packing import unpack_rows

OWN_FACTS = frozenset({tables.FORMAT_FACT, ARCHIVE_FACT, "clean", "copied", "copied from", DUE_FACT})
"""About a folder and its process, not about the crawl; "copied": of versions up to 1.7."""
_WORKER = "state-copy"
# Longer than a change takes by far, short enough that a worker does not wait long for a copy that was killed.
_LEASE_MS = 30_000
_ROWS = 1000

# What is counted, as it is named to the operator.
_WORDS = {
    tables.HOSTS: "hosts",
    tables.SEEN: "known URLs",
    tables.PAGES: "pages",
    tables.QUEUE: "queued URLs",
    tables.ROBOTS: "robots.txt",
    tables.PRINTS: "fingerprints",
}
_LOOKED_AT = ("hosts", "pages")

Say = Callable[[str], None]
Join = Callable[[str, list[bytes]], bytes]
"""One value of a fact of this name, from those of several workers."""
T = TypeVar("T")


class RedisCrawl(NamedTuple):
    """A crawl in Redis: where, its name, how many partitions a new one gets, how many texts it knows, and where copies
    of its partitions go, as ``copies_url`` has it.
    """

    url: str
    name: str
    partitions: int = 0
    max_texts: int = 0
    place_url: str = ""


class Copied(NamedTuple):
    """A copy that was compared with its source: what both hold, and how many pages and hosts were looked at whole."""

    counts: dict[str, int]
    looked_at: int


@contextmanager
def _alone(crawl: str) -> Iterator[None]:
    try:
        yield
    except LeaseLost as error:
        raise OperatorError(
            f"A worker began to work on the crawl {crawl!r} meanwhile; stop it, then run this again."
        ) from error


def at_work(crawl: str) -> OperatorError:
    """What is said when a partition is held."""
    return OperatorError(f"A worker is at work on the crawl {crawl!r}; stop all of them (Ctrl-C), then run this again.")


def journals_of(
    link: RedisLink, crawl: str, worker: str, partitions: int = 0, *, copying: bool = False, place_url: str = ""
) -> PartitionJournals:
    """For a command, to be written under the name ``worker``. OperatorError."""
    crawl_id = (link.call("HGET", [fleet_keys(crawl).facts], CRAWL_ID) or b"").decode()
    made = PartitionJournals(link, crawl, worker, partitions, crawl_id, copying=copying, place_url=place_url)
    made.begin(uuid.uuid4().hex)
    return made


def end(journals: PartitionJournals) -> None:
    """Give all partitions back, and leave nothing of the command's. StorageError."""
    journals.release(list(journals.held))
    journals.end()


# --- from a folder --------------------------------------------------------------------------------


def to_redis(source: Path, stamp: str, target: RedisCrawl, whole: Callable[[], None], say: Say) -> Copied:
    """Copy the frontier in the folder ``source``, which no process writes; ``stamp`` changes whenever it is crawled.

    ``whole`` is called before the copy may be crawled: the source must not be from then on.
    Raises OperatorError when there is another crawl already, StorageError when Redis goes away: copy again then.
    """
    crawl, facts = target.name, fleet_keys(target.name).facts
    with closing(open_to_write(source)) as rocks, closing(RedisLink(target.url)) as link, _alone(crawl):
        begun, known = (value and value.decode() for value in link.call("HMGET", [facts], COPYING, "format"))
        if begun is None and known is not None:
            raise OperatorError(f"There is a crawl {crawl!r} at {link.place} already; choose another FLEET_CRAWL.")
        if begun is not None and begun != stamp:
            raise OperatorError(
                f"What is copied was crawled since the crawl {crawl!r} at {link.place} was begun; remove that and copy "
                "again."
            )
        link.call("HSET", [facts], COPYING, stamp)
        journals = journals_of(link, crawl, _WORKER, target.partitions, copying=True, place_url=target.place_url)
        _give_copies(rocks, journals, say)
        _give_others(rocks, journals, target.max_texts)
        copied = compare(rocks, journals)
        end(journals)
        whole()
        link.call("HDEL", [facts], COPYING)
        return copied


def _give_copies(rocks: Tables, journals: PartitionJournals, say: Say) -> None:
    left = []
    for partition in range(journals.partitions):
        taken = journals.acquire(partition, _LEASE_MS)
        if taken is None:
            raise at_work(journals.crawl)
        if not taken.copy:
            left.append(partition)
    if len(left) < journals.partitions:
        say(f"goes on in partition {left[0] if left else journals.partitions:,}")
    put(rocks, _kept((row for _, row in list_hosts(rocks, journals.partition)), journals))
    for partition in left:
        parts = _kept(all_parts(rocks, partition), journals)
        if (first := next(parts, None)) is not None:
            journals.begun(partition)
            journals.copies.copy(partition, 1, chain([first], parts), tick=partial(journals.keep, _LEASE_MS))


def _kept(each: Iterable[T], journals: PartitionJournals) -> Iterator[T]:
    """The same; leases are renewed meanwhile."""
    for one in each:
        journals.keep(_LEASE_MS)
        yield one


def _give_others(rocks: Tables, journals: PartitionJournals, max_texts: int) -> None:
    """What is of no partition, and messages that workers of one machine wrote and none has read. May be done again."""
    link, crawl = journals.link, journals.crawl
    payloads = _kept(rocks.rows(tables.PAYLOADS), journals)
    while some := list(islice(payloads, _ROWS)):
        link.many([Call("HSETNX", [payloads_key(crawl, key)], [key, value]) for key, value in some])
    if max_texts:
        texts = RedisTexts(link, crawl, max_texts)
        prints = _kept(rocks.rows(tables.PRINTS, prefix=tables.FIRST_TABLE), journals)
        while some := list(islice(prints, _ROWS)):
            texts.exchange([text for row in some if (text := _text(rocks, *row)) is not None], [], 0)
    mail = RocksMessages(lambda: rocks)
    for key, packed in rocks.rows(tables.MESSAGES, prefix=bytes((tables.MESSAGE_ROW,))):
        box, number = tables.box_of(key), tables.number_of(key)
        if number > mail.read_up_to(box):
            journals.post([(box.partition, Posted(box.outbox, number, packed))])
    state = worker_keys(crawl, "").state
    for key, value in rocks.rows(tables.FACTS):
        if not tables.HOST_OF[tables.FACTS](key, value) and (name := key.decode(*tables.TEXT)) not in OWN_FACTS:
            link.call("HSET", [state], f"fact:{name}", value)


def _text(rocks: Tables, key: bytes, page: bytes) -> Text | None:
    """What a row of the first table of all hosts says."""
    if (record := rocks.get(tables.PAGES, page)) is None:
        return None
    return Text(int.from_bytes(key[-tables.FINGERPRINT_BYTES :], "big"), page, tables.unpack_record(record).url)


# --- into a folder --------------------------------------------------------------------------------


def to_rocks(source: RedisCrawl, target: Path, join: Join, whole: Callable[[], None], say: Say) -> Copied:
    """Copy a crawl in Redis, at which no worker is, into the new folder ``target``; the source cannot be crawled then.

    ``whole`` is called before the copy gets its name.
    Raises OperatorError when there is another frontier or a worker, StorageError when Redis or the disk has trouble.
    """
    if target.exists() and any(target.iterdir()):  # a start that was refused has made the folder
        raise OperatorError(f"There is a frontier in {target} already; choose another folder.")
    unfinished = target.with_name(f"{target.name}.copying")
    crawl = source.name
    link = RedisLink(source.url)
    if link.call("HGET", [fleet_keys(crawl).facts], "format") is None:
        raise OperatorError(f"There is no crawl {crawl!r} at {link.place}; set FLEET_CRAWL to the name of one.")
    journals = journals_of(link, crawl, _WORKER)
    with closing(JournaledStore(unfinished, journals)) as store, _alone(crawl):
        if done := sum(1 for _ in store.facts(MARK_FACT)):
            say(f"goes on behind unit {done:,}")
        take_all(store, _LEASE_MS)
        rocks = store.tables
        _take_others(rocks, journals, join)
        copied = compare(rocks, journals)
        rows = [(tables.MESSAGES, key, None) for key, _ in rocks.rows(tables.MESSAGES)]
        marks = [(tables.FACTS, key, None) for key, _ in rocks.rows(tables.FACTS, prefix=MARK_FACT.encode())]
        put(rocks, [*rows, *marks])
        rocks.sync()
        end(journals)
        link.call("HSET", [fleet_keys(crawl).facts], MOVED, f"{socket.gethostname()}:{target.parent}")
    whole()
    unfinished.rename(target)
    return copied


def take_all(store: JournaledStore, lease_ms: int) -> None:
    """Take every partition. Raises OperatorError when a worker is at work, or Redis does not have the latest rows."""
    link, crawl, worker = store.journals.link, store.journals.crawl, store.journals.worker
    if link.call("HEXISTS", [fleet_keys(crawl).facts], FORGOT) or Rejoining(link, crawl, worker).look() is not None:
        raise lost_some(crawl)
    for partition in range(store.partitions):
        if store.take(partition, lease_ms) is None:
            raise at_work(store.journals.crawl)
        store.journals.keep(lease_ms)


def _take_others(rocks: Tables, journals: PartitionJournals, join: Join) -> None:
    """What one process needs besides: fingerprints of all hosts, first captures, unread messages, the crawl's facts."""
    link, crawl = journals.link, journals.crawl
    for key, page in _kept(rocks.rows(tables.PRINTS, behind=tables.OF_ALL_HOSTS + b"\xff"), journals):
        put(rocks, ((tables.PRINTS, *row) for row in of_all_hosts(key, page)))
    for some in _kept(journals.every_original(), journals):
        put(rocks, ((tables.PAYLOADS, key, value) for key, value in some.items()))
    facts = _crawl_facts(link, crawl, join) | {UNREAD_FACT: b"%d" % journals.partitions}
    mail = RocksMessages(lambda: rocks)
    for partition, inbox in journals.unread(range(journals.partitions), 1 << 30).items():
        done, unread = dict[bytes, int](), []
        for each in inbox.messages:
            if each.number > done.setdefault(each.outbox, mail.read_up_to(Box(partition, each.outbox))):
                unread.append(each.packed)
                done[each.outbox] = each.number
        facts[f"{UNREAD_FACT}/{partition}"] = b"[" + b",".join(unread) + b"]"
    put(rocks, ((tables.FACTS, name.encode(*tables.TEXT), value) for name, value in facts.items()))


def _crawl_facts(link: RedisLink, crawl: str, join: Join) -> dict[str, bytes]:
    """What is known of the whole crawl, by any of its workers."""
    found = defaultdict[str, list[bytes]](list)
    workers = sorted(name.decode() for name in link.call("HKEYS", [fleet_keys(crawl).incarnations]))
    for worker in ["", *workers]:
        for field, value in link.call("HGETALL", [worker_keys(crawl, worker).state]).items():
            kind, _, name = field.decode(*tables.TEXT).partition(":")
            if kind == "fact" and name not in OWN_FACTS:
                found[name].append(value)
    # Not "clean": when the workers asked last is not known, so every host waits its pause at the start.
    return {**{name: join(name, kept) for name, kept in found.items()}, "clean": b"0"}


# --- both ways ------------------------------------------------------------------------------------


def compare(rocks: Tables, journals: PartitionJournals) -> Copied:
    """Look at every row on both sides; all partitions are held. Raises OperatorError for a difference."""
    queued = rocks.rows(tables.QUEUE)
    # A robots.txt that another host answers waits there under the key of its own: two partitions know it.
    abroad = {
        row[: tables.PAGE_KEY_BYTES] for place, row in queued if place[: tables.HASH_BYTES] != row[: tables.HASH_BYTES]
    }
    here, there = Counter[str](), Counter[str]()
    for table, word in _WORDS.items():
        for key, _ in _kept(rocks.rows(table), journals):
            here[word] += key not in abroad and not (table == tables.PRINTS and key.startswith(tables.OF_ALL_HOSTS))
    different = ""
    for partition in range(journals.partitions):
        for (table, key), value in _kept(_rows_there(journals, partition).items(), journals):
            if table in _WORDS:
                there[_WORDS[table]] += key not in abroad
            if not different and table != tables.MESSAGES and rocks.get(table, key) != value:
                different = _named(table, key, value)
    for what in _WORDS.values():
        if here[what] != there[what]:
            different = f"{here[what]:,} {what} in RocksDB, {there[what]:,} in Redis"
            break
    if different:
        raise OperatorError(f"The copy is not the same as what was copied: {different}. Remove it and copy again.")
    return Copied({word: here[word] for word in _WORDS.values()}, sum(here[word] for word in _LOOKED_AT))


def _named(table: str, key: bytes, value: bytes) -> str:
    """What a row is about, in words."""
    if table == tables.PAGES:
        return tables.unpack_record(value).url
    return f"the host {tables.HOST_OF[table](key, value)}" if table in tables.HOST_OF else _WORDS[table]


def _rows_there(journals: PartitionJournals, partition: int) -> dict[tuple[str, bytes], bytes]:
    """What Redis has of a partition that is held."""
    found = dict[tuple[str, bytes], bytes]()
    keys, keep = partition_keys(journals.crawl, partition), partial(journals.keep, _LEASE_MS)
    number = int(journals.link.call("HGET", [keys.lease], "copy") or 0)
    for packed in chain(journals.copies.parts(partition, number, keep), listed(journals.link, keys.journal)):
        for table, name, value in unpack_rows(packed):
            if value is None:
                found.pop((table, name), None)
            else:
                found[table, name] = value
    return found
