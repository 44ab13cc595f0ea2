"""One crawl in three forms: of one process, of two workers on one machine, and of one that was such a fleet before.

The rows and files of a small real crawl are divided as they lie when each worker has crawled its own hosts. All three
hold the same, so that a command has the same to say of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import orjson

from crawlerproject.rules.url.hosts import host_key
from crawlerproject.stores.crawl_dir import WARC_SUFFIX, CrawlDir, read_facts, write_facts
from crawlerproject.stores.fleet_plan import FleetPlan, alone, shared_out, write_plan
from crawlerproject.stores.host_facts import host_of_fact
from crawlerproject.stores.operator_files.control import Pauses, change_pauses
from crawlerproject.stores.protocols import DUE_FACT, Changes
from crawlerproject.stores.rocks.store import RocksStore
from crawlerproject.stores.rocks.view import FrontierView
from tests.hostile.arena import Arena, Asked, answer, page

WORKERS = ("worker-1", "worker-2")
PARTITIONS = 8
SITES = ("ant.test", "bee.test", "cat.test", "dog.test", "eel.test", "fox.test")
PAUSED = "fox.test"
PAGES = 6  # of each site
# Of a WARC file: so small that there are several for each folder.
WARC_BYTES = 4_000


class Crawls(NamedTuple):
    """The three folders, and where the sites were."""

    alone: CrawlDir
    fleet: CrawlDir  # two workers, each with a frontier and files of its own; older files in the crawl's folder
    again: CrawlDir  # the same files, and one frontier in the crawl's folder
    port: int

    def url(self, site: str, path: str = "/") -> str:
        """A page that the crawl has."""
        return f"http://{site}:{self.port}{path}"


def made(web: Arena) -> Crawls:
    """Crawl the sites once, and divide what came of it."""
    seeds = [_site(web, name) for name in SITES]
    folder = CrawlDir(web.folder / "crawl")
    folder.mkdir()
    change_pauses(folder, _pause)
    settings = {"WARC_MAX_BYTES": str(WARC_BYTES), "COMMIT_SECONDS": "0.1", "PACE_IP_SECONDS": "0.01"}
    web.crawl(*seeds, settings=settings)
    plan = shared_out(alone(PARTITIONS), WORKERS)
    places = CrawlDir(web.folder / "fleet"), CrawlDir(web.folder / "again")
    for place in places:
        _divide_files(folder, place, plan)
    fleet, again = places
    write_plan(fleet, plan)
    for worker in WORKERS:
        _divide_frontier(folder, CrawlDir(fleet / worker), plan, worker)
    write_plan(again, alone(PARTITIONS))
    shutil.copytree(folder.frontier, again.frontier)
    for name in (folder.run, folder.status):
        shutil.copy(name, again)
    return Crawls(folder, fleet, again, web.port)


def _pause(pauses: Pauses) -> None:
    pauses.hosts[PAUSED] = "since the beginning"


def _site(web: Arena, name: str) -> str:
    """Pages in a row that link to each other, to the next site's front page, and to a page that is not there."""
    beside = SITES[(SITES.index(name) + 1) % len(SITES)]

    def make(asked: Asked) -> bytes | None:
        if asked.path == "/robots.txt":
            return answer("User-agent: *\nDisallow: /private", mime="text/plain")
        number = asked.path.strip("/") or "0"
        if not number.isdigit() or int(number) >= PAGES:
            return None
        words = " ".join(f"{name.partition('.')[0]}{'abcdefgh'[int(number)]}{place}" for place in range(30))
        return page(f"/{int(number) + 1}", web.url(beside), "/gone", "/private", text=f"{words} common words of all")

    return web.site(name, make)


def _divide_frontier(source: CrawlDir, into: CrawlDir, plan: FleetPlan, worker: str) -> None:
    """What a worker's own frontier holds: the rows of its hosts, and what is known of the crawl as a whole."""

    def its(host: str) -> bool:
        return plan.holder(host) == worker

    def its_fact(name: str) -> bool:
        return not host_of_fact(name) or its(host_of_fact(name))

    with FrontierView(source.frontier) as view, closing(RocksStore(into.frontier)) as store:
        hosts = [row for row in view.hosts() if its(row[0])]
        assert hosts, f"{worker} has nothing to do"
        origins = [f"{scheme}://{host}" for host, _ in hosts for scheme in ("http", "https")]
        store.apply(
            Changes(
                queued=[row for host in view.hosts_with_work() if its(host) for row in view.queue(host)],
                pages=[row for row in view.pages() if its(host_key(row[1].url))],
                hosts=hosts,
                robots=[(origin, packed) for origin in origins if (packed := view.robots(origin))],
                facts=[(name, value) for name, value in view.facts("") if name != DUE_FACT and its_fact(name)],
            )
        )
        store.sync()


def _divide_files(source: CrawlDir, into: CrawlDir, plan: FleetPlan) -> None:
    """The first WARC and the first lines are of the time before there were workers; whose the others are is chance."""
    folders = [into, *(CrawlDir(into / worker) for worker in WORKERS)]
    for folder in folders:
        for part in (folder.warc, folder.index, folder.log):
            part.mkdir(parents=True)
    warcs = source.closed_warcs()
    assert len(warcs) > len(folders), f"{len(warcs)} WARC files are too few to be divided"
    for number, warc in enumerate(warcs):
        _copy_warc(source, folders[number % len(folders)], warc)
    for worker in WORKERS:
        _say(source, CrawlDir(into / worker))
    shutil.copytree(source.control, into.control)
    for name in (source.crawl_file,):
        shutil.copy(name, into)
    shutil.copytree(source.robots_copies, folders[1].robots_copies)
    for log in source.log.glob("requests-*.jsonl"):
        lines = log.read_bytes().splitlines(keepends=True)
        first = len(lines) // 4
        _write(into.log / log.name, lines[:first])
        for worker in WORKERS:
            its = (line for line in lines[first:] if plan.holder(orjson.loads(line)["host"]) == worker)
            _write(CrawlDir(into / worker).log / log.name, its)


def _write(path: Path, lines: Iterable[bytes]) -> None:
    path.write_bytes(b"".join(lines))


def _copy_warc(source: CrawlDir, into: CrawlDir, warc: Path) -> None:
    stem = warc.name.removesuffix(WARC_SUFFIX)
    shutil.copy(warc, into.warc)
    shutil.copy(source.index / f"{stem}.cdxj", into.index)
    for part in source.parquet.glob(f"*/*/{stem}.parquet"):
        target = into / part.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(part, target)


def _say(source: CrawlDir, worker: CrawlDir) -> None:
    """As a worker that has done a part of it has said."""
    shutil.copy(source.run, worker)
    status = read_facts(source.status)
    for counts in (status["progress"], status["totals"]):
        for name in ("pages", "bytes", "errors"):
            most = counts[name]
            counts[name] = most // 3 if worker.name == WORKERS[0] else most - most // 3
    write_facts(worker.status, status)
