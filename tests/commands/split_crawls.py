"""One crawl in three forms: of one process, of two workers on one machine, and of one that was such a fleet before.

The rows and files of a small real crawl are divided as they lie when each worker has crawled its own hosts. All three
hold the same, so that a command has the same to say of them.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import orjson

from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.crawl_dir import WARC_SUFFIX, CrawlDir, read_facts, write_facts
from crawlerproject.stores.crawl_folders import FleetPlan, alone, shared_out, write_plan
from crawlerproject.stores.operator_files.control import Pauses, change_pauses
from crawlerproject.stores.protocols import ARCHIVE_FACT, DUE_FACT, Changes, host_of_fact
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore
from tests.hostile.arena import Arena, Asked, answer, page

WORKERS = ("worker-1", "worker-2")
PARTITIONS = 8
SITES = ("ant.test", "bee.test", "cat.test", "dog.test", "eel.test", "fox.test")
PAUSED = "fox.test"
PAGES = 6  # of each site
# Of a WARC file: so small that there are several for each folder, also where a busy machine commits many pages at once.
WARC_BYTES = 3_000
# Which file is open, and how many hosts wait in the list of those that are due: of the frontier as it was.
_OF_A_FOLDER = frozenset({ARCHIVE_FACT, DUE_FACT})


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
    with closing(RocksStore(again.frontier)) as store:
        store.apply(Changes(facts=[(ARCHIVE_FACT, b"")]))
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
                facts=[(name, value) for name, value in view.facts("") if name not in _OF_A_FOLDER and its_fact(name)],
            )
        )
        store.sync()


def _divide_files(source: CrawlDir, into: CrawlDir, plan: FleetPlan) -> None:
    """As after partitions have moved: what is archived, and its lines, lie where they were made, in any folder."""
    folders = [into, *(CrawlDir(into / worker) for worker in WORKERS)]
    for folder in folders:
        for part in (folder.warc, folder.index, folder.log):
            part.mkdir(parents=True)
    warcs = source.closed_warcs()
    assert len(warcs) > len(folders), f"{len(warcs)} WARC files are too few to be divided"
    made_in = {warc.name: folders[number % len(folders)] for number, warc in enumerate(warcs)}
    for warc in warcs:
        _copy_warc(source, made_in[warc.name], warc)
    for worker in WORKERS:
        _say(source, CrawlDir(into / worker))
    shutil.copytree(source.control, into.control)
    for name in (source.crawl_file,):
        shutil.copy(name, into)
    for log in source.log.glob("requests-*.jsonl"):
        lines = log.read_bytes().splitlines(keepends=True)
        for line in lines:
            row = orjson.loads(line)
            folder = made_in.get(row["warc"]) or CrawlDir(into / plan.holder(row["host"]))
            with (folder.log / log.name).open("ab") as file:
                file.write(line)


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
    done = ("pages", "bytes", "errors")
    refused = tuple(name for name in status["stats"] if name.startswith("refused/"))
    for counts, names in ((status["progress"], done), (status["totals"], done), (status["stats"], refused)):
        for name in names:
            most = counts[name]
            counts[name] = most // 3 if worker.name == WORKERS[0] else most - most // 3
    write_facts(worker.status, status)
