"""How fast partitions move between the folders of workers on one machine, and that kill -9 at any step costs nothing.

    python -m benchmarks.move_partitions --urls 1_000_000 --hosts 20_000 --path 1 2 4 3 1
    python -m benchmarks.move_partitions --kills 200

The first prints a line a move: rows of all frontiers, seconds, CPU. The second moves small random frontiers between
random numbers of workers, in processes that die at random steps, and compares each with what it was in the beginning.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from crawlerproject.fleet.repartition import journal, repartition
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import Counts, place_of
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import FleetPlan, read_plan
from crawlerproject.stores.protocols import DUE_FACT, Changes, Fingerprint, PageRecord, QueuedPage
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import Tables, open_to_write
from crawlerproject.stores.row_codec import TABLES
from tests.fleet.repartition.frontiers import PARTITIONS, contents, each_row, fill, names

STEPS: tuple[tuple[Any, str], ...] = (
    *((Tables, name) for name in ("write", "sync")),
    *((journal.Journal, name) for name in ("_put", "sync")),
    *((repartition, name) for name in ("write_plan", "sync_path")),
    (journal, "sync_path"),
    (Path, "rename"),
    (shutil, "rmtree"),
)
"""All that changes a disk."""
_FETCHED_SHARE = 5  # one page in so many is done, the others wait
# A process that is to die lives for so many steps at most; a small frontier's move takes some 60 (ours).
_MOST_STEPS = 70


def hook_steps(before: Callable[[], None], put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Have ``before`` called before each step."""

    def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            before()
            return step(*given, **named)

        return called

    for owner, name in STEPS:
        put(owner, name, hooked(getattr(owner, name)))


def child(crawl: CrawlDir, count: int, steps: int) -> None:
    """Move, in this process, which dies before step number ``steps``; 0: it does not."""
    left = steps

    def before() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    hook_steps(before)
    repartition.move(crawl, names(count), lambda _: None, PARTITIONS)


def killed(crawl: CrawlDir, count: int, steps: int) -> bool:
    """As ``child``, in another process; whether that was killed. Raises CalledProcessError when it failed."""
    command = [sys.executable, "-m", "benchmarks.move_partitions", "--child", str(crawl), str(count), str(steps)]
    ended = subprocess.run(command, check=False, cwd=Path(__file__).parents[1])
    if ended.returncode not in (0, -signal.SIGKILL):
        raise subprocess.CalledProcessError(ended.returncode, command)
    return ended.returncode != 0


def kills(crawl: CrawlDir, chance: random.Random, rounds: int, path: Iterator[int]) -> None:
    """Moves until so many processes were killed. Raises AssertionError when a row is lost, changed or misplaced."""
    made = fill(crawl, random.Random(chance.random()), hosts=6)
    before, done = contents(crawl.frontier), 0
    while done < rounds:
        count = next(path)
        while done < rounds and killed(crawl, count, chance.randint(1, _MOST_STEPS)):
            done += 1
        plan = repartition.move(crawl, names(count), lambda _: None, PARTITIONS)
        rows = [(worker, row, value) for worker, row, value in each_row(crawl, plan) if made.only_with(row)]
        assert all(plan.holder(made.hosts[row]) == worker for worker, row, _ in rows), "a row is with the wrong worker"
        alone = {row: before[row] for row in made.hosts if made.only_with(row)}
        assert len(rows) == len(alone), "rows are missing, or there twice"
        assert {row: value for _, row, value in rows} == alone, "a row has changed"
    repartition.move(crawl, [""], lambda _: None, PARTITIONS)
    assert contents(crawl.frontier) == before, "one process has not what it had"


def build(crawl: CrawlDir, urls: int, hosts: int) -> None:
    """A frontier of so many URLs, evenly over the hosts."""
    counts, chance, each = Counts(whole=True), random.Random(1), urls // hosts
    with closing(RocksStore(crawl.frontier)) as store:
        for number in range(hosts):
            host = Host(f"www.site-{number}.example", 1.0)
            changes = Changes()
            for at in range(each):
                address = parse(f"https://{host.name}/articles/{at}/{chance.getrandbits(32):08x}.html")
                if at % _FETCHED_SHARE:
                    row = QueuedPage(host.name, address.key, address.url, 1, at, 2, "LL", f"https://{host.name}/")
                    changes.queued.append(row)
                    continue
                digest = chance.randbytes(20)
                changes.pages.append((address.key, PageRecord(address.url, "fetched", 200, 1.7e9, digest, '"etag"')))
                changes.fingerprints.append(Fingerprint(host.name, chance.getrandbits(64), address.key))
                identity = f"<urn:uuid:00000000-0000-4000-8000-{chance.getrandbits(48):012x}>"
                changes.payloads.append((digest, Original(identity, address.url, "2026-01-01T00:00:00Z")))
            host.rows, host.known, host.on_disk, host.next_free = len(changes.queued), each, True, 1.7e9 + number
            counts.add(host)
            changes.due.append((host.name, None, place_of(host).at))
            changes.hosts.append((host.name, host.pack()))
            changes.robots.append((f"https://{host.name}", bytes(100)))
            store.apply(changes)
        store.apply(Changes(facts=[("clean", b"1"), (DUE_FACT, counts.pack())]))


def measure(crawl: CrawlDir, urls: int, hosts: int, path: list[int]) -> None:
    """Print what each move costs."""
    build(crawl, urls, hosts)
    for count in path:
        plan = read_plan(crawl) or FleetPlan(("",), (0,) * 256)
        rows, began, spent = _rows(crawl, plan), time.monotonic(), time.process_time()
        after = repartition.move(crawl, names(count), print)
        seconds, cpu = time.monotonic() - began, time.process_time() - spent
        where = f"{len(plan.workers)} -> {len(after.workers)}"
        print(
            f"{where}: {rows:,} rows, {seconds:.1f} s, {rows / max(seconds, 1e-3):,.0f} rows a second, "
            f"{cpu / rows * 1e6:.2f} µs of CPU a row",
            flush=True,
        )


def _rows(crawl: CrawlDir, plan: FleetPlan) -> int:
    count = 0
    for worker in plan.workers:
        with closing(open_to_write(CrawlDir(crawl / worker).frontier)) as frontier:
            sizes = (frontier.columns[table].property_int_value("rocksdb.estimate-num-keys") for table in TABLES)
            count += sum(size or 0 for size in sizes)
    return count


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=20_000)
    parser.add_argument("--path", type=int, nargs="+", default=[2, 4, 3, 1], help="numbers of workers")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(CrawlDir(given.child[0]), *map(int, given.child[1:]))
        return
    with tempfile.TemporaryDirectory(prefix="moves-") as folder:
        if not given.kills:
            measure(CrawlDir(folder), given.urls, given.hosts, given.path)
            return
        chance = random.Random(given.seed)
        kills(CrawlDir(folder), chance, given.kills, iter(lambda: chance.choice([1, 2, 3, 4]), 0))
        print(f"{given.kills} processes were killed at random steps; every row is where it belongs, once")


if __name__ == "__main__":
    main()
