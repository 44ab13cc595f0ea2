"""What a URL takes in Redis, waiting and archived, and how long another worker takes to take a large partition over.

    python -m benchmarks.redis_memory --urls 400_000 --hosts 400

One partition is filled on a worker's disk and copied, its URLs all waiting, then all archived; each time Redis is asked
for its memory. Then the worker's lease is given back and another worker, with an empty disk, takes the partition.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections import Counter
from contextlib import closing
from itertools import islice
from pathlib import Path
from random import Random

from benchmarks.redis_frontier import LEASE_MS, PARTITIONS, cpu_seconds
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


def worker(folder: Path, url: str, name: str) -> JournaledStore:
    """One that has begun."""
    store = JournaledStore(folder / name, PartitionJournals(RedisLink(url), "bench", name, PARTITIONS))
    store.journals.begin(f"life-of-{name}")
    return store


def copied(store: JournaledStore, link: RedisLink, empty: int, urls: int, what: str) -> None:
    """Give Redis a copy of all, and say what it takes."""
    store.sync()
    journal = (link.call("INFO", [], "memory")["used_memory"] - empty) / urls
    began, spent = time.perf_counter(), time.process_time()
    number = store._sent[_PARTITION]
    store.journals.copies.copy(_PARTITION, number, partition_rows.all_parts(store.tables, _PARTITION))
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    memory = (link.call("INFO", [], "memory")["used_memory"] - empty) / urls
    print(f"{urls:,} URLs {what}: {memory:.1f} bytes of Redis a URL (before the copy {journal:.1f}); the copy took "
          f"{wall:.1f} s, {cpu:.1f} s of CPU")  # fmt: skip
    kinds, rows = Counter[str](), partition_rows.all_rows(store.tables, _PARTITION)
    while part := list(islice(rows, partition_rows.ROWS_AT_A_TIME)):
        for table in {row[0] for row in part} - {SEEN}:  # whose rows the others imply
            kinds[table] += len(pack_rows(row for row in part if row[0] == table))
    print("  packed apart: " + ", ".join(f"{table} {size / urls:.1f}" for table, size in kinds.most_common(5)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redis_memory", description=__doc__.splitlines()[0])
    parser.add_argument("--urls", type=int, default=400_000)
    parser.add_argument("--hosts", type=int, default=400)
    given = parser.parse_args()
    names = (f"www.site-{number}.example" for number in itertools.count())
    hosts = list(islice((name for name in names if partition_of(name, PARTITIONS) == _PARTITION), given.hosts))
    with (
        tempfile.TemporaryDirectory() as name,
        redis_server(Path(name) / "redis", "--appendonly", "no") as server,
        closing(RedisLink(server.url)) as link,
    ):
        folder = Path(name)
        with closing(worker(folder, server.url, "one")) as store:
            assert store.take(_PARTITION, LEASE_MS)
            empty = link.call("INFO", [], "memory")["used_memory"]
            pages = rows(hosts, given.urls)
            for at in range(0, len(pages), _AT_A_TIME):
                some = pages[at : at + _AT_A_TIME]
                store.apply(Changes(queued=some))
                store.sync()
            copied(store, link, empty, given.urls, "waiting")
            chance = Random(4)
            for at in range(0, len(pages), _AT_A_TIME):
                some = pages[at : at + _AT_A_TIME]
                changes = Changes(removed=some)
                for row in some:
                    record = PageRecord(row.url, "fetched", 200, 1.7e9, chance.randbytes(20), '"5f2c-61a"', "")
                    changes.pages.append((row.key, record))
                    changes.fingerprints.append(Fingerprint(row.host, chance.getrandbits(64), row.key))
                store.apply(changes)
                store.sync()
            copied(store, link, empty, given.urls, "archived")
            store.journals.release([_PARTITION])
        with closing(worker(folder, server.url, "two")) as store:
            redis, began, spent = cpu_seconds(link), time.perf_counter(), time.process_time()
            assert store.take(_PARTITION, LEASE_MS)
            print(f"taken over in {time.perf_counter() - began:.1f} s, {time.process_time() - spent:.1f} s of CPU, "
                  f"{cpu_seconds(link) - redis:.2f} s of Redis")  # fmt: skip
            known = store.known([row.key for row in pages])
            assert all(known)


if __name__ == "__main__":
    main()
