"""What a page costs a worker over Redis: its CPU beside that of a crawl of one process, Redis CPU, round trips, bytes.

    python -m benchmarks.redis_frontier --pages 20_000 --workers 2 --new 5
    python -m benchmarks.redis_frontier --pages 60_000 --workers 4 --new 42 --partitions 24 --take 3

Workers skip the network: each takes pages of the hosts in its partitions, finds fifty links on each (``--new`` of them
new, eight on hosts of others, sent to them as messages), and commits fifty pages at a time, as in a crawl. Partitions
are copied when their journals have grown. A real ``redis-server`` is started on a free port, with appendonly yes and
appendfsync everysec. CPU is what counts here: it does not depend on what else the machine does; pages a second do.

``--take``: then the last worker's disk is gone, and one that has nothing takes so many of its partitions over. The
second line makes ten million URLs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from benchmarks.frontier_store import FOREIGN, LINKS, PAGES_A_COMMIT
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Box, Changes, PageRecord, QueuedPage
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.rocks import partition_rows
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.row_codec import PAGES, QUEUE
from tests.stores.redis_servers import redis_server

LEASE_MS = 600_000
PARTITIONS = 64
HOSTS = 500  # that each worker crawls in turn
_MESSAGES = 250
ACKNOWLEDGED = ("--appendfsync", "everysec")


class Cost(NamedTuple):
    """What a number of pages cost one worker; ``partitions`` are those that it had."""

    pages: int
    urls: int  # that became known
    cpu_seconds: float
    wall_seconds: float
    round_trips: int
    partitions: tuple[int, ...] = ()


class Web:
    """An endless web of some hosts: rows to queue, the same for either store."""

    def __init__(self, hosts: list[str], new: int, seed: int) -> None:
        self.hosts = hosts
        self.rng = random.Random(seed)
        self._new = new
        self._named = dict.fromkeys(hosts, 0)
        self._arrival = 1_700_000_000_000_000

    def row(self, host: str, page: int) -> QueuedPage:
        path = f"/articles/{page % 97}/a-title-of-some-words-{page}.html"
        self._arrival += 1
        via = f"https://{host}/articles/a-page-before-this.html"
        address = parse(f"https://{host}{path}")
        return QueuedPage(host, address.key, address.url, 1, self._arrival, 3, "LLL", via)

    def first(self) -> list[QueuedPage]:
        """A few pages of every host."""
        return [self.next_of(host) for host in self.hosts for _ in range(4)]

    def next_of(self, host: str) -> QueuedPage:
        self._named[host] += 1
        return self.row(host, self._named[host])

    def links(self, host: str) -> list[QueuedPage]:
        """The links of a page that stay with this worker."""
        new = [self.next_of(host) for _ in range(self._new)]
        old = LINKS - FOREIGN - self._new
        return new + [self.row(host, self.rng.randrange(1, self._named[host] + 1)) for _ in range(old)]


def crawl(store: RocksStore, web: Web, pages: int) -> Cost:
    """So many pages, fifty a commit."""
    journaled = store if isinstance(store, JournaledStore) else None
    states = {host: Host(host, 5.0) for host in web.hosts}
    for host in states.values():
        host.samples = (0.1,) * 10
    store.apply(Changes(queued=web.first()))
    store.sync()
    elsewhere = [f"https://www.elsewhere.example/articles/some-title-{number}.html" for number in range(FOREIGN)]
    message = json.dumps(elsewhere).encode()
    trips = journaled.journals.link.round_trips if journaled else 0
    done, urls, turn = 0, 0, 0
    cpu = wall = 0.0
    while done < pages:
        hosts = [web.hosts[(turn + n) % len(web.hosts)] for n in range(PAGES_A_COMMIT)]
        turn += PAGES_A_COMMIT
        links = {host: web.links(host) for host in hosts}
        began, began_cpu = time.perf_counter(), time.process_time()
        changes = Changes()
        for name in hosts:
            for row in store.head(name, 1):
                changes.removed.append(row)
                record = PageRecord(row.url, "fetched", 200, 1.7e9, row.key[:20], '"5f2c-61a"', "")
                changes.pages.append((row.key, record))
                changes.hosts.append((name, states[name].pack()))
        if journaled:
            for partition, inbox in journaled.unread(list(journaled.journals.held), _MESSAGES).items():
                for each in inbox.messages:
                    changes.read.append((Box(partition, each.outbox), each.number))
                journaled.read(partition, inbox)
            changes.messages += [(web.rng.randrange(journaled.partitions), message) for _ in hosts]
        for rows in links.values():
            fresh = {row.key: row for row in rows}
            new = [row for row, old in zip(fresh.values(), store.known(list(fresh)), strict=True) if not old]
            changes.queued += new
            urls += len(new)
        changes.facts.append(("warc", b'["crawl-0.warc.gz",123456789]'))
        store.apply(changes)
        store.sync()
        if journaled:
            journaled.copy_some()
        cpu += time.process_time() - began_cpu
        wall += time.perf_counter() - began
        done += len(changes.removed)
    return Cost(done, urls, cpu, wall, (journaled.journals.link.round_trips if journaled else 0) - trips)


def begun(folder: Path, link: RedisLink, number: int, partitions: int) -> JournaledStore:
    """The store of a worker that has joined."""
    store = JournaledStore(folder / f"w{number}", PartitionJournals(link, "bench", f"w{number}", partitions))
    store.journals.begin(f"life-{number}")
    return store


def hold(folder: Path, link: RedisLink, number: int, given: argparse.Namespace) -> JournaledStore:
    """Begin, and take a worker's share of the partitions."""
    store = begun(folder, link, number, given.partitions)
    for partition in range(number, given.partitions, given.workers):
        assert store.take(partition, LEASE_MS)
    return store


def hosts_of(store: JournaledStore, count: int = HOSTS) -> list[str]:
    """So many hosts of the partitions held."""
    names = (f"www.site-{number}.example" for number in itertools.count())
    held = store.journals.held
    return list(islice((name for name in names if partition_of(name, store.partitions) in held), count))


def cpu_seconds(link: RedisLink) -> float:
    """What the server has spent, without what it left to a child process (rewriting its append-only file)."""
    info = link.call("INFO", [], "cpu")
    return float(info["used_cpu_user"] + info["used_cpu_sys"])


def worker(url: str, folder: Path, number: int, given: argparse.Namespace, tell: Connection) -> None:
    """One worker process."""
    store = hold(folder, RedisLink(url), number, given)
    cost = crawl(store, Web(hosts_of(store), given.new, number), given.pages)
    tell.send(cost._replace(partitions=tuple(store.journals.held)))
    store.journals.release(list(store.journals.held))
    store.close()


def in_redis(folder: Path, given: argparse.Namespace) -> None:
    with redis_server(folder / "redis", *ACKNOWLEDGED) as server:
        link = RedisLink(server.url)
        before = link.call("INFO")
        pipes = []
        spawn = multiprocessing.get_context("spawn")  # RocksDB's threads do not come along into a fork
        began = time.perf_counter()
        for number in range(given.workers):
            mine, theirs = spawn.Pipe()
            process = spawn.Process(target=worker, args=(server.url, folder, number, given, theirs))
            process.start()
            pipes.append((mine, process))
        costs: list[Cost] = []
        for mine, process in pipes:
            costs.append(mine.recv())
            process.join()
        wall = time.perf_counter() - began
        after = link.call("INFO")
        pages, urls = sum(cost.pages for cost in costs), sum(cost.urls for cost in costs)
        cpu = sum(after[name] - before[name] for name in ("used_cpu_user", "used_cpu_sys"))
        wire = [after[name] - before[name] for name in ("total_net_input_bytes", "total_net_output_bytes")]
        commands = after["total_commands_processed"] - before["total_commands_processed"]
        known = urls + 4 * HOSTS * given.workers
        print(f"Redis, {given.workers} workers: {pages:,} pages, {known:,} URLs known")
        print(f"  worker CPU {sum(cost.cpu_seconds for cost in costs) / pages * 1e6:.0f} µs a page")
        print(f"  Redis CPU {cpu / pages * 1e6:.0f} µs a page, so {pages / cpu:,.0f} pages/s a core at most")
        trips = sum(cost.round_trips for cost in costs)
        print(f"  {trips / pages:.3f} round trips and {commands / pages:.1f} commands a page")
        print(f"  {wire[0] / pages:,.0f} bytes a page to Redis, {wire[1] / pages:,.0f} back")
        print(f"  {(after['used_memory'] - before['used_memory']) / known:.0f} bytes a URL known, journals and copies")
        print(f"  {pages / wall:,.0f} pages/s together here, interpreter starts included")
        if given.take:
            take_over(folder, link, costs[-1].partitions[: given.take], given)
        link.close()


def take_over(folder: Path, link: RedisLink, partitions: Sequence[int], given: argparse.Namespace) -> None:
    """One worker with an empty disk gets these partitions from Redis alone."""
    store = begun(folder, link, given.workers, given.partitions)
    for partition in partitions:
        began, cpu = time.perf_counter(), time.process_time()
        assert store.take(partition, LEASE_MS)
        seconds, spent = time.perf_counter() - began, time.process_time() - cpu
        counts = Counter(table for table, _, _ in partition_rows.all_rows(store.tables, partition))
        queued, done = counts[QUEUE], counts[PAGES]
        print(f"  taken over in {seconds:.1f} s ({spent:.1f} s of CPU): {queued:,} URLs that wait, {done:,} pages")
    store.close()


def on_disk(folder: Path, given: argparse.Namespace) -> None:
    store = RocksStore(folder / "rocks")
    hosts = [f"www.site-{n}.example" for n in range(HOSTS)]
    cost = crawl(store, Web(hosts, given.new, 0), given.pages)
    store.close()
    print(f"RocksDB, one process: {cost.cpu_seconds / cost.pages * 1e6:.0f} µs CPU a page, its threads included")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redis_frontier", description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000, help="of each worker")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--take", type=int, default=0, help="partitions that one without anything takes over")
    parser.add_argument("--new", type=int, default=5, help="new URLs on each page, at most 42")
    given = parser.parse_args()
    print(f"{given.new} of {LINKS} links new")
    with tempfile.TemporaryDirectory() as name:
        on_disk(Path(name), given)
        in_redis(Path(name), given)


if __name__ == "__main__":
    main()
