"""Crawls of the forty sites with words on use, for one purpose: what was asked for, kept and exported."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.batch.process_warcs import ExtractOptions, process_warc
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.crawls.fleet.fleets import workers
from tests.crawls.fleet.local_fleets import local_fleet
from tests.stores.redis_servers import redis_server
from tests.web.judge import log_rows, read_visits
from tests.web.profiles.consent import (
    ELSEWHERE,
    LICENSE,
    LICENSOR,
    MINING,
    NAMED,
    OBEYING,
    PAGES,
    PAID,
    SITES,
    TDMREP,
    before_asking,
    by_answer,
    verdict,
)
from tests.web.running import HASTE, RunningWeb, crawl_command, finish, one_pace, start, synthetic_web

Place = tuple[str, str]
"""Host and path."""
ONE, LOCAL, REDIS = WAYS = ("one process", "local fleet", "Redis fleet")


class Crawled(NamedTuple):
    """A crawl that has ended."""

    purpose: str
    consent: str
    asked: Counter[Place]  # by the servers' log
    kept: set[Place]
    exported: dict[Place, str]  # the column consent
    reasons: dict[Place, str]
    warcs: list[Path]
    folder: CrawlDir  # of the first worker

    @property
    def obeyed(self) -> bool:
        """Whether words are."""
        return self.consent == "obey" or (self.consent == "auto" and self.purpose in OBEYING)

    @property
    def documents(self) -> bool:
        """Whether the documents beside robots.txt that concern the purpose are asked for."""
        return self.consent != "record"


def place(url: str) -> Place:
    """Where a page is."""
    parts = urlsplit(url)
    return str(parts.hostname), parts.path


def crawl_for(folder: Path, purpose: str, consent: str = "auto", way: str = ONE) -> Crawled:
    """One crawl in an empty folder."""
    settings = {
        **HASTE,
        **one_pace(0.05),
        "PACE_PRESET": "fixed5",
        "PACE_IP_SECONDS": "0.002",
        "PURPOSE": purpose,
        "CONSENT": consent,
    }
    with synthetic_web(folder / "web", "--profile", "consent") as web:
        folders = _run(web, folder, settings, way)
        asked = Counter((visit.host, visit.path) for visit in read_visits(web.folder / "server.jsonl"))
    return collected(folder, purpose, consent, asked, folders)


def _run(web: RunningWeb, folder: Path, settings: Mapping[str, str], way: str) -> list[Path]:
    crawl = folder / "crawl"
    if way == LOCAL:
        with local_fleet(web, crawl, settings=settings) as fleet:
            assert fleet.wait() == 0, fleet.said()[-3000:]
        return [crawl / name for name in fleet.names]
    if way == REDIS:
        with redis_server(folder / "redis") as server, workers(web, crawl, server.url, settings) as running:
            running.start("worker-1", "worker-2")
            running.wait()
        return running.folders
    command, log = crawl_command(web.folder / "seeds.txt", crawl, web.folder / "hosts", settings), folder / "log"
    began = time.monotonic()
    with log.open("wb") as output:
        assert finish(start(command, output), began).status == 0, log.read_text()[-3000:]
    return [crawl]


def collected(folder: Path, purpose: str, consent: str, asked: Counter[Place], folders: list[Path]) -> Crawled:
    """What is left of a crawl."""
    warcs = sorted(warc for each in folders for warc in CrawlDir(each).warc.glob("*.warc.gz"))
    kept, exported, reasons = set[Place](), dict[Place, str](), dict[Place, str]()
    for warc in warcs:
        with warc.open("rb") as file:
            kept |= {
                place(each.rec_headers["WARC-Target-URI"])
                for each in ArchiveIterator(file)
                if each.rec_type == "response"
            }
        process_warc(warc, folder / "out", ExtractOptions())
    with contextlib.suppress(FileNotFoundError):
        for table in (folder / "out" / "pages").iterdir():
            rows = pq.read_table(table, columns=["url", "consent"]).to_pylist()
            exported |= {place(row["url"]): row["consent"] for row in rows}
    for each in folders:
        reasons |= {place(str(line["url"])): str(line["reason"]) for line in log_rows(CrawlDir(each).log)}
    return Crawled(purpose, consent, asked, kept, exported, reasons, warcs, CrawlDir(folders[0]))


def wanted(crawled: Crawled) -> tuple[set[Place], set[Place]]:
    """The pages that are to be asked for, and of these those that are to be kept."""
    purpose = crawled.purpose
    if not crawled.obeyed:
        return PAGES, PAGES
    fronts = {host: (before_asking(host, "/", purpose), by_answer(host, purpose)) for host in SITES}
    asked = {
        (host, path)
        for host, path in PAGES
        # A page that is not kept leads nowhere.
        if not before_asking(host, path, purpose) and not fronts[host][0] and (path == "/" or not fronts[host][1])
    }
    return asked, {page for page in asked if not by_answer(page[0], purpose)}


def complaints(crawled: Crawled) -> list[str]:
    """What is not as the table of words says."""
    asked, kept = wanted(crawled)
    purpose, found = crawled.purpose, list[str]()
    documents = {place: count for place, count in crawled.asked.items() if place[1] in (TDMREP, LICENSE)}
    expected = {(host, LICENSE) for host, words in SITES.items() if words[3] in ("rsl", "paid")}
    if purpose in MINING or crawled.consent == "ask":
        expected |= {(host, TDMREP) for host in (*SITES, PAID, NAMED)}
    licensor = Counter({place: count for place, count in crawled.asked.items() if place[0] == LICENSOR})
    most = max(licensor.values(), default=0)  # each worker may ask for those of its hosts
    if (
        set(licensor) != ({(LICENSOR, ELSEWHERE), (LICENSOR, "/robots.txt")} if crawled.documents else set())
    ) or most > 1:
        found.append(f"the other host's: {licensor}")
    if documents != dict.fromkeys(expected if crawled.documents else (), 1):
        found.append(f"documents: {sorted(set(documents) ^ expected)}")
    pages = Counter({page: count for page, count in crawled.asked.items() if page in PAGES})
    if pages != dict.fromkeys(asked, 1):
        found.append(f"asked: {sorted(pages.items() ^ dict.fromkeys(asked, 1).items())}")
    if (got := crawled.kept & PAGES) != kept:
        found.append(f"kept: {sorted(got ^ kept)}")
    exported = {page: said for page, said in crawled.exported.items() if page in PAGES}
    verdicts = {page: verdict(*page, purpose, documents=crawled.documents) for page in kept}
    if exported != verdicts:
        found.append(f"exported: {sorted(exported.items() ^ verdicts.items())}")
    reasons = {page: "fetched" if page in kept else by_answer(page[0], purpose) for page in asked}
    if (logged := {page: crawled.reasons.get(page) for page in asked}) != reasons:
        found.append(f"reasons: {sorted(set(logged.items()) ^ set(reasons.items()))}")
    if crawled.asked[PAID, "/"] != 1 or crawled.reasons.get((PAID, "/")) != "payment-required":
        found.append("402 is asked for once, and is a refusal of its own")
    said = "reserved-license" if crawled.obeyed and purpose == "ai-train" else "fetched"
    if crawled.asked[NAMED, "/"] != 1 + crawled.obeyed or crawled.reasons.get((NAMED, "/")) != said:
        found.append(f"a licence that a page names: {crawled.asked[NAMED, '/']}, {crawled.reasons.get((NAMED, '/'))}")
    return found
