"""Which captures are read again: the latest good one of each URL, or all, in the order of the index.

The index is sorted by URL, so the captures of one URL are neighbours: no more than those are in memory at a time. Which
record a browser made of a page is in a temporary file (``RenderLines``): a month of rendering is millions of lines, a
kilobyte of memory each.
"""

from __future__ import annotations

import heapq
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive import index_rows
from crawlerproject.rules.archive.index_rows import REVISIT_MIME
from crawlerproject.rules.consent.terms import TDMREP
from crawlerproject.stores.archive.capture_index import IndexedCapture
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
