"""What the desk shows of one crawl, as plain values, read from its folder: bounded in rows, bytes and seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from crawlerproject.config.crawl_file import read_crawl_file
from crawlerproject.config.values import identity
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.archived_response import ArchivedPage, render_record
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.inspection.host_table import HostRow, census
from crawlerproject.inspection.status_facts import stale
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.page.page import read_html
from crawlerproject.rules.politeness.bottleneck import bound_by, load_of
from crawlerproject.rules.printable import moment
from crawlerproject.rules.url.scope import BadOption, seeds_of
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.archive.warc_reader import members, names_of
from crawlerproject.stores.crawl_dir import CrawlDir, facts_in, read_facts
from crawlerproject.stores.crawl_folders import is_alone
from crawlerproject.stores.logs.request_log import lines_from_end, log_files
from crawlerproject.stores.operator_files.control import ever_added
from crawlerproject.stores.operator_files.watched_lists import withdrawn_of
from crawlerproject.watch.live import ORDERS, LastHour, Levels, Totals, read_last_hour, state_of

# What a person reads (ours).
SEEDS_A_PAGE = 50
NEWEST_PAGES = 24
REQUESTS = 50
FIRST_HOSTS = 50
MOST_CRAWLS = 100
_TAIL_LINES = 200
_TAIL_BYTES = 64 * 1024
# Of the request log, looked through from its end for pages: some thousand attempts.
_LOG_TAIL_BYTES = 512 * 1024
_SEEDS_FILE_BYTES = 4 * 1024 * 1024
_KEPT_TITLES = 2_000
# For a table of hosts; what was not looked at by then is named.
_HOSTS_SECONDS, _HOSTS_AT_ONCE = 2.0, 500
# By the names of ORDERS, what of a HostRow orders a census in the same way.
_COLUMNS = {
    "left": "eta_seconds",
    "slowest": "pace_seconds",
    "largest": "queued",
    "done": "done",
    "failing": "failures",
}
_TONES = {"crawling": "good", "resting": "warn"}
_PNG = b"\x89PNG\r\n\x1a\n"


class Life(NamedTuple):
    """How a crawl stands: one word, its tone in the style sheet, and a sentence."""

    word: str
    tone: str
    sentence: str


def crawls_in(folder: Path) -> dict[str, CrawlDir]:
    """By name the crawl in this folder, or those in folders of it, the newest first."""
    if is_crawl(CrawlDir(folder)):
        return {folder.resolve().name: CrawlDir(folder)}
    below = [CrawlDir(path) for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    found = [crawl for crawl in below if is_crawl(crawl)]
    newest = nlargest(MOST_CRAWLS, found, key=lambda crawl: crawl.stat().st_mtime)
    return {crawl.name: crawl for crawl in newest}


def is_crawl(folder: CrawlDir) -> bool:
    """Whether a crawl was ever begun here, by one process or by workers with folders in it."""
    own = (folder.run, folder.crawl_file, folder.fleet_plan, folder.frontier, folder.warc)
    return any(path.exists() for path in own) or any(worker.worker.exists() for worker in folder.started_below())


def view_of(settings: BaseSettings, folder: CrawlDir) -> CrawlView:
    """One look at a crawl. Raises OperatorError."""
    own = settings.copy()
    own.set("CRAWL_DIR", str(folder), "cmdline")
    return CrawlView(own)


def life(crawl: CrawlView) -> Life:
    """Of a crawl that runs, what holds it; of another, how it ended."""
    status = crawl.status
    if not crawl.running:
        if status.get("ended"):
            return Life("ended", "", f"It ended {moment(status['ended'])} ({status.get('finish_reason')}).")
        if status:
            return Life("broken off", "bad", "Its process has exited without a word; the same command goes on.")
        return Life("not begun", "", "No process of it has reported yet.")
    if paused := status["progress"]["paused"]:
        return Life("paused", "warn", f"It is paused: {paused}.")
    if stale(crawl):
        return Life("silent", "bad", "Its process lives and has reported nothing for a minute: look at its log.")
    word = state_of(status)
    return Life(word, _TONES.get(word, ""), f"Bound by {bound_by(load_of(status)).text}.")


class Hours:
    """The last hour of each crawl that is looked at, a row each time that ``look`` is called for it."""

    def __init__(self) -> None:
        self._hours: dict[CrawlDir, LastHour] = {}

    def look(self, crawl: CrawlView) -> LastHour:
        """With a row for this moment; one that was not looked at before begins with what the crawl itself kept."""
        hour = self._hours.get(crawl.folder)
        if hour is None:
            kept = next((facts for folder in crawl.folders if (facts := read_facts(folder.last_hour))), {})
            hour = self._hours[crawl.folder] = read_last_hour(kept, crawl.now)
        if crawl.running and (progress := crawl.status.get("progress")):
            totals = Totals(*(int(progress[name]) for name in Totals._fields))
            allowed, queued = progress.get("ceiling_per_second"), progress.get("queued_urls") or 0
            hour.add(crawl.now, totals, Levels(allowed, queued, progress["hosts_in_flight"], 0))
        return hour

    @property
    def folders(self) -> list[CrawlDir]:
        """Of the crawls that were looked at."""
        return list(self._hours)


class Seed(NamedTuple):
    """One seed; ``state`` and ``reason`` as ``scrapy why`` has them."""

    url: str
    state: str
    reason: str


def seeds(crawl: CrawlView, first: int) -> tuple[list[Seed], bool]:
    """Some of the crawl's seeds from the place ``first`` on, and whether there are more. Raises OperatorError.

    They are those of ``crawl.toml``, then those that were added.
    """
    urls = [*islice(dict.fromkeys(_seed_urls(crawl)), first, first + SEEDS_A_PAGE + 1)]
    if not crawl.folder.has_frontier() and is_alone(crawl.folder) and not crawl.workers:
        found = [Seed(url, "not begun", "") for url in urls]
    else:
        with crawl.store() as store:
            why = crawl.why(store)
            answers = [why.url(url) for url in urls]
        found = [Seed(one.url, str(one.state), str(one.reason)) for one in answers]
    return found[:SEEDS_A_PAGE], len(urls) > SEEDS_A_PAGE


def _seed_urls(crawl: CrawlView) -> Iterator[str]:
    file = read_crawl_file(crawl.folder)
    for lines in (_given(file.seeds) if file is not None else [], ever_added(crawl.folder)):
        try:
            yield from (address.url for address in seeds_of(lines).addresses)
        except BadOption as error:
            raise OperatorError(f"The seeds cannot be read: {error}.") from None


def _given(text: str) -> list[str]:
    if "://" in text or "," in text:
        return [part.strip() for part in text.split(",")]
    try:
        with open(text, encoding="utf-8-sig", errors="replace") as file:
            return file.read(_SEEDS_FILE_BYTES).splitlines()
    except OSError:
        return [text]


def _newest(crawl: CrawlView) -> Iterator[dict[str, Any]]:
    """The newest lines of the request log, the last one first; of several workers those of each in turn."""
    logs = [
        filter(lambda row: "url" in row and "time" in row, map(facts_in, lines_from_end(log, _LOG_TAIL_BYTES)))
        for log in crawl.logs
    ]
    return iter(sorted(chain(*logs), key=lambda row: str(row["time"]), reverse=True))


def requests(crawl: CrawlView) -> list[dict[str, Any]]:
    """The last lines of the request log, the newest first."""
    return [*islice(_newest(crawl), REQUESTS)]


class Page(NamedTuple):
    """A page that was archived of late."""

    url: str
    time: str
    title: str
    bytes: int
    rendered: bool
    picture: tuple[str, int] | None  # WARC file and byte of the screenshot's record


class NewestPages:
    """What was read of captures is kept for some: a capture never changes."""

    def __init__(self) -> None:
        self._read: LruCache[tuple[CrawlDir, str, int], tuple[str, int | None]] = LruCache(_KEPT_TITLES)

    def of(self, crawl: CrawlView) -> list[Page]:
        """HTML pages with status 200, the newest first; of one that a browser rendered what that made of it."""
        rows: dict[str, dict[str, Any]] = {}
        withdrawn = withdrawn_of(crawl.folder)
        for row in _newest(crawl):
            is_page = row.get("rendered") or (row.get("status") == 200 and "html" in str(row.get("mime") or ""))
            if is_page and row.get("warc") and not withdrawn.covers(row["url"]):
                rows.setdefault(row["url"], row)
                if len(rows) == NEWEST_PAGES:
                    break
        return [self._page(crawl, row) for row in rows.values()]

    def _page(self, crawl: CrawlView, row: dict[str, Any]) -> Page:
        place = (crawl.folder, row["warc"], row["offset"])
        read = self._read.get(place)
        if read is None:
            read = self._read[place] = _title_and_picture(crawl, row)
        title, picture_at = read
        shown = None if picture_at is None else (str(row["warc"]), picture_at)
        return Page(row["url"], row["time"], title, int(row.get("bytes") or 0), bool(row.get("rendered")), shown)


def _title_and_picture(crawl: CrawlView, row: dict[str, Any]) -> tuple[str, int | None]:
    """A page's title, and where the record of its screenshot begins."""
    folders, token = crawl.folders, identity(crawl.settings).token
    if not row.get("rendered"):
        pages = (ArchivedPage(folder.warc, row, token) for folder in folders)
        return next((page.facts.title for page in pages if page.facts is not None), ""), None
    if (render := render_record(folders, row)) is None:
        return "", None
    kind, end = "text/html; charset=utf-8", int(row["offset"]) + int(row["length"])
    title = read_html(render.block, url=row["url"], content_type=kind, x_robots=[], token=token).title
    return title, end if picture(folders, row["warc"], end) is not None else None


def picture(folders: Sequence[CrawlDir], warc: str, offset: int) -> bytes | None:
    """The PNG in the resource record that begins at this byte of a WARC file of the crawl; None when there is none."""
    for folder in folders:
        here = {path.name: path for path in (*folder.closed_warcs(), *folder.open_warcs())}
        for path in filter(None, map(here.get, names_of(warc))):
            found = next(members(path, offset), None) if 0 <= offset < path.stat().st_size else None
            if isinstance(found, Member) and found.kind == "resource" and found.block.startswith(_PNG):
                return None if withdrawn_of(folder).covers(found.url) else found.block
    return None


class Hosts(NamedTuple):
    """The first hosts of an order; ``cut``: time was over before all were looked at."""

    rows: list[HostRow]
    looked_at: int
    cut: bool


def hosts(crawl: CrawlView, order: str) -> Hosts:
    """Of the frontier as it was committed last, by one of ``ORDERS``. Raises OperatorError."""
    key, until, looked_at, cut = ORDERS[order], time.monotonic() + _HOSTS_SECONDS, 0, False

    def for_a_while(found: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        nonlocal looked_at, cut
        while not cut and (some := [*islice(found, _HOSTS_AT_ONCE)]):
            yield from some
            looked_at += len(some)
            cut = time.monotonic() > until

    with crawl.store() as store:
        found = census(
            for_a_while(iter(store.hosts())),
            crawl.now,
            crawl.leases(),
            store.head,
            column=_COLUMNS[order],
            limit=FIRST_HOSTS,
            queued=order == "slowest",
        )
    return Hosts([row for row in found.rows if key(row)], looked_at, cut)


def text_logs(crawl: CrawlView) -> dict[str, Path]:
    """By name the logs in the crawl's folder that are text: of workers, of errors, and a LOG_FILE that lies there."""
    found = [*crawl.folder.glob("*.log"), *(folder.errors_log for folder in crawl.folders)]
    return _named(crawl.folder, found)


def tail(path: Path) -> list[str]:
    """The last lines of a text file."""
    with os.fdopen(opened(path), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        return file.read(_TAIL_BYTES).decode("utf-8", "replace").splitlines()[-_TAIL_LINES:]


def downloads(crawl: CrawlView) -> dict[str, Path]:
    """By name what may be taken along: closed WARC files and their indexes, and logs. Nothing that is secret."""
    found: list[Path] = []
    for folder in crawl.folders:
        found += [*folder.closed_warcs(), *sorted(folder.index.glob("*.cdxj")), *log_files(folder.log)]
    return _named(crawl.folder, found) | text_logs(crawl)


def _named(home: Path, paths: Iterable[Path]) -> dict[str, Path]:
    return {str(path.relative_to(home)): path for path in paths if path.is_file() and not path.is_symlink()}


def opened(path: Path) -> int:
    """A descriptor of a file that the crawl wrote; a link in its place is not followed. OSError."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
