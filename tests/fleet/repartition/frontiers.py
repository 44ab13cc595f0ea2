"""Small frontiers with rows in every table, and what is in them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import orjson
from xxhash import xxh3_64_digest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import Counts, place_of
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_ROBOTS, external_key
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.protocols import (
    DUE_FACT,
    IN_MEMORY,
    OF_DOMAINS,
    OF_NAMES,
    Changes,
    Due,
    Fingerprint,
    HostFact,
    PageRecord,
    QueuedPage,
)
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import open_to_write
from crawlerproject.stores.row_codec import FACTS, TABLES, due_key

Row = tuple[str, bytes]  # table, key

PARTITIONS = 8
CRAWLS_FACTS = {
    CLEAN_FACT: b"1",
    "scope of the seeds": orjson.dumps(("domain", ["a.example"])),
    "keys of the seeds": bytes(8) + b"otherkey",
    "options of the seeds": b"{}",
    "clock": b"1700000000.5",
    "totals": orjson.dumps((120, 9_000_000, 3, 1.6e9)),
    "renders": b"7",
}


class Made(NamedTuple):
    """What went into a frontier."""

    hosts: dict[Row, str]  # whose each row is
    rows: int  # of hosts on disk

    def only_with(self, row: Row) -> str:
        """The host with whose holder alone the row is; "" where it is as true with another one.

        So are first captures, and that a URL is known: of a robots.txt that waits at another host both may know it.
        """
        host = self.hosts.get(row, "")
        anywhere = row[0] == tables.PAYLOADS or (row[0] == tables.SEEN and xxh3_64_digest(host.encode()) != row[1][:8])
        return "" if anywhere else host


def fill(folder: CrawlDir, chance: random.Random, hosts: int = 12) -> Made:
    """Make a frontier with so many hosts; of every kind of row there are some."""
    whose: dict[Row, str] = {}
    counts = Counts(whole=True)
    with closing(RocksStore(folder.frontier)) as store:
        names = [name_of(number, chance) for number in range(hosts)]
        for name in names:
            changes = Changes()
            host = _host(name, changes, chance)
            _pages(host, changes, chance)
            _known(host, changes, chance)
            if chance.random() < 0.3:  # a robots.txt of another host that is asked for here
                _add_abroad(host, chance.choice(names), changes, chance)
            _list(host, changes, counts, chance)
            changes.hosts.append((name, host.pack()))
            store.apply(changes)
            _note(store, changes, name, whose)
        facts = [*CRAWLS_FACTS.items(), (DUE_FACT, counts.pack())]
        store.apply(Changes(facts=facts))
    return Made(whose, counts.rows)


def name_of(number: int, chance: random.Random) -> str:
    """A host key: of some domains there are several, with names and ports."""
    name = chance.choice(["", "www.", "a.b."]) + f"{chance.choice('abc')}{number}.{chance.choice(['example', 'co.uk'])}"
    return name + chance.choice(["", "", ":8080"])


def _host(name: str, changes: Changes, chance: random.Random) -> Host:
    host = Host(name, chance.choice([1.0, 5.0]))
    host.next_free = 1.7e9 + chance.random() * 1000
    host.fetched = chance.randrange(100)
    changes.robots += [(f"{scheme}://{name}", chance.randbytes(20)) for scheme in ("http", "https")]
    bare = name.partition(":")[0]
    for kind in HostFact:
        of = registered_domain(name) if kind in OF_DOMAINS else bare if kind in OF_NAMES else name
        changes.facts.append((kind + of, chance.randbytes(30)))
    return host


def _pages(host: Host, changes: Changes, chance: random.Random) -> None:
    for number in range(chance.randrange(6)):
        url = f"https://{host.name}/{number}"
        record = PageRecord(url, "fetched", 200, 1.7e9, chance.randbytes(20), history=chance.randbytes(3))
        changes.pages.append((parse(url).key, record))
        changes.fingerprints.append(Fingerprint(host.name, chance.getrandbits(64), parse(url).key))
        original = Original(f"<urn:uuid:{'0' * 8}-0000-4000-8000-{chance.getrandbits(48):012x}>", url, "2024")
        changes.payloads.append((record.digest, original))


def _known(host: Host, changes: Changes, chance: random.Random) -> None:
    host.rows = chance.randrange(5)
    for number in range(host.rows):
        url = f"http://{host.name}/queued/{number}"
        key, flags = parse(url).key, 0
        if chance.random() < 0.3:
            key, flags = external_key(key), FLAG_EXTERNAL
        changes.queued.append(QueuedPage(host.name, key, url, 1, 1000 + number, 2, "LL", "", 0, flags))


def _add_abroad(host: Host, other: str, changes: Changes, chance: random.Random) -> None:
    origin = f"https://{other}"
    key = parse(f"{origin}/robots.txt?{chance.getrandbits(40)}").key  # one of its own, so that no two are the same
    url = f"https://{host.name}/robots.txt"
    changes.queued.append(QueuedPage(host.name, key, url, 0, 5000, 0, "PR", "", 0, FLAG_ROBOTS, origin))
    host.rows += 1


def _list(host: Host, changes: Changes, counts: Counts, chance: random.Random) -> None:
    if not host.rows:
        return
    if chance.random() < 0.5:
        host.on_disk = True
        changes.due.append((host.name, None, place_of(host).at))
        counts.add(host)
    else:
        changes.due.append((host.name, None, IN_MEMORY))


def _note(store: RocksStore, changes: Changes, name: str, whose: dict[Row, str]) -> None:
    """Write down whose the rows are that a change made; what it was called in the tables is their own matter."""
    digest = xxh3_64_digest(name.encode())
    whose |= {(tables.QUEUE, digest + name.encode() + b"\0" + place(row)): name for row in changes.queued}
    whose |= {(tables.SEEN, row.key): name for row in changes.queued}
    whose |= {(tables.SEEN, key): name for key, _ in changes.pages}
    whose |= {(tables.PAGES, key): name for key, _ in changes.pages}
    whose[tables.HOSTS, name.encode()] = name
    whose |= {(tables.ROBOTS, origin.encode()): name for origin, _ in changes.robots}
    whose |= {(FACTS, fact.encode()): name for fact, _ in changes.facts}
    whose |= {(tables.PAYLOADS, digest): name for digest, _ in changes.payloads}
    for made in changes.fingerprints:
        whose[tables.PRINTS, digest + made.value.to_bytes(8, "big")] = name
        for turn in range(4):
            turned = (made.value << 16 * turn | made.value >> 64 - 16 * turn) & (1 << 64) - 1
            whose[tables.PRINTS, bytes(8) + bytes([turn]) + turned.to_bytes(8, "big")] = name
    for _, _, at in changes.due:
        assert at is not None
        whose[tables.DUE, due_key(Due(at, name))] = name


def place(row: QueuedPage) -> bytes:
    """Where a row stands in its queue."""
    return bytes([row.priority]) + row.arrival.to_bytes(8, "big")


def contents(frontier: Path) -> dict[Row, bytes]:
    """Every row of a frontier."""
    with closing(open_to_write(frontier)) as opened:
        return {(table, key): value for table in TABLES for key, value in opened.rows(table)}


def each_row(crawl: CrawlDir, plan: FleetPlan) -> Iterator[tuple[str, Row, bytes]]:
    """Every row of a crawl, with the worker in whose frontier it is."""
    for worker in plan.workers:
        for row, value in contents(CrawlDir(crawl / worker).frontier).items():
            yield worker, row, value


def names(count: int) -> Sequence[str]:
    """As ``scrapy fleet`` names its workers; one: alone."""
    return [f"worker-{number}" for number in range(1, count + 1)] if count > 1 else [""]
