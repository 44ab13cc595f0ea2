"""Deaths and torn tails, many of them, at the level of archive and frontier: after each start all is well.

``benchmarks/torn_tails.py`` does the same to a real crawl.
"""

import os
import random
import time
from pathlib import Path

from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.inspection.verification import Verification
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.archive import Archive, WarcSeries
from crawlerproject.stores.archive.capture_index import Captures
from crawlerproject.stores.archive.recovery import LostPages
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, PageRecord, QueuedPage, pack_open, unpack_open
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.commands.running import write
from tests.warc_samples import PAGE, STARTED_AT, exchange

ROUNDS = 25
TAIL_BYTES = 64 * 1024


class Process:
    """What one life of a crawl does to its folder: take from the queue, archive, commit."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.store = RocksStore(folder / "frontier")
        self.archive = Archive(
            CrawlDir(folder),
            unpack_open(self.store.fact(ARCHIVE_FACT)),
            WarcSeries("crawl", "host.test", 60_000, [("software", "crawlerproject/1.0")]),
            keep_days=31,
            clock=lambda: STARTED_AT,
            lost=LostPages(self.store, folder / "log", time.time(), count_rows).rows_lost,
        )
        self.changes = Changes()
        self.unfetched = [row for host in self.store.hosts_with_work() for row in self.store.head(host, 1000)]

    def fetch(self, pages: int) -> None:
        """Archive some pages that wait; each with a body of its own, so that digests tell them apart."""
        for row in self.unfetched[:pages]:
            body = PAGE + self.chance.randbytes(self.chance.randrange(3000)) + row.url.encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
            written = write(self.archive, row.url, exchange(body, head))
            self.changes.removed.append(row)
            self.changes.pages.append((row.key, PageRecord(row.url, "fetched", 200, STARTED_AT, written.digest)))
        del self.unfetched[:pages]

    def commit(self) -> None:
        """As a crawl does: the archive first, then everything else at once; then a new file if this one is full."""
        self.archive.flush()
        self.archive.warc.sync()
        self.changes.facts = [(ARCHIVE_FACT, pack_open(state))] if (state := self.archive.warc.state()) else []
        self.store.apply(self.changes)
        self.changes = Changes()
        self.archive.warc.roll_if_full()

    def die(self) -> None:
        """No goodbye; what waits in memory is gone."""
        self.archive.warc.abandon()
        self.archive._index.wait()  # a thread cannot be killed, and must not write into the next life
        self.store.close()


def test_deaths(tmp_path: Path) -> None:
    """Whatever was cut, even of committed bytes: verify is clean after each start, and each page is here or queued."""
    chance = random.Random(4)
    urls = [f"http://h{number % 3}.example.com/{number}" for number in range(4 * ROUNDS)]
    seed(tmp_path, urls)
    cuts = lost = 0
    for _ in range(ROUNDS):
        process = Process(tmp_path, chance)
        found = Verification(CrawlDir(tmp_path), lambda done: None).run()
        assert found.problems == []
        lost += sum("wait in the frontier again" in message for message in process.archive.messages)
        for _ in range(chance.randrange(1, 4)):
            process.fetch(chance.randrange(3))
            process.commit()
        process.fetch(chance.randrange(3))
        process.die()
        cuts += cut(tmp_path / "warc", chance)
        everything(tmp_path, urls)
    process = Process(tmp_path, chance)
    process.fetch(len(urls))
    process.commit()
    process.archive.close()
    process.store.close()

    assert everything(tmp_path, urls) == set()
    assert Verification(CrawlDir(tmp_path), lambda done: None).run().problems == []
    assert cuts > ROUNDS / 3
    assert lost > 3


def seed(folder: Path, urls: list[str]) -> None:
    """All pages wait."""
    (folder / "frontier").mkdir()
    store = RocksStore(folder / "frontier")
    addresses = [parse(url) for url in urls]
    rows = [QueuedPage(a.host, a.key, a.url, 1, number, 0, "", "") for number, a in enumerate(addresses)]
    store.apply(Changes(queued=rows))
    store.close()


def cut(warcs: Path, chance: random.Random) -> bool:
    """Tear the last 64 KB of the open file at a random byte, every other time."""
    opened = list(warcs.glob("*.open"))
    if not opened or chance.random() < 0.4:
        return False
    size = opened[0].stat().st_size
    os.truncate(opened[0], chance.randrange(max(0, size - TAIL_BYTES), size))
    if chance.random() < 0.3:  # as some file systems leave it
        os.truncate(opened[0], size)
    return True


def everything(folder: Path, urls: list[str]) -> set[str]:
    """The pages that wait. Each is committed as archived or waits, never neither; none is archived twice."""
    store = RocksStore(folder / "frontier")
    waiting = {row.url for host in store.hosts_with_work() for row in store.head(host, 1000)}
    decided = {url for url in urls if (record := store.page(parse(url).key)) is not None and record.status}
    store.close()
    assert waiting | decided == set(urls)
    assert not waiting & decided
    captures = Captures([folder])
    assert all(len(captures.of_url(url)) <= 1 for url in urls[::7])
    return waiting
