"""``python -m benchmarks.fingerprint_index [--counts 1_000_000 10_000_000]``: the index of near duplicates alone.

Random fingerprints (real ones are nearly uniform) of hosts of 1,000 pages are stored as the crawl stores them, in
batches of a beat; then known ones are asked for again, with 6 of 64 bits changed within a host and 3 across hosts.
Printed: the cost of adding and of a question, right after so much was written and after compaction, how many pages
were found, and the size on disk.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from crawlerproject.stores.protocols import Changes, Fingerprint
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.row_codec import PRINTS

PAGES_A_HOST = 1000
BATCH = 500  # pages of one beat
QUESTIONS = 3000
_ALL = (1 << 64) - 1


def scattered(number: int) -> int:
    """64 bits that look random, another for each number (splitmix64's last steps)."""
    value = number * 0x9E3779B97F4A7C15 & _ALL
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _ALL
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _ALL
    return value ^ value >> 31


def made(number: int, hosts: int) -> Fingerprint:
    """The fingerprint with this number; hosts take turns, as in a crawl."""
    return Fingerprint(
        f"host-{number % hosts}.test",
        scattered(number),
        scattered(-number).to_bytes(24, "big"),
    )


def fill(store: RocksStore, first: int, last: int, hosts: int) -> float:
    """Add fingerprints; CPU seconds, background compaction included."""
    began = time.process_time()
    for start in range(first, last, BATCH):
        numbers = range(start, min(start + BATCH, last))
        store.apply(Changes(fingerprints=[made(number, hosts) for number in numbers]))
    return time.process_time() - began


def changed(value: int, bits: int, chance: random.Random) -> int:
    """The value with so many bits turned over."""
    for bit in chance.sample(range(64), bits):
        value ^= 1 << bit
    return value


def ask(question: Callable[[Fingerprint], bool], pages: list[Fingerprint]) -> str:
    """Median and 99th percentile of microseconds a question, and how many found their page."""
    spent, right = [], 0
    for wanted in pages:
        began = time.thread_time()
        right += question(wanted)
        spent.append((time.thread_time() - began) * 1e6)
    spent.sort()
    most = spent[len(spent) * 99 // 100]
    return f"median {statistics.median(spent):4.0f} µs of CPU, 99 % under {most:4.0f}, found {right} of {len(pages)}"


def disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.sst"))


def measure(store: RocksStore, count: int, hosts: int, seed: int) -> None:
    """Questions about pages that are there, as the store is now."""
    chance = random.Random(seed)
    pages = [made(chance.randrange(count), hosts) for _ in range(QUESTIONS)]

    def near(wanted: Fingerprint, host: str, bits: int) -> bool:
        return any(found.key == wanted.key for found in store.near(host, changed(wanted.value, bits, chance), bits))

    print(f"  within a host, its first question: {ask(lambda wanted: near(wanted, wanted.host, 6), pages)}")
    print(f"  within a host, later ones:         {ask(lambda wanted: near(wanted, wanted.host, 6), pages)}")
    print(f"  across hosts:                      {ask(lambda wanted: near(wanted, '', 3), pages)}", flush=True)


def compact(folder: Path, count: int) -> None:
    """What RocksDB does in the background when it is left the time."""
    store = RocksStore(folder)
    store._tables.database.get_column_family(PRINTS).compact_range(None, None)
    store.close()
    print(
        f"  compacted: {disk_bytes(folder) / count:.0f} bytes a page, {disk_bytes(folder) / 2**20:,.0f} MiB", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fingerprint_index", description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[1_000_000, 10_000_000])
    given = parser.parse_args()
    hosts = max(1, max(given.counts) // PAGES_A_HOST)
    with tempfile.TemporaryDirectory(prefix="fingerprints-") as scratch:
        before = 0
        for count in sorted(given.counts):
            store = RocksStore(scratch)
            spent = fill(store, before, count, hosts)
            print(f"{count:,} fingerprints, {spent / (count - before) * 1e6:.0f} µs of CPU for each added")
            measure(store, count, hosts, seed=count)
            store.close()
            compact(Path(scratch), count)
            store = RocksStore(scratch)
            measure(store, count, hosts, seed=count + 1)
            store.close()
            before = count


if __name__ == "__main__":
    main()
