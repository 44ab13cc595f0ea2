"""``python -m benchmarks.ten_million_hosts [--hosts N]``: hosts with work on disk; adding, a start after a kill, turns.

A real frontier over a real RocksDB under a simulated clock; the web is a good answer to everything. Each part runs in a
process of its own, so that its peak of memory is its own; the one that adds hosts is killed. ``--part clock``: what
a look costs of that which runs by the clock and sees hosts, ``--hosts`` of them in memory.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from types import SimpleNamespace
from typing import Any, TypeVar

from crawlerproject.crawl.figures import Figures
from crawlerproject.extensions.process_tuning import GC_THRESHOLDS
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.frontier_state import FrontierState, HostOwnership, unsure_until
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.names_and_domains import NamesToResolve
from crawlerproject.frontier.hosts.table import MAX_HOSTS_IN_MEMORY, HostTable, Start
from crawlerproject.frontier.learned.render_gains import Renders
from crawlerproject.frontier.learned.revisits import Revisits
from crawlerproject.frontier.leasing import Lookup
from crawlerproject.frontier.passage import DiscoveredUrl, Lease, Visit
from crawlerproject.frontier.politeness import HostPoliteness
from crawlerproject.frontier.robots_cache import RobotsCache
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pauses import PRESETS, RestLimits
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.refused_urls import AddressRules
from crawlerproject.rules.url.scope import Scope
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.operator_files.watched_lists import NeverCrawlFile
from crawlerproject.stores.protocols import PageRecord
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.watch.live import SLICE_HOSTS, Survey

T = TypeVar("T")

_LINKS_A_PAGE = 100
_LEASES_A_BEAT = 500  # a second of a crawl that is bound by its processor
_STARTED = 1_800_000_000.0
_ROBOTS = b"User-agent: *\nDisallow: /private/\n"


class Crawl:
    """A frontier in ``folder`` and its clock."""

    def __init__(self, folder: Path, now: float, *, clean: bool, in_memory: int) -> None:
        self.now = now
        self.store = RocksStore(folder)
        self.longest: dict[str, float] = {}  # by what was called: CPU seconds that the event loop would wait for it
        politeness = HostPoliteness(PRESETS["default"], RestLimits(60.0, 86_400.0, 86_400.0), max_failures=5)
        names = NamesToResolve(self.store, HostOwnership(unsure_until(self.store, now, clean_start=clean)))
        workbench = Workbench(domain_of=registered_domain, payer_of=names.payer)
        pause, start = politeness.start_delay_seconds, Start(now, clean)
        hosts = HostTable(self.store, workbench, names, start, start_delay_seconds=pause, max_in_memory=in_memory)
        rng = random.Random(1)
        self.frontier = Frontier(
            FrontierState(hosts, RobotsCache(self.store, "Bench", 86400.0)),
            UrlFilters(Scope("any"), NeverCrawlFile("", 60.0), AddressRules(), max_urls_per_host=10**9),
            politeness,
            Renders(self.store, workbench, rng),
            Revisits(self.store, rng, near_bits=0, check_share=0.0),
            rng,
        )
        registered_domain("example.com")  # its first question reads the list
        gc.freeze()  # as a crawl does
        gc.set_threshold(*GC_THRESHOLDS)

    def begin(self) -> None:
        """Take up what an earlier process left."""
        self.frontier.begin_loading()
        while self.held("load", lambda: self.frontier.load_some(250)):
            pass

    def held(self, what: str, call: Callable[[], T]) -> T:
        """Call it, and remember how long it took."""
        began = time.thread_time()
        try:
            return call()
        finally:
            self.longest[what] = max(self.longest.get(what, 0.0), time.thread_time() - began)

    def holds(self) -> str:
        """The longest of each kind."""
        kinds = (f"{what} {seconds * 1000:.0f} ms" for what, seconds in sorted(self.longest.items()))
        return f"  the event loop was held for at most: {', '.join(kinds)} (CPU)"

    def add(self, first: int, count: int) -> None:
        """A page of links, to a host each, every second one to two pages of it."""
        urls = [f"http://www.site-{n}.com/{page}" for n in range(first, first + count) for page in range(1 + n % 2)]
        found = [DiscoveredUrl(parse(url), 1, "L", "http://via.example/", 10) for url in urls]
        self.held("add", lambda: self.frontier.add(found, self.now))

    def turn(self) -> Lease | None:
        """The next lease; every host has an address of its own."""
        while True:
            turn = self.held("next", lambda: self.frontier.leasing.next(self.now))
            if not isinstance(turn, Lookup):
                return turn
            lease = self.frontier.leasing.looked_up(
                turn.host, f"address of {turn.host.name}", self.now + 3600, self.now
            )
            if lease is not None:
                return lease

    def beat(self) -> int:
        """A second: as many leases as there are, at most so many, are answered and committed; how many."""
        leases = 0
        while leases < _LEASES_A_BEAT and (lease := self.turn()) is not None:
            leases += 1
            record = PageRecord(lease.row.url, Reason.FETCHED, 200, self.now)
            body = _ROBOTS if lease.row.kind.is_robots else b""
            visit = Visit(lease.row, Reason.FETCHED, 200, ttfb_seconds=0.1, body=body)
            self.frontier.finish(lease, visit, record, self.now)
            self.now += 1 / _LEASES_A_BEAT
        self.held("commit", lambda: self.frontier.state.apply(self.frontier.state.take_changes(), []))
        self.now += 1 - leases / _LEASES_A_BEAT
        return leases


def add(folder: Path, hosts: int, in_memory: int) -> None:
    """Add them, and be killed."""
    crawl = Crawl(folder, _STARTED, clean=True, in_memory=in_memory)
    crawl.begin()
    began = last = time.process_time()
    for first in range(0, hosts, _LINKS_A_PAGE):
        crawl.add(first, min(_LINKS_A_PAGE, hosts - first))
        crawl.now += 0.01
        if first and first % 1_000_000 == 0:
            spent, last = time.process_time() - last, time.process_time()
            _say(f"  {first:,} hosts: {spent:.1f} us a host since the last line, {_peak()}")
    spent = time.process_time() - began
    frontier = crawl.frontier
    urls = hosts + hosts // 2
    _say(f"added {hosts:,} hosts, {urls:,} URLs: {spent / hosts * 1e6:.0f} µs CPU a host, peak {_peak()}")
    assert frontier.hosts.waiting_urls == urls, frontier.hosts.waiting_urls
    _say(f"  {len(frontier.workbench.hosts):,} in memory, {frontier.hosts.on_disk.counts.hosts:,} on disk")
    _say(crawl.holds())
    crawl.store.sync()
    os.kill(os.getpid(), signal.SIGKILL)


def start(folder: Path, hosts: int, in_memory: int, *, clean: bool) -> Crawl:
    """Take up what the process before has left."""
    began, started = time.monotonic(), _STARTED + 10 * hosts / _LINKS_A_PAGE * (1 + clean)
    crawl = Crawl(folder, started, clean=clean, in_memory=in_memory)
    frontier = crawl.frontier
    frontier.begin_loading()
    loading, first = True, 0.0
    while loading or not first:
        loading = bool(crawl.held("load", lambda: frontier.load_some(250)))
        if not first and (lease := crawl.turn()) is not None:
            first = time.monotonic() - began
            frontier.requeue(lease, crawl.now)
        crawl.now = started + time.monotonic() - began
    whole = time.monotonic() - began
    after, looked = ("an orderly end", "all in memory") if clean else ("a kill", "every queue looked at")
    _say(f"start after {after}: first lease after {first:.2f} s, {looked} after {whole:.0f} s")
    on_disk = frontier.hosts.on_disk.counts.hosts
    _say(f"  {len(frontier.workbench.hosts):,} in memory, {on_disk:,} on disk, peak {_peak()}")
    waiting = frontier.hosts.waiting_urls
    assert waiting == hosts + hosts // 2, waiting
    return crawl


def issuer(crawl: Crawl, beats: int) -> None:
    """Let hosts have their turns; all are due."""
    frontier = crawl.frontier
    crawl.now += 3600.0
    leases, cpu = 0, time.process_time()
    for _ in range(beats):
        leases += crawl.beat()
    a_lease = (time.process_time() - cpu) / max(leases, 1) * 1e6
    _say(f"{leases:,} leases in {beats:,} beats of a second: {a_lease:.0f} µs CPU a lease, peak {_peak()}")
    _say(f"  {len(frontier.workbench.hosts):,} in memory, {frontier.hosts.on_disk.counts.hosts:,} on disk")


def by_the_clock(folder: Path, hosts: int) -> None:
    """What sees hosts in memory: milliseconds of CPU, the least of three looks, and of its longest slice."""
    crawl = Crawl(folder, _STARTED, clean=True, in_memory=hosts)
    frontier, rng, now = crawl.frontier, random.Random(1), crawl.now
    crawl.begin()
    for number in range(hosts):
        host = Host(f"www.site-{number}.com", 1.0)
        host.rows, host.known, host.next_free = 2, 2, now + rng.uniform(0.0, 5.0)
        host.address, host.address_until = f"10.{number % 200}.{number // 200 % 250}.1", now + 3600.0
        frontier.workbench.add(host)
    run: Any = SimpleNamespace(now=lambda: now)
    every = list(frontier.workbench.hosts.values())

    def figures() -> Iterator[None]:
        return Figures()._looking(frontier, run)

    def live_page() -> Iterator[None]:
        survey = Survey()
        for first in range(0, hosts, SLICE_HOSTS):
            survey.look(every[first : first + SLICE_HOSTS], now, ())
            yield

    def commit() -> Iterator[None]:
        frontier.state.apply(frontier.state.take_changes(), [])
        yield

    def wake() -> Iterator[None]:
        frontier.hosts.on_disk.tend(now)
        yield frontier.wake_at()  # type: ignore[misc]  # a float, which is of no interest

    def garbage(generation: int) -> Callable[[], Iterator[None]]:
        def collected() -> Iterator[None]:
            yield gc.collect(generation)  # type: ignore[misc]

        return collected

    looks = {"figures": figures, "live page": live_page, "empty commit": commit, "wake": wake}
    for name, look in {**looks, "young garbage": garbage(0), "all garbage": garbage(2)}.items():
        found = [_sliced(look()) for _ in range(3)]
        _say(f"{name:<14} {min(found)[0]:9.3f} ms, longest slice {min(longest for _, longest in found):.3f} ms")
    crawl.store.close()


def _sliced(slices: Iterator[None]) -> tuple[float, float]:
    """Milliseconds of all slices and of the longest."""
    spent, more = list[float](), True
    while more:
        began = time.thread_time()
        more = next(slices, slices) is not slices
        spent.append((time.thread_time() - began) * 1000)
    return sum(spent), max(spent)


def _peak() -> str:
    return f"{getrusage(RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB"


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    """Each part as a process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ten_million_hosts", description=__doc__)
    parser.add_argument("--hosts", type=int, default=10_000_000)
    parser.add_argument("--in-memory", type=int, default=MAX_HOSTS_IN_MEMORY)
    parser.add_argument("--beats", type=int, default=600)
    parser.add_argument("--folder", type=Path, help="where the frontier lies (default: a temporary folder)")
    parser.add_argument("--part", choices=("add", "start", "turns", "clock"), help="this part alone, in this process")
    given = parser.parse_args()
    if given.part == "add":
        add(given.folder, given.hosts, given.in_memory)
    elif given.part == "clock":
        with tempfile.TemporaryDirectory(prefix="by-the-clock-") as made:
            by_the_clock(Path(made), min(given.hosts, given.in_memory))
    elif given.part:
        crawl = start(given.folder, given.hosts, given.in_memory, clean=given.part == "turns")
        if given.part == "turns":
            issuer(crawl, given.beats)
        _say(crawl.holds())
        crawl.store.close()
    else:
        with tempfile.TemporaryDirectory(prefix="ten-million-hosts-") as made:
            folder = given.folder or Path(made)
            options = [f"--{name}={getattr(given, name.replace('-', '_'))}" for name in ("hosts", "in-memory", "beats")]
            for part in ("add", "start", "turns"):
                command = [sys.executable, "-m", "benchmarks.ten_million_hosts", f"--folder={folder}", f"--part={part}"]
                subprocess.run([*command, *options], check=part != "add")
            size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            _say(f"on disk {size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
