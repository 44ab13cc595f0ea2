"""Workers with frontiers on their own disks, in crawls that tests begin, each one of its own."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from redis import Redis

from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.stores.protocols import PageRecord
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals, unpack_head
from crawlerproject.stores.redis.worker_log import joined, logged
from crawlerproject.stores.rocks import partition_rows
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from crawlerproject.stores.rocks.row_packing import Row, unpack_rows
from tests.stores.conformance import record

PARTITIONS = 4
LEASE_MS = 60_000
numbers = itertools.count()


def journals(url: str, worker: str = "one", crawl: str = "", **more: Any) -> PartitionJournals:
    """What a worker has of a crawl of its own, or of a given one."""
    made = PartitionJournals(RedisLink(url), crawl or f"journaled-{next(numbers)}", worker, PARTITIONS, **more)
    made.begin(f"life-{next(numbers)}")
    return made


def opened(folder: Path, url: str, worker: str = "one", crawl: str = "", **more: Any) -> JournaledStore:
    """A worker's store in a new life, which holds nothing yet."""
    rejoins = more.pop("rejoins", False)
    return JournaledStore(folder / worker, journals(url, worker, crawl, **more), rejoins=rejoins)


def take(store: JournaledStore, *partitions: int) -> list[str]:
    """Take partitions that are free, all by default; their hosts."""
    hosts: list[str] = []
    for partition in partitions or range(PARTITIONS):
        taken = store.take(partition, LEASE_MS)
        assert taken is not None
        store.came(taken[1])
        hosts += taken[1]
    return hosts


def end_lease(store: JournaledStore, *partitions: int) -> None:
    """Let the time of leases be over, as if their holder had not renewed them."""
    for partition in partitions or range(PARTITIONS):
        store.journals.link.call("HSET", [store.journals._keys[partition].lease], "until", 1)


def host_in(partition: int, number: int = 0) -> str:
    """A host of a partition."""
    found = (name for name in map("h{}.test".format, itertools.count()) if partition_of(name, PARTITIONS) == partition)
    return next(itertools.islice(found, number, None))


def rows_here(store: JournaledStore, partition: int) -> dict[tuple[str, bytes], bytes]:
    """A partition's rows in a frontier, but for how far its messages were read."""
    return applied(partition_rows.all_rows(store._opened(), partition))


def rows_in_redis(store: JournaledStore, partition: int) -> dict[tuple[str, bytes], bytes]:
    """What another worker would take over."""
    mine = store.journals
    lease: dict[bytes, bytes] = mine.link.call("HGETALL", [mine._keys[partition].lease])
    copy = mine.copies.parts(partition, int(lease.get(b"copy", 0)))
    return applied(row for packed in [*copy, *changes_in_redis(mine, partition)] for row in unpack_rows(packed))


def changes_in_redis(mine: PartitionJournals, partition: int) -> list[bytes]:
    """Those that the copy does not hold: of the journal, then of the logs of the workers that held it last."""
    keys = mine._keys[partition]
    found: list[bytes] = list(mine.link.call("LRANGE", [keys.journal], 0, -1))
    copy, holder = mine.link.call("HMGET", [keys.lease], "copy", "holder")
    _, last, _ = unpack_head(mine.link.call("HGET", [mine._ledgers[partition]], partition))
    assert len(found) == last - int(copy or 0)
    names = dict.fromkeys(name.decode() for name in [*mine.link.call("HVALS", [keys.behind]), holder])
    for some in logged(mine.link, mine.crawl, names).values():
        for each in joined(each for each in some if each.partition == partition):
            assert each.first <= last + 1
            found += each.changes[max(0, last + 1 - each.first) :]
            last = max(last, each.first + len(each.changes) - 1)
    return found


def applied(rows: Any) -> dict[tuple[str, bytes], bytes]:
    """What rows come to that are put and removed one after the other."""
    found: dict[tuple[str, bytes], bytes] = {}
    each: Row
    for each in rows:
        table, key, value = each
        if value is None:
            found.pop((table, key), None)
        else:
            found[table, key] = value
    return found


def decided(host: str, number: int) -> PageRecord:
    """The record of a page of the host."""
    return record(number)._replace(url=f"https://{host}/{number}")


def keys_of(server: Redis, crawl: str, kind: str) -> list[str]:
    """The keys of a crawl's partitions whose name goes on so."""
    return sorted(key.decode() for key in server.scan_iter(f"{{{crawl}.*}}:{kind}"))
