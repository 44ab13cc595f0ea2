"""A crawl's frontier copied from Redis into RocksDB, partition by partition.

A stopped crawl's frontier copied from RocksDB into Redis, table by table.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import orjson
from xxhash import xxh3_64_digest

from crawlerproject.errors import OperatorError
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.copy.compare import (
    COPIED_FACT,
    OWN_FACTS,
    PAYLOAD_HASHES,
    ROWS,
    SOURCE_FACT,
    Copied,
    HeldStore,
    RedisCrawl,
    Say,
    TableRow,
    changed,
    compare,
)
from crawlerproject.stores.fingerprints import Text
from crawlerproject.stores.protocols import host_of_fact
from crawlerproject.stores.redis.batch_writer import Part
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import COPYING, MOVED, fleet_keys, payloads_key, worker_keys
from crawlerproject.stores.redis.redis_queues import packed_rows
from crawlerproject.stores.redis.texts import RedisTexts
from crawlerproject.stores.rocks.rocks_store import UNREAD_FACT, RocksMessages
from crawlerproject.stores.rocks.rocks_tables import Tables, open_to_write
from crawlerproject.stores.row_codec import (
    FACTS,
    FINGERPRINT_BYTES,
    HASH_BYTES,
    MESSAGE_ROW,
    PAGE_KEY_BYTES,
    TEXT,
    box_of,
    host_prefix,
    number_of,
    unpack_queued,
    unpack_record,
)

_ORDER = (
    tables.HOSTS,
    tables.PAGES,
    tables.QUEUE,
    tables.SEEN,
    tables.ROBOTS,
    tables.FACTS,
    tables.PRINTS,
    tables.PAYLOADS,
    tables.MESSAGES,
)


def to_redis(source: Path, stamp: str, target: RedisCrawl, whole: Callable[[], None], say: Say) -> Copied:
    """Copy the frontier in the folder ``source``, which no process writes; ``stamp`` changes whenever it is crawled.

    ``whole`` is called before the copy may be crawled: the source must not be from then on.
    Raises OperatorError when there is another crawl already, StorageError when Redis goes away: copy again then.
    """
    crawl = target.name
    rocks, link = open_to_write(source), RedisLink(target.url)
    try:
        facts = fleet_keys(crawl).facts
        begun, known = (value and value.decode() for value in link.call("HMGET", [facts], COPYING, "format"))
        if begun is None and known is not None:
            raise OperatorError(f"There is a crawl {crawl!r} at {link.place} already; choose another FLEET_CRAWL.")
        if begun is not None and begun != stamp:
            raise changed(f"the crawl {crawl!r} at {link.place}")
        link.call("HSET", [facts], COPYING, stamp)
        store = HeldStore(link, crawl, target.partitions, copying=True)
        _fill_redis(rocks, store, target.max_texts, say)
        copied = compare(rocks, store)
        store.release(list(store.held))
        whole()
        link.call("HDEL", [facts], COPYING)
        return copied
    finally:
        rocks.close()
        link.close()


def _fill_redis(rocks: Tables, store: HeldStore, max_texts: int, say: Say) -> None:
    filling = _Filling(rocks, store, max_texts)
    first, behind = _ORDER[0], b""
    if (cursor := store.fact(COPIED_FACT)) is not None:
        name, _, behind = cursor.partition(b"\0")
        first = name.decode()
        say(f"goes on in {first or 'facts'}")
    for table in _ORDER[_ORDER.index(first) :]:
        rows = iter(rocks.rows(table, behind))
        while some := list(islice(rows, ROWS)):
            filling.send(table, some)
        behind = b""
        say(f"{table or 'facts'}: done")


class _Filling:
    """Finds the partition of each row, as the workers would have."""

    def __init__(self, rocks: Tables, store: HeldStore, max_texts: int) -> None:
        self._rocks = rocks
        self._store = store
        self._texts = RedisTexts(store.link, store.crawl, max_texts) if max_texts else None
        # A page's key begins with a hash of its host; where the host is, only its name tells.
        names = (name.decode(*TEXT) for name, _ in rocks.rows(tables.HOSTS))
        self._places = {xxh3_64_digest(name.encode(*TEXT)): store.partition(name) for name in names}
        # A robots.txt that another host answers waits there under the key of its own.
        rows = rocks.rows(tables.QUEUE)
        self._abroad = {row[:PAGE_KEY_BYTES] for place, row in rows if place[:HASH_BYTES] != row[:HASH_BYTES]}

    def send(self, table: str, rows: list[tuple[bytes, bytes]]) -> None:
        """One change: the rows, and where to go on."""
        store, parts = self._store, dict[int, Part]()
        if table == tables.MESSAGES:
            store.post(self._unread(rows))
        elif table == tables.PAYLOADS:
            store.link.many([Call("HSETNX", [payloads_key(store.crawl, key)], [key, value]) for key, value in rows])
        else:
            for key, value in rows:
                self._place(table, key, value, parts)
            if table == tables.PRINTS and self._texts is not None:
                self._texts.exchange([text for row in rows if (text := self._text(*row)) is not None], [], 0)
        for part in parts.values():
            part.bundle()
        store.batches.write(parts, [(COPIED_FACT, table.encode() + b"\0" + rows[-1][0])])
        store.keep()

    def _unread(self, rows: list[tuple[bytes, bytes]]) -> list[tuple[int, bytes]]:
        """Messages that workers of one machine wrote and none has read; by partition, of which there are as many."""
        messages = ((box_of(key), number_of(key), packed) for key, packed in rows if key[0] == MESSAGE_ROW)
        known = RocksMessages(lambda: self._rocks)
        return [(box.partition, packed) for box, number, packed in messages if number > known.read_up_to(box)]

    def _text(self, key: bytes, page: bytes) -> Text | None:
        """What a row of the first table of all hosts says; None of any other row."""
        if not key.startswith(tables.FIRST_TABLE) or (record := self._rocks.get(tables.PAGES, page)) is None:
            return None
        return Text(int.from_bytes(key[len(tables.FIRST_TABLE) :], "big"), page, unpack_record(record).url)

    def _place(self, table: str, key: bytes, value: bytes, parts: dict[int, Part]) -> None:
        """Put a row with those of its partition; "" as a host: a fact of the crawl, which is no row there."""
        if table in tables.HOST_OF:
            if not (host := tables.HOST_OF[table](key, value)):
                if (name := key.decode(*TEXT)) not in OWN_FACTS:
                    crawls = worker_keys(self._store.crawl, "").state
                    self._store.link.call("HSET", [crawls], f"fact:{name}", value)
                return
            part = parts.setdefault(self._store.partition(host), Part())
            if table == tables.HOSTS:
                part.hosts[host] = value
            elif table == tables.PAGES:
                part.pages.append((key, value))
            elif table == tables.QUEUE:
                part.queued.append(unpack_queued(host, key, value))
                part.keys.append(value[:PAGE_KEY_BYTES])
            else:  # robots.txt, and facts of hosts
                part.robots[key.decode(*TEXT)] = value
        elif (place := self._places.get(key[:HASH_BYTES])) is not None:  # no host: fingerprints of all hosts are texts
            if table == tables.PRINTS:
                parts.setdefault(place, Part()).prints.append(key + value)
            elif key not in self._abroad and self._rocks.get(tables.PAGES, key) is None:
                parts.setdefault(place, Part()).keys.append(key)


_KEY = HASH_BYTES + FINGERPRINT_BYTES


def to_rocks(source: RedisCrawl, target: Path, whole: Callable[[], None], say: Say) -> Copied:
    """Copy a crawl in Redis, at which no worker is, into the new folder ``target``; the source cannot be crawled then.

    ``whole`` is called before the copy gets its name.
    Raises OperatorError when there is another frontier or a worker, StorageError when Redis or the disk has trouble.
    """
    if target.exists():
        raise OperatorError(f"There is a frontier in {target} already; choose another folder.")
    unfinished = target.with_name(f"{target.name}.copying")
    link, crawl = RedisLink(source.url), source.name
    try:
        if link.call("HGET", [fleet_keys(crawl).facts], "format") is None:
            raise OperatorError(f"There is no crawl {crawl!r} at {link.place}; set FLEET_CRAWL to the name of one.")
        store = HeldStore(link, crawl, 0)
        rocks = open_to_write(unfinished)
        try:
            _fill_rocks(store, rocks, say)
            copied = compare(rocks, store)
            rocks.sync()
        finally:
            rocks.close()
        store.release(list(store.held))
        link.call("HSET", [fleet_keys(crawl).facts], MOVED, f"{socket.gethostname()}:{target.parent}")
        whole()
        unfinished.rename(target)
        return copied
    finally:
        link.close()


def _fill_rocks(store: HeldStore, rocks: Tables, say: Say) -> None:
    stamp = _stamp(store)
    source = rocks.get(FACTS, SOURCE_FACT.encode())
    if source is not None and source != stamp:
        raise changed("the unfinished copy beside it")
    rocks.put([(FACTS, SOURCE_FACT.encode(), stamp)])
    done = int(rocks.get(FACTS, COPIED_FACT.encode()) or 0)
    if done:
        say(f"goes on behind unit {done:,}")
    units = store.partitions + PAYLOAD_HASHES + 1
    for unit in range(done, units):
        rows = _rows_of(store, unit)
        while some := list(islice(rows, ROWS)):
            rocks.put(some)
        rocks.put([(FACTS, COPIED_FACT.encode(), str(unit + 1).encode())])
        store.keep()
    say(f"{units:,} units: done")


def _stamp(store: HeldStore) -> bytes:
    """Changes whenever a worker starts."""
    incarnations = store.fields(fleet_keys(store.crawl).incarnations)
    return b" ".join(sorted(value for _, value in incarnations)) or b"-"


def _rows_of(store: HeldStore, unit: int) -> Iterator[TableRow]:
    """What a unit is: a partition, or one of the payloads' hashes, or the crawl's facts."""
    if unit < store.partitions:
        yield from _partition_rows(store, unit)
    elif unit < store.partitions + PAYLOAD_HASHES:
        digest = bytes([unit - store.partitions])
        yield from ((tables.PAYLOADS, key, value) for key, value in store.fields(payloads_key(store.crawl, digest)))
    else:
        yield from ((FACTS, name.encode(*TEXT), value) for name, value in _crawl_facts(store).items())


def _partition_rows(store: HeldStore, partition: int) -> Iterator[TableRow]:
    keys = store.keys_of(partition)
    for name, packed in store.fields(keys.hosts):
        yield tables.HOSTS, name, packed
    for key, record in store.fields(keys.pages):
        yield tables.SEEN, key, b""
        if record:
            yield tables.PAGES, key, record
    for name, packed in store.fields(keys.robots):
        yield (FACTS if host_of_fact(name.decode(*TEXT)) else tables.ROBOTS), name, packed
    for host in sorted(store.link.call("SMEMBERS", [keys.work])):
        prefix = host_prefix(host.decode(*TEXT))
        for member in store.members(keys.queue_prefix.encode() + host):
            yield from ((tables.QUEUE, prefix + place, packed) for place, packed in packed_rows(member))
    for member in store.members(keys.prints):
        key, page = member[:_KEY], member[_KEY:]
        yield tables.PRINTS, key, page
        for row in tables.rows_of_all_hosts(int.from_bytes(key[HASH_BYTES:], "big"), page):
            yield tables.PRINTS, *row
    if messages := store.link.call("LRANGE", [keys.inbox], 0, -1):
        yield FACTS, f"{UNREAD_FACT}/{partition}".encode(), b"[" + b",".join(messages) + b"]"


def _put_together(name: str, before: bytes | None, value: bytes) -> bytes:
    """One fact of those of two workers."""
    if name == "scope":
        return b" ".join(sorted({*(before or b"").split(), *value.split()}))
    if before is None:
        return value
    if name == "renders":
        return b"%d" % (int(before) + int(value))
    if name == "totals":
        (*one, since), (*two, later) = orjson.loads(before), orjson.loads(value)
        return orjson.dumps([*map(sum, zip(one, two, strict=True)), min(since, later)])
    return before


def _crawl_facts(store: HeldStore) -> dict[str, bytes]:
    """What is known of the whole crawl, by any of its workers; lists of words, and sums, are put together."""
    facts: dict[str, bytes] = {}
    workers = [name.decode() for name, _ in store.fields(fleet_keys(store.crawl).incarnations)]
    for worker in ["", *sorted(workers)]:
        for field, value in store.fields(worker_keys(store.crawl, worker).state):
            kind, _, name = field.decode(*TEXT).partition(":")
            if kind != "fact" or name in OWN_FACTS:
                continue
            facts[name] = _put_together(name, facts.get(name), value)
    # Not "clean": when the workers asked last is not known, so every host waits its pause at the start.
    return {**facts, "clean": b"0", UNREAD_FACT: str(store.partitions).encode()}
