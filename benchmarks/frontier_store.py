"""What the frontier's store costs a URL, alone, as it grows: CPU, memory, disk, and the longest single call.

    python -m benchmarks.frontier_store --urls 10_000_000 --hosts 100_000
    python -m benchmarks.frontier_store --urls 100_000_000 --keep FOLDER --report 10_000_000

With ``--keep`` the same command goes on where it was stopped or killed, at its last line.

Links arrive as a crawl finds them: some fifty a page, most on the page's own host, some of them known before.
Between the pages, heads of host queues are taken and acknowledged with a page record, as a commit does it.
CPU is that of the whole process, RocksDB's own threads included; making the input is measured apart and left out.
A last part drains one host with very many pages in order: removals must not slow the head of its queue down.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from crawlerproject.stores.atomic_files import replace_file
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage
from crawlerproject.stores.rocks.rocks_store import RocksStore

LINKS = 50  # of a page, the mean of DESIGN's own trials
FOREIGN = 8  # of these, on a few other hosts
PAGES_A_COMMIT = 50  # what one beat of a second ends at a modest pace
TAKEN_SHARE = 0.2  # pages ended for each page added, while the frontier grows
REPORT_URLS = 1_000_000  # from one line to the next


def _key(host: str, path: str) -> bytes:
    return blake2b(host.encode(), digest_size=8).digest() + blake2b(path.encode(), digest_size=16).digest()


class Links:
    """An endless web: pages with links, the same every time."""

    def __init__(self, hosts: int, seed: int = 7) -> None:
        self._rng = random.Random(seed)
        self._hosts = hosts
        self._next = [0] * hosts  # how many distinct URLs of each host were named so far
        self._named: list[str] = []  # hosts with at least one URL
        self._arrival = 1_700_000_000_000_000

    def of_a_page(self) -> list[QueuedPage]:
        """The links of one page: new ones, and a fifth that were named before."""
        rng = self._rng
        own = rng.randrange(self._hosts)
        foreign = rng.randrange(self._hosts)
        via = f"https://www.site-{own}.example/articles/{self._next[own]}.html"
        rows = []
        for number in range(LINKS):
            index = foreign if number < FOREIGN else own
            page = self._next[index]
            if page and rng.random() < 0.2:
                page = rng.randrange(page)
            else:
                self._next[index] = page + 1
                if page == 0:
                    self._named.append(f"www.site-{index}.example")
            rows.append(self._row(index, page, via))
        return rows

    def _row(self, index: int, page: int, via: str) -> QueuedPage:
        host = f"www.site-{index}.example"
        path = f"/articles/{page % 97}/a-title-of-some-words-{page}.html"
        self._arrival += 1
        return QueuedPage(host, _key(host, path), f"https://{host}{path}", 1, self._arrival, 3, "LLL", via)

    def some_hosts(self, count: int) -> list[str]:
        """Hosts that have work, for the next leases."""
        return self._rng.choices(self._named, k=count)


class Meter:
    """CPU by what it was spent on, and the longest call."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin a new line of the table."""
        self.add_cpu = self.take_cpu = self.longest = 0.0
        self.added = self.taken = 0


def add_page(store: RocksStore, rows: list[QueuedPage], meter: Meter) -> None:
    """The links of one page, as the scheduler adds them: ask which are new, queue these."""
    begin, cpu = time.perf_counter(), time.process_time()
    fresh = {row.key: row for row in rows}
    known = store.known(list(fresh))
    new = [row for row, old in zip(fresh.values(), known, strict=True) if not old]
    store.apply(Changes(queued=new))
    meter.add_cpu += time.process_time() - cpu
    meter.longest = max(meter.longest, time.perf_counter() - begin)
    meter.added += len(rows)


def take_pages(store: RocksStore, hosts: list[str], meter: Meter) -> None:
    """Lease the first row of each host, then end all these leases in one change."""
    begin, cpu = time.perf_counter(), time.process_time()
    changes = Changes()
    for host in dict.fromkeys(hosts):
        for row in store.head(host, 1):
            changes.removed.append(row)
            record = PageRecord(row.url, "fetched", 200, 1.7e9, row.key[:20], '"5f2c-61a"', "")
            changes.pages.append((row.key, record))
            changes.hosts.append((host, b"s" * 200))
    store.apply(changes)
    meter.take_cpu += time.process_time() - cpu
    meter.longest = max(meter.longest, time.perf_counter() - begin)
    meter.taken += len(changes.removed)


class Growth:
    """How far the store has grown: kept beside it at each line, so that a long run may be stopped."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self.total = 0
        self.owed = 0.0

    @classmethod
    def of(cls, file: Path, hosts: int) -> Growth:
        """As it was kept, or at its beginning. What was added since comes once more, and is known then."""
        if not file.exists():
            return cls(Links(hosts))
        kept: Growth = pickle.loads(file.read_bytes())
        return kept

    def keep(self, store: RocksStore, file: Path) -> None:
        """Write it down once the store is durable."""
        store.sync()
        replace_file(file, pickle.dumps(self))


def resident_mb() -> float:
    """Memory of the process that is not swapped or shared away."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def disk_mb(folder: str) -> float:
    """Bytes of all files of the store."""
    return sum(entry.stat().st_size for entry in os.scandir(folder)) / 1e6


def grow(store: RocksStore, given: argparse.Namespace, growth: Growth) -> None:
    """Add links and take a share of them meanwhile; one line each ``--report`` URLs."""
    meter, links, reported = Meter(), growth.links, growth.total
    print(f"input and interpreter: {resident_mb():.0f} MB resident")
    print("    URLs   µs/added  µs/taken   taken  resident MB  disk MB  longest ms")
    while growth.total < given.urls:
        rows = links.of_a_page()
        add_page(store, rows, meter)
        growth.total += len(rows)
        growth.owed += TAKEN_SHARE
        if growth.owed >= PAGES_A_COMMIT:
            growth.owed -= PAGES_A_COMMIT
            take_pages(store, links.some_hosts(PAGES_A_COMMIT), meter)
        if growth.total - reported >= min(given.report, given.urls):
            reported = growth.total
            _report(reported, meter, os.path.join(given.folder, "frontier"))
            growth.keep(store, _growth_file(given))


def _growth_file(given: argparse.Namespace) -> Path:
    return Path(given.folder, "growth.pickle")


def _report(total: int, meter: Meter, folder: str) -> None:
    added = meter.add_cpu / max(meter.added, 1) * 1e6
    taken = meter.take_cpu / max(meter.taken, 1) * 1e6
    print(
        f"{total:>11,} {added:>7.2f} {taken:>9.2f} {meter.taken:>7,} {resident_mb():>12.0f}"
        f" {disk_mb(folder):>8.0f} {meter.longest * 1e3:>11.1f}",
        flush=True,
    )
    meter.reset()


def settle(store: RocksStore, pages: int, links: Links) -> None:
    """Take many pages from the grown store, with nothing added meanwhile."""
    meter = Meter()
    while meter.taken < pages:
        before = meter.taken
        take_pages(store, links.some_hosts(PAGES_A_COMMIT), meter)
        if meter.taken == before:
            break
    print(f"taken alone: {meter.take_cpu / max(meter.taken, 1) * 1e6:.2f} µs a page over {meter.taken:,} pages")


def drain_one(store: RocksStore, urls: int) -> None:
    """One host with ``urls`` pages, taken in order ten at a time."""
    host, meter = "one.example", Meter()
    for start in range(0, urls, 1000):
        numbers = range(start, min(start + 1000, urls))
        paths = [(n, f"/item/{n}") for n in numbers]
        rows = [QueuedPage(host, _key(host, p), f"https://{host}{p}", 1, n + 1, 2, "LL", "") for n, p in paths]
        store.apply(Changes(queued=rows))
    taken = 0
    print(f"one host of {urls:,} pages, in order:")
    rows = store.head(host, 1)
    while rows:
        cpu, begin = time.process_time(), time.perf_counter()
        rows = store.head(host, 10)
        pages = [(row.key, PageRecord(row.url, "fetched", 200, 1.7e9)) for row in rows]
        store.apply(Changes(removed=rows, pages=pages))
        meter.take_cpu += time.process_time() - cpu
        meter.longest = max(meter.longest, time.perf_counter() - begin)
        meter.taken += len(rows)
        taken += len(rows)
        if meter.taken >= max(urls // 5, 1):
            each = meter.take_cpu / meter.taken * 1e6
            print(f"  {taken:>10,} taken: {each:.2f} µs a page, longest {meter.longest * 1e3:.1f} ms", flush=True)
            meter.reset()


def reopen(folder: str) -> RocksStore:
    """How long a start takes: opening, and the first thousand hosts that have work."""
    begin = time.perf_counter()
    store = RocksStore(folder)
    opened = time.perf_counter() - begin
    hosts = hosts_listed(store)
    whole = time.perf_counter() - begin
    print(f"opened again in {opened:.2f} s, all {hosts:,} hosts with work listed after {whole:.2f} s")
    return store


def hosts_listed(store: RocksStore) -> int:
    """How many hosts have work."""
    return sum(1 for _ in store.hosts_with_work())


def _arguments() -> Iterator[argparse.Namespace]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--one-host", type=int, default=1_000_000, help="pages of the host that is drained in order")
    parser.add_argument("--report", type=int, default=REPORT_URLS, help="URLs from one line to the next")
    parser.add_argument("--folder", help="where to make the store (default: a temporary folder)")
    parser.add_argument("--keep", type=Path, help="the store's own folder, which is left behind and gone on with")
    options = parser.parse_args()
    if options.keep is not None:
        options.folder = options.keep
        options.keep.mkdir(parents=True, exist_ok=True)
        yield options
        return
    options.folder = tempfile.mkdtemp(prefix="frontier-store-", dir=options.folder)
    try:
        yield options
    finally:
        shutil.rmtree(options.folder, ignore_errors=True)


def main() -> None:
    """Run all parts in turn."""
    for options in _arguments():
        folder = os.path.join(options.folder, "frontier")
        store = RocksStore(folder)
        growth = Growth.of(_growth_file(options), options.hosts)
        grow(store, options, growth)
        settle(store, min(options.urls // 20, 200_000), growth.links)
        store.close()
        store = reopen(folder)
        if options.one_host:
            drain_one(store, options.one_host)
        print(f"at the end {resident_mb():.0f} MB resident, {disk_mb(folder):.0f} MB on disk")
        store.close()


if __name__ == "__main__":
    main()
