"""A crawl's frontier copied from Redis into RocksDB, partition by partition."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import orjson

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
from crawlerproject.stores.protocols import host_of_fact
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.keys import MOVED, fleet_keys, payloads_key, worker_keys
from crawlerproject.stores.redis.redis_queues import packed_rows
from crawlerproject.stores.rocks.rocks_store import UNREAD_FACT
from crawlerproject.stores.rocks.rocks_tables import Tables, open_to_write
from crawlerproject.stores.row_codec import FACTS, FINGERPRINT_BYTES, HASH_BYTES, TEXT, host_prefix

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
