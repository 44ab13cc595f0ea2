"""What a long queue costs that is refused as a whole, and whom it disturbs.

``python -m benchmarks.refusals [--rows 100000] [--hosts 100] [--pages 8]``

An earlier run left one host with very many queued pages. A real crawl takes it up beside hosts that nothing is wrong
with, and each cause of a refusal in turn meets the long queue: its domain is in NeverCrawl.txt, its robots.txt says
Disallow, the budget of its template is spent, its pages are for WebSub hubs without a listener, or for a browser that
this run does not have (those are kept for another run, not refused). The first line is the same crawl without the long
queue, which the CPU seconds of the others are compared with. ``held`` is the longest time that the event loop was
held, ``worked`` what of one such hold this process worked, ``gap`` the longest pause that any other host saw beyond its
pace. The last line is the way in: a page of the long host links to as many pages, and the crawl is stopped.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.rules.robots.policy import RobotsRecord
from crawlerproject.rules.row_kinds import FLAG_HUB, FLAG_RENDER
from crawlerproject.rules.traps.template_yield import HostYields
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, HostFact, QueuedPage
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore
from tests.hostile.arena import Arena, Asked, answer, arena
from tests.web.running import many_files, one_pace

PACE_SECONDS = 2.0
_LONG = "long.test"
_SETTINGS = {
    **one_pace(PACE_SECONDS),
    "SCOPE_MAX_URLS_PER_HOST": "10000000",
}
_DAY_SECONDS = 86_400.0
_AT_A_TIME = 10_000


class Cause(NamedTuple):
    """Why the rows are refused: what they are, and what else the earlier run left, or the settings say."""

    name: str
    flags: int = 0
    rules: bytes = b""
    spent: bool = False
    excluded: bool = False


CAUSES = [
    Cause("nevercrawl", excluded=True),
    Cause("robots", rules=b"User-agent: *\nDisallow: /\n"),
    Cause("trap", spent=True),
    Cause("out-of-scope", flags=FLAG_HUB),
    Cause("kept", flags=FLAG_RENDER),
]


class Ran(NamedTuple):
    """What one crawl showed."""

    cpu_seconds: float
    log: str
    gap_seconds: float  # beyond the pace
    pages: int  # of the other hosts
    left: int  # rows of the long host

    def stat(self, name: str) -> float:
        """A number that the crawl said at its end."""
        found = re.search(rf"'{re.escape(name)}': ([0-9.]+)", self.log)
        return float(found[1]) if found else 0.0


def fill(folder: Path, web: Arena, cause: Cause, rows: int) -> None:
    """What an earlier run left."""
    address = parse(web.url(_LONG))
    origin = f"http://{address.host}"
    now = time.time()
    host = Host(address.host, PACE_SECONDS)
    host.rows = host.known = host.arrival = rows
    host.robots_until_http = now + _DAY_SECONDS
    record = RobotsRecord(200, cause.rules, now, now + _DAY_SECONDS, "fetched")
    yields = HostYields()
    for number in range(60 if cause.spent else 0):
        yields.learn(f"{origin}/item/{number}", new=False)
    store = RocksStore(folder / "frontier")
    for first in range(0, rows, _AT_A_TIME):
        queued = [
            QueuedPage(address.host, parse(url).key, url, 10, number + 1, 1, "L", origin, 0, cause.flags)
            for number in range(first, min(first + _AT_A_TIME, rows))
            for url in [f"{origin}/item/{number}"]
        ]
        store.apply(Changes(queued=queued))
    store.apply(
        Changes(
            hosts=[(address.host, host.pack())],
            robots=[(origin, record.pack())],
            facts=[(HostFact.TRAPS + address.host, yields.pack())],
        )
    )
    store.sync()
    store.close()


def crawl(place: Path, options: argparse.Namespace, cause: Cause | None, *, links: bool = False) -> Ran:
    """One crawl among hosts that nothing is wrong with; ``links``: the long host's front page is a seed."""
    names = [f"host{number}.test" for number in range(options.hosts)]
    with arena(place) as web:
        seeds = [web.innocent(pages=options.pages, name=name) for name in names]
        front = answer("<!doctype html><body>" + "".join(f"<a href=/x/{n}>x</a>" for n in range(options.rows)))
        long_seed = web.site(_LONG, lambda asked: _front(asked, front))
        never = place / "never.txt"
        never.write_text(f"{_LONG}\n" if cause and cause.excluded else "")
        if cause is not None:
            fill(place / "crawl", web, cause, options.rows)

        def all_asked() -> bool:
            return all(len(web.of(name)) >= options.pages for name in names)

        done = web.crawl(
            *seeds,
            *([long_seed] if links else []),
            settings={**_SETTINGS, "NEVERCRAWL_FILE": str(never)},
            until=all_asked if links else None,
            seconds=600.0,
        )
        with FrontierView(done.folder / "frontier") as view:
            packed = view.host(parse(long_seed).host)
        left = Host.unpack(_LONG, packed).rows if packed else 0
        gap = max(web.longest_gap(name) for name in names) - PACE_SECONDS
        return Ran(done.spent.cpu_seconds, done.log, gap, sum(len(web.of(name)) for name in names), left)


def _front(asked: Asked, front: bytes) -> bytes | None:
    return front if asked.path == "/" else None


def line(name: str, ran: Ran, base: Ran | None) -> str:
    """One line of the table."""
    more = ran.cpu_seconds - base.cpu_seconds if base else 0.0
    refused = sum(ran.stat(f"refused/{cause.name}") for cause in CAUSES)
    held, worked = ran.stat("loop/longest_hold_seconds"), ran.stat("loop/longest_work_seconds")
    return (
        f"{name:<12} {refused:>9,.0f} {ran.left:>9,} {ran.pages:>7,} {ran.cpu_seconds:>8.1f} {more:>8.1f} "
        f"{held:>7.3f} {worked:>7.3f} {ran.gap_seconds:>7.2f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--pages", type=int, default=8, help="of each other host; up to 100")
    options = parser.parse_args()
    many_files()
    print(f"{options.rows:,} rows beside {options.hosts} hosts of {options.pages} pages; seconds")
    titles = ("refused", 9), ("left", 9), ("pages", 7), ("CPU", 8), ("more", 8), ("held", 7), ("worked", 7), ("gap", 7)
    print(f"{'cause':<12} " + " ".join(f"{title:>{width}}" for title, width in titles))
    with tempfile.TemporaryDirectory() as place:
        base = crawl(Path(place, "none"), options, None)
        print(line("none", base, None), flush=True)
        for cause in CAUSES:
            print(line(cause.name, crawl(Path(place, cause.name), options, cause), base), flush=True)
        print(line("links", crawl(Path(place, "links"), options, None, links=True), base), flush=True)


if __name__ == "__main__":
    main()
