"""A run of Scrapy over an archive: its settings, and what stands there in place of the frontier and the network.

The settings come as the last add-on, after those of the project and the spider: whatever these say, nothing leaves.

Which captures are read again: the latest good one of each URL, or all, in the order of the index.

The index is sorted by URL, so the captures of one URL are neighbours: no more than those are in memory at a time. Which
record a browser made of a page is in a temporary file (``RenderLines``): a month of rendering is millions of lines, a
kilobyte of memory each.
"""

from __future__ import annotations

import heapq
import json
import logging
import re
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.settings import BaseSettings, Settings
from scrapy.spiders import CrawlSpider

from crawlerproject.config.settings_table import SETTINGS
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.archived_response import render_record, seen
from crawlerproject.reparse.item_parts import Parts
from crawlerproject.rules.archive import index_rows
from crawlerproject.rules.archive.index_rows import REVISIT_MIME
from crawlerproject.rules.consent.terms import TDMREP
from crawlerproject.stores.archive.capture_index import Captures, IndexedCapture
from crawlerproject.stores.archive.warc_reader import captures_in, first_member
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.index.index_files import (
    CDXJ_SUFFIX,
    JOURNAL_SUFFIX,
    archive_of_journal,
    merged_lines,
    shown_rows,
)
from crawlerproject.stores.logs.log_query import open_log

_OK, _NOT_MODIFIED = 200, 304
_NO_PAGES = ("/robots.txt", TDMREP)

_OLDEST = "SELECT min(time) FROM log"
_RENDERED = 'SELECT url, time, warc, "offset", length FROM log WHERE rendered AND warc IS NOT NULL'
_TABLE = "CREATE TABLE line (url TEXT, time TEXT, warc TEXT, start INTEGER, length INTEGER, UNIQUE (warc, start))"
_INSERT = "INSERT OR IGNORE INTO line VALUES (?, ?, ?, ?, ?)"  # of a record that log and archive know: the log's
# Lines in memory on their way (ours).
_AT_A_TIME = 1000


class RenderLine(NamedTuple):
    """Where a render is archived, by its line in the request log."""

    time: str  # ISO 8601, UTC
    warc: str
    offset: int
    length: int


class Chosen(NamedTuple):
    """A capture to be read again."""

    capture: IndexedCapture
    rendered: RenderLine | None  # what a browser made of it


def chosen(folders: Sequence[CrawlDir], *, every: bool, indexes: Sequence[Path] | None = None) -> Iterator[Chosen]:
    """The captures of answers with status 200, and of pages that had not changed, robots.txt and tdmrep.json apart.

    Of a URL the latest one, or ``every`` one; of these ``indexes`` alone, where they are given: then they are the same
    ones in the same order at any time.
    """
    found = _lines(folders) if indexes is None else merged_lines(indexes)
    with closing(RenderLines(folders)) as renders:
        for _, lines in groupby(found, key=lambda line: line.partition(b" ")[0]):
            of_url: dict[str, list[IndexedCapture]] = defaultdict(list)
            for line, _ in groupby(lines):  # a file that is closed meanwhile has its lines in both places
                if (parsed := index_rows.parse(line)) is not None:
                    of_url[parsed[0].url].append(IndexedCapture(parsed[1], parsed[0]))
            for url, captures in of_url.items():
                yield from _of_url(captures, renders.of(url), every=every)


def _of_url(captures: list[IndexedCapture], renders: list[RenderLine], *, every: bool) -> Iterator[Chosen]:
    good = [
        capture
        for capture in captures
        if capture.row.status in ((_OK, _NOT_MODIFIED) if capture.row.mime == REVISIT_MIME else (_OK,))
        and urlsplit(capture.row.url).path not in _NO_PAGES
    ]
    for capture in good if every else good[-1:]:
        since = capture.row.timestamp
        until = min((other.row.timestamp for other in captures if other.row.timestamp > since), default="9")
        within = (line for line in renders if since <= re.sub(r"\D", "", line.time[:19]) < until)
        yield Chosen(capture, next(within, None))


def _lines(folders: Sequence[CrawlDir]) -> Iterator[bytes]:
    """The lines of all indexes, and of those to come of files that are still open, sorted."""
    journals = [journal for folder in folders for journal in sorted(folder.index.glob(f"*{JOURNAL_SUFFIX}"))]
    sources: list[Any] = []
    for journal in journals:
        with suppress(FileNotFoundError):  # closed a moment ago: its index is there now
            latest = {row.start: row for row in shown_rows(journal)}  # an offset is used again after a cut
            filename = archive_of_journal(journal)
            sources.append(sorted(index_rows.line(row, filename) + b"\n" for row in latest.values()))
    return heapq.merge(*sources, merged_lines(closed_indexes(folders)))


def closed_indexes(folders: Sequence[CrawlDir]) -> list[Path]:
    """The indexes of closed WARC files, which never change."""
    return [path for folder in folders for path in sorted(folder.index.glob(f"*{CDXJ_SUFFIX}"))]


class RenderLines:
    """All renders of some folders, as of now, by the request log.

    The WARC files that are older than what is kept of the log are read for it.
    """

    def __init__(self, folders: Sequence[CrawlDir]) -> None:
        self._lines = sqlite3.connect("")  # SQLite: a temporary file without a name; what fits its cache is not written
        self._lines.execute(_TABLE)
        for folder in folders:
            oldest = self._log(folder)
            for warc in folder.closed_warcs():  # those that were begun before are read for it: all, without a log
                first = first_member(warc)
                if first is not None and (not oldest or first.field("warc-date") < oldest):
                    found = (capture.member for capture in captures_in(warc) if capture.rendered)
                    rows = ((m.url, m.field("warc-date"), warc.name, m.offset, m.length) for m in found)
                    self._lines.executemany(_INSERT, rows)
        self._lines.execute("CREATE INDEX of_url ON line (url, time)")

    def _log(self, folder: CrawlDir) -> str:
        """Take in what the log has; the time of its oldest line, "" when it has none."""
        try:
            log = open_log(folder.log)
        except OperatorError:
            return ""
        with closing(log):
            found = log.execute(_RENDERED)
            while some := found.fetchmany(_AT_A_TIME):
                self._lines.executemany(_INSERT, some)
            (oldest,) = log.execute(_OLDEST).fetchall()[0]
        return oldest or ""

    def of(self, url: str) -> list[RenderLine]:
        """Those of a URL, oldest first."""
        found = self._lines.execute("SELECT time, warc, start, length FROM line WHERE url = ? ORDER BY time", (url,))
        return [RenderLine(*row) for row in found]

    def close(self) -> None:
        """Delete the temporary file."""
        self._lines.close()


_LAST = 1_000_000  # behind every add-on
_ABOVE_ALL = 1_000  # Scrapy's command line is 40 (scrapy.settings.SETTINGS_PRIORITIES)
_OURS = "crawlerproject."
_HANDLER = "crawlerproject.reparse.offline.ArchiveHandler"
_FEEDS = "scrapy.extensions.feedexport.FeedExporter"
_SCHEMES = ("http", "https", "ftp", "file", "s3", "data")
# Pages in hand at a time: reading waits for nothing, and each may have some MB.
_AT_ONCE = 4
# A project's own stay in these: what concerns items, and what watches the run.
_KEPT = ("SPIDER_MIDDLEWARES", "EXTENSIONS", "ITEM_PIPELINES")
_SETTINGS: dict[str, Any] = {
    "SCHEDULER": "crawlerproject.reparse.offline.ArchiveScheduler",
    "DOWNLOADER": "scrapy.core.downloader.Downloader",
    "DOWNLOAD_HANDLERS": dict.fromkeys(_SCHEMES, _HANDLER),
    "DOWNLOAD_HANDLERS_BASE": {},
    "DOWNLOADER_MIDDLEWARES": {},
    "DOWNLOADER_MIDDLEWARES_BASE": {},
    "SPIDER_MIDDLEWARES_BASE": {},
    "EXTENSIONS_BASE": {"scrapy.extensions.corestats.CoreStats": 0, _FEEDS: 0},
    "CONCURRENT_REQUESTS": _AT_ONCE,
    "CONCURRENT_REQUESTS_PER_DOMAIN": _AT_ONCE,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_MAXSIZE": 0,
    "DOWNLOAD_WARNSIZE": 0,
    "TELNETCONSOLE_ENABLED": False,
    "JOBDIR": "",
}

SETTING = "REPARSE"
"""Of this run alone: ``{"folders": […], "every": …, "callback": …, "out": …}`` as JSON."""
LEFT_OUT = "reparse/requests_left_out"
"""Statistic: requests that the spider yielded."""
UNREADABLE = "reparse/unreadable"
"""Statistic: captures that the archive does not have as its index says."""

logger = logging.getLogger(__name__)


class Offline:
    """The add-on."""

    def update_settings(self, settings: BaseSettings) -> None:
        """After those of the project."""
        for name, value in _SETTINGS.items():
            settings.set(name, value, _ABOVE_ALL)
        for name in _KEPT:
            own = settings.getdict(name).items()
            kept = {each: order for each, order in own if not _path(each).startswith(_OURS) and each != _FEEDS}
            settings.set(name, kept, _ABOVE_ALL)
        for name, setting in SETTINGS.items():  # what listens or calls the operator's programs is for crawls
            if name.endswith("_PORT") or name.startswith("HOOK_"):
                settings.set(name, setting.default, _ABOVE_ALL)


def _path(component: Any) -> str:
    return component if isinstance(component, str) else f"{component.__module__}."


class OfflineCrawler(Crawler):
    """A crawler of which nothing is started but the reading of the archive."""

    def __init__(self, spidercls: type[Spider], settings: Settings) -> None:
        super().__init__(spidercls, settings)
        path = f"{Offline.__module__}.{Offline.__qualname__}"
        self.settings.set("ADDONS", self.settings.getdict("ADDONS") | {path: _LAST}, _ABOVE_ALL)

    def _create_spider(self, *args: Any, **kwargs: Any) -> Spider:
        spider = super()._create_spider(*args, **kwargs)
        spider.start = _no_requests  # type: ignore[method-assign]  # its seeds are requests
        return spider


async def _no_requests() -> AsyncIterator[Any]:
    nothing: tuple[Any, ...] = ()
    for request in nothing:
        yield request


class ArchivedRequest(Request):
    """For one capture; ``chosen`` is None on a copy that something else made of it."""

    chosen: Chosen | None = None


class ArchiveScheduler(BaseScheduler):
    """One request a capture, when the engine has room for it: never more of them in memory than are being read."""

    def __init__(self, crawler: Crawler, left: Iterator[Chosen], callback: str, parts: Parts | None = None) -> None:
        """``parts``: where items are kept, in files that hold those of so many captures each."""
        self._crawler = crawler
        self._callback = callback
        self._left, self._parts = left, parts
        self._next = next(self._left, None)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """From the setting that the command gives."""
        asked = json.loads(crawler.settings[SETTING])
        folders = [CrawlDir(folder) for folder in asked["folders"]]
        if not asked["out"]:
            return cls(crawler, chosen(folders, every=asked["every"]), asked["callback"])
        parts = Parts(Path(asked["out"]))
        crawler.signals.connect(parts.take, signals.item_scraped)
        left = chosen(folders, every=asked["every"], indexes=parts.plan.indexes)
        return cls(crawler, islice(left, parts.captures_done, None), asked["callback"], parts)

    def has_pending_requests(self) -> bool:
        """Whether a capture is left."""
        return self._next is not None

    def enqueue_request(self, request: Request) -> bool:
        """Leave it out, and count it: nothing is fetched."""
        _count(self._crawler, LEFT_OUT)
        return False

    def next_request(self) -> Request | None:
        """The request of the next capture."""
        if (capture := self._next) is None or not self._has_room():
            return None
        self._next, spider = next(self._left, None), self._crawler.spider
        assert spider is not None
        url = capture.capture.row.url
        request = ArchivedRequest(url, dont_filter=True)
        request.chosen = capture
        request.callback = callback_of(spider, url, self._callback)
        return request

    def close(self, reason: str) -> None:
        """Scrapy: all that was handed out has ended."""
        if self._parts is not None:
            self._parts.close(complete=self._next is None)

    def _has_room(self) -> bool:
        """Whether the next capture belongs to this part, or all of the part have ended and it is whole now."""
        if self._parts is None:
            return True
        if self._parts.full:
            engine = self._crawler.engine
            assert engine is not None
            assert engine._slot is not None
            if engine._slot.inprogress:  # until the items of its page have passed the pipelines
                return False
            self._parts.finish()
        self._parts.handed_out()
        return True


def callback_of(spider: Spider, url: str, named: str) -> Callable[..., Any] | None:
    """What reads a page: the method that is ``named``, ``extract`` of a WebSpider, a CrawlSpider's rule, ``parse``."""
    if named:
        found: Callable[..., Any] = getattr(spider, named)
        return found
    if not isinstance(spider, CrawlSpider):
        return getattr(spider, "extract", None)
    for rule in spider.rules:  # as in ``scrapy parse --rules``: the first one that would follow such a link
        if rule.link_extractor.matches(url):
            given = rule.callback
            return getattr(spider, given) if isinstance(given, str) else given or (lambda response: ())
    return None


class ArchiveHandler:
    """Reads the record, and that of the body where a page had not changed."""

    lazy = False

    def __init__(self, crawler: Crawler, folders: list[CrawlDir]) -> None:
        self._crawler = crawler
        self._folders = folders
        self._captures = Captures(folders)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """From the setting that the command gives."""
        return cls(crawler, [CrawlDir(folder) for folder in json.loads(crawler.settings[SETTING])["folders"]])

    async def download_request(self, request: Request) -> Response:
        """Scrapy: the response. Raises IgnoreRequest for others than the scheduler's, and for a broken record."""
        chosen = request.chosen if isinstance(request, ArchivedRequest) else None
        if chosen is None:
            _count(self._crawler, LEFT_OUT)
            raise IgnoreRequest(f"nothing is fetched while an archive is read again: {request.url}")
        render = render_record(self._folders, chosen.rendered._asdict()) if chosen.rendered is not None else None
        try:
            found = seen(self._captures, chosen.capture, render)
        except OperatorError as error:
            _count(self._crawler, UNREADABLE)
            logger.error("%s", error)
            raise IgnoreRequest(str(error)) from None
        request.meta["archived"] = found.date
        found.response.request = request
        return found.response

    async def close(self) -> None:
        """Scrapy: nothing is open."""


def _count(crawler: Crawler, key: str) -> None:
    assert crawler.stats is not None
    crawler.stats.inc_value(key)
