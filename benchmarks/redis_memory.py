"""What a URL takes in Redis, waiting and archived, and how long another worker takes to take a large partition over.

    python -m benchmarks.redis_memory --urls 400_000 --hosts 400

One partition is filled on a worker's disk and copied, its URLs all waiting, then all archived; each time Redis is asked
for its memory. Then the worker's lease is given back and another worker, with an empty disk, takes the partition. This
is done twice: with copies in Redis, and at a place (a real server of S3), where the partition is copied whenever that
is due, as a worker does, and the greatest memory since half of the URLs were known is said.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from random import Random
from uuid import UUID

from benchmarks.redis_frontier import LEASE_MS, PARTITIONS, cpu_seconds
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, Fingerprint, PageRecord, QueuedPage
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.rocks import partition_rows
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from crawlerproject.stores.rocks.row_packing import pack_rows
from crawlerproject.stores.row_codec import SEEN
from tests.stores.redis_servers import redis_server
from tests.stores.uploads.s3_servers import BUCKET, KEYS, s3_server

_PARTITION = 0
_AT_A_TIME = 1_000
_NAMES = ("news", "report", "city", "school", "water", "index", "annual", "music", "summer", "garden", "house", "train")


def rows(hosts: list[str], urls: int) -> list[QueuedPage]:
    """Pages of the hosts, with names as sites have them."""
    chance, found = Random(3), list[QueuedPage]()
    for number in range(urls):
        host, title = hosts[number * len(hosts) // urls], "-".join(chance.choices(_NAMES, k=5))
        page = parse(f"https://{host}/{chance.choice(_NAMES)}/{number % 97}/{title}-{number}.html")
        via = f"https://{host}/{chance.choice(_NAMES)}/page-{number // 40}.html"
        found.append(QueuedPage(host, page.key, page.url, 1, 1_700_000_000_000_000 + number * 997, 3, "LLL", via))
    return found


def worker(folder: Path, url: str, name: str, place_url: str) -> JournaledStore:
    """One that has begun."""
    journals = PartitionJournals(RedisLink(url), "bench", name, PARTITIONS, place_url=place_url)
    store = JournaledStore(folder / name, journals)
    store.journals.begin(f"life-of-{name}")
    return store


def memory(link: RedisLink) -> int:
    """Bytes that Redis takes."""
    return int(link.call("INFO", [], "memory")["used_memory"])


def copied(store: JournaledStore, link: RedisLink, empty: int, urls: int, what: str) -> None:
    """Give Redis a copy of all, and say what it takes."""
    journal = (memory(link) - empty) / urls
    began, spent = time.perf_counter(), time.process_time()
    number = store._sent[_PARTITION]
    store.journals.copies.copy(_PARTITION, number, partition_rows.all_parts(store.tables, _PARTITION))
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    print(f"{urls:,} URLs {what}: {(memory(link) - empty) / urls:.1f} bytes of Redis a URL (before the copy "
          f"{journal:.1f}); the copy took {wall:.1f} s, {cpu:.1f} s of CPU")  # fmt: skip
    kinds, rows = Counter[str](), partition_rows.all_rows(store.tables, _PARTITION)
    while part := list(islice(rows, partition_rows.ROWS_AT_A_TIME)):
        for table in {row[0] for row in part} - {SEEN}:  # whose rows the others imply
            kinds[table] += len(pack_rows(row for row in part if row[0] == table))
    print("  packed apart: " + ", ".join(f"{table} {size / urls:.1f}" for table, size in kinds.most_common(5)))


class Filling:
    """Gives a partition what changes, and has it copied when there is a place for that."""

    def __init__(self, store: JournaledStore, link: RedisLink, urls: int) -> None:
        self._store, self._link, self._urls = store, link, urls
        self.empty = memory(link)
        self._known = 0

    def fill(self, changes: Iterable[Changes], what: str) -> None:
        """So many changes; then say what Redis takes."""
        store, most, spent, whole, extended = self._store, 0.0, 0.0, 0, 0
        for each in changes:
            self._known += len(each.queued)
            store.apply(each)
            store.sync()
            if store.journals.copies.to_place:
                most = max(most, (memory(self._link) - self.empty) / self._known if 2 * self._known > self._urls else 0)
                began, before = time.process_time(), store._copied[_PARTITION]
                while store.copy_some():
                    extended += 1
                whole += store._copied[_PARTITION].bytes != before.bytes
                spent += time.process_time() - began
        if not store.journals.copies.to_place:
            copied(store, self._link, self.empty, self._urls, what)
            return
        size = store._copied[_PARTITION]
        print(f"{self._urls:,} URLs {what}: {(memory(self._link) - self.empty) / self._urls:.1f} bytes of Redis a URL, "
              f"{most:.1f} at most; {(size.bytes + size.added) / self._urls:.0f} at the place, by {whole} whole copies "
              f"and {extended} that were added, {1e6 * spent / self._urls:.0f} µs of CPU a URL")  # fmt: skip


def archived(pages: list[QueuedPage]) -> Iterator[Changes]:
    """They all are fetched."""
    chance = Random(4)
    for some in batched(pages):
        changes = Changes(removed=some)
        for row in some:
            record = PageRecord(row.url, "fetched", 200, 1.7e9, chance.randbytes(20), '"5f2c-61a"', "")
            changes.pages.append((row.key, record))
            changes.fingerprints.append(Fingerprint(row.host, chance.getrandbits(64), row.key))
        yield changes


def batched(pages: list[QueuedPage]) -> Iterator[list[QueuedPage]]:
    """Some at a time."""
    for at in range(0, len(pages), _AT_A_TIME):
        yield pages[at : at + _AT_A_TIME]


def measure(pages: list[QueuedPage], place_url: str) -> None:
    """With copies there; "": in Redis."""
    print(f"\ncopies at {place_url or 'Redis'}")
    with (
        tempfile.TemporaryDirectory() as name,
        redis_server(Path(name) / "redis", "--appendonly", "no") as server,
        closing(RedisLink(server.url)) as link,
    ):
        folder = Path(name)
        with closing(worker(folder, server.url, "one", place_url)) as store:
            assert store.take(_PARTITION, LEASE_MS)
            filling = Filling(store, link, len(pages))
            filling.fill((Changes(queued=some) for some in batched(pages)), "waiting")
            filling.fill(archived(pages), "archived")
            before = memory(link)
            for some in batched(pages):
                store.journals.set_originals((row.key[:20], _original(row)) for row in some)
            print(f"  and {(memory(link) - before) / len(pages):.0f} for a payload that is known to all workers")
            store.journals.release([_PARTITION])
        with closing(worker(folder, server.url, "two", place_url)) as store:
            redis, began, spent = cpu_seconds(link), time.perf_counter(), time.process_time()
            assert store.take(_PARTITION, LEASE_MS)
            print(f"taken over in {time.perf_counter() - began:.1f} s, {time.process_time() - spent:.1f} s of CPU, "
                  f"{cpu_seconds(link) - redis:.2f} s of Redis")  # fmt: skip
            known = store.known([row.key for row in pages])
            assert all(known)


def _original(row: QueuedPage) -> Original:
    return Original(f"<urn:uuid:{UUID(bytes=row.key[:16])}>", row.url, "2026-11-28T12:00:00Z")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redis_memory", description=__doc__.splitlines()[0])
    parser.add_argument("--urls", type=int, default=400_000)
    parser.add_argument("--hosts", type=int, default=400)
    given = parser.parse_args()
    names = (f"www.site-{number}.example" for number in itertools.count())
    hosts = list(islice((name for name in names if partition_of(name, PARTITIONS) == _PARTITION), given.hosts))
    pages = rows(hosts, given.urls)
    measure(pages, "")
    os.environ.update(KEYS, AWS_ENDPOINT_URL=s3_server().url)
    measure(pages, f"s3://{BUCKET}/bench")


if __name__ == "__main__":
    main()
