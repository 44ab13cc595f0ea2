"""``python -m benchmarks.frontier_memory [--hosts N]``: what a host with work costs in memory, and that URLs do not."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import tracemalloc
from pathlib import Path

from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.frontier_state import FrontierState, HostOwnership
from crawlerproject.frontier.hosts.names_and_domains import NamesToResolve
from crawlerproject.frontier.hosts.table import HostTable, Start
from crawlerproject.frontier.learned.render_gains import Renders
from crawlerproject.frontier.learned.revisits import Revisits
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.frontier.politeness import HostPoliteness
from crawlerproject.frontier.robots_cache import RobotsCache
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.rules.politeness.pauses import PRESETS, RestLimits
from crawlerproject.rules.url.refused_urls import AddressRules
from crawlerproject.rules.url.scope import Scope
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.operator_files.watched_lists import NeverCrawlFile
from crawlerproject.stores.rocks.rocks_store import RocksStore

_BATCH = 50  # links of a page


def frontier_in(folder: Path) -> Frontier:
    """A frontier over a RocksDB in ``folder``."""
    store = RocksStore(folder)
    names = NamesToResolve(store, HostOwnership())
    workbench = Workbench(payer_of=names.payer)
    politeness = HostPoliteness(PRESETS["default"], RestLimits(60.0, 86_400.0, 86_400.0), max_failures=5)
    pause = politeness.start_delay_seconds
    hosts = HostTable(store, workbench, names, Start(time.time()), start_delay_seconds=pause)
    rng = random.Random(1)
    return Frontier(
        FrontierState(hosts, RobotsCache(store, "Bench", 86400.0)),
        UrlFilters(Scope("any"), NeverCrawlFile("", 60.0), AddressRules(), max_urls_per_host=10**9),
        politeness,
        Renders(store, workbench, rng),
        Revisits(store, rng, near_bits=0, check_share=0.0),
        rng,
    )


def fill(frontier: Frontier, hosts: int, first: int, pages: int) -> float:
    """Add ``pages`` pages to each host; CPU seconds a URL."""
    began = time.process_time()
    for host in range(hosts):
        for start in range(first, first + pages, _BATCH):
            urls = (f"http://h{host}.example/{page}" for page in range(start, min(start + _BATCH, first + pages)))
            frontier.add([DiscoveredUrl(parse(url), 1, "L", "http://via.example/", 10) for url in urls], time.time())
    return (time.process_time() - began) / (hosts * pages)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frontier_memory", description=__doc__)
    parser.add_argument("--hosts", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frontier-memory-") as folder:
        frontier = frontier_in(Path(folder))
        tracemalloc.start()
        fill(frontier, given.hosts, 0, 1)
        one, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(f"{given.hosts} hosts with 1 URL each: {one / given.hosts:.0f} bytes a host")
        tracemalloc.start()
        cost = fill(frontier, given.hosts, 1, 100)
        more, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(f"100 URLs more for each: {more / given.hosts:.0f} bytes a host more, {cost * 1e6:.1f} µs a URL (traced)")


if __name__ == "__main__":
    main()
