"""A stopped crawl's frontier copied from RocksDB into Redis, table by table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

from xxhash import xxh3_64_digest

from crawlerproject.errors import OperatorError
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.copy.compare import (
    COPIED_FACT,
    OWN_FACTS,
    ROWS,
    Copied,
    HeldStore,
    RedisCrawl,
    Say,
    changed,
    compare,
)
from crawlerproject.stores.fingerprints import Text
from crawlerproject.stores.redis.batch_writer import Part
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import COPYING, fleet_keys, payloads_key, worker_keys
from crawlerproject.stores.redis.texts import RedisTexts
from crawlerproject.stores.rocks.rocks_store import RocksMessages
from crawlerproject.stores.rocks.rocks_tables import Tables, open_to_write
from crawlerproject.stores.row_codec import (
    HASH_BYTES,
    MESSAGE_ROW,
    PAGE_KEY_BYTES,
    TEXT,
    box_of,
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
