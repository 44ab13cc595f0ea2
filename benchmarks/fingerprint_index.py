"""``python -m benchmarks.fingerprint_index [--counts 1_000_000 10_000_000]``: the index of near duplicates alone.

Random fingerprints (real ones are nearly uniform) of hosts of 1,000 pages are stored as the crawl stores them, in
batches of a beat; then known ones are asked for again with some bits changed. Printed: the cost of adding and of a
question (within the host and across hosts), how many were found, and the size on disk after compaction.
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
from crawlerproject.stores.rocks import RocksStore
from crawlerproject.stores.rocks_options import PRINTS

PAGES_A_HOST = 1000
BATCH = 500  # pages of one beat
QUESTIONS = 3000
_MIX = 0x9E3779B97F4A7C15  # odd: number -> 64 bits, each once


def made(number: int) -> Fingerprint:
    """The fingerprint with this number; hosts take turns, as in a crawl."""
    value = random.Random(number).getrandbits(64)
    return Fingerprint(f"host-{number % max(1, _hosts)}.test", value, (number * _MIX % 2**64).to_bytes(24, "big"))


_hosts = 1


def fill(store: RocksStore, first: int, last: int) -> float:
    """Add fingerprints; CPU seconds, background compaction included."""
    began = time.process_time()
    for start in range(first, last, BATCH):
        store.apply(Changes(fingerprints=[made(number) for number in range(start, min(start + BATCH, last))]))
    return time.process_time() - began


def changed(value: int, bits: int, chance: random.Random) -> int:
    """The value with so many bits turned over."""
    for bit in chance.sample(range(64), bits):
        value ^= 1 << bit
    return value


def ask(question: Callable[[Fingerprint], bool], count: int, chance: random.Random) -> str:
    """Median and 99th percentile of microseconds a question, and how many found their page."""
    spent, right = [], 0
    for _ in range(QUESTIONS):
        wanted = made(chance.randrange(count))
        began = time.thread_time()
        right += question(wanted)
        spent.append((time.thread_time() - began) * 1e6)
    spent.sort()
    most = spent[QUESTIONS * 99 // 100]
    return f"median {statistics.median(spent):6.0f} µs of CPU, 99 % under {most:6.0f} µs, found {right}"


def disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.sst"))


def measure(store: RocksStore, folder: Path, count: int) -> None:
    chance = random.Random(count)

    def near(wanted: Fingerprint, host: str, bits: int) -> bool:
        return any(found.key == wanted.key for found in store.near(host, changed(wanted.value, bits, chance), bits))

    print(f"  within the host, 6 bits changed: {ask(lambda wanted: near(wanted, wanted.host, 6), count, chance)}")
    print(f"  across hosts,    3 bits changed: {ask(lambda wanted: near(wanted, '', 3), count, chance)}")
    unknown = random.Random(-count)
    both = ask(lambda wanted: _new(store, wanted.host, unknown.getrandbits(64)), count, chance)
    print(f"  a new page, both questions:      {both}")
    store.sync()
    store._database.get_column_family(PRINTS).compact_range(None, None)
    print(f"  on disk {disk_bytes(folder) / count:.0f} bytes a page, {disk_bytes(folder) / 2**20:,.0f} MiB", flush=True)


def _new(store: RocksStore, host: str, value: int) -> bool:
    return bool(store.near(host, value, 6) or store.near("", value, 3))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fingerprint_index", description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[1_000_000, 10_000_000])
    given = parser.parse_args()
    global _hosts
    _hosts = max(given.counts) // PAGES_A_HOST
    with tempfile.TemporaryDirectory(prefix="fingerprints-") as scratch:
        store, before = RocksStore(scratch), 0
        for count in sorted(given.counts):
            spent = fill(store, before, count)
            print(f"{count:,} fingerprints, {spent / (count - before) * 1e6:.0f} µs of CPU for each added")
            measure(store, Path(scratch), count)
            before = count
        store.close()


if __name__ == "__main__":
    main()
