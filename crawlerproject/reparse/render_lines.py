"""Which record a browser made of a page, by URL, in a file of this process alone.

The log's lines say so; the WARC files that are older than what is kept of the log are read for it.

A month of rendering is millions of lines, of a kilobyte each in Python's memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.rendered_records import is_render
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.stores.archive.warc_reader import first_member, members
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.log_query import open_log

_OLDEST = "SELECT min(time) FROM log"
_RENDERED = 'SELECT url, time, warc, "offset", length FROM log WHERE rendered AND warc IS NOT NULL'
_TABLE = "CREATE TABLE line (url TEXT, time TEXT, warc TEXT, start INTEGER, length INTEGER, UNIQUE (warc, start))"
_INSERT = "INSERT OR IGNORE INTO line VALUES (?, ?, ?, ?, ?)"  # of a record that log and archive know: the log's
# Lines in memory on their way (ours).
_AT_A_TIME = 1000


class RenderLine(NamedTuple):
    """What the request log says of one render."""

    time: str  # ISO 8601, UTC
    warc: str
    offset: int
    length: int

    def place(self) -> dict[str, Any]:
        """As the log's line has it."""
        return self._asdict()


class RenderLines:
    """All of some folders, as of now."""

    def __init__(self, folders: Sequence[CrawlDir]) -> None:
        self._lines = sqlite3.connect("")  # SQLite: a temporary file without a name; what fits its cache is not written
        self._lines.execute(_TABLE)
        for folder in folders:
            self._lines.executemany(_INSERT, _archived(folder, self._log(folder)))
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
        """The file is gone."""
        self._lines.close()


def _archived(folder: CrawlDir, logged_since: str) -> Iterator[tuple[str, str, str, int, int]]:
    """The renders in files that were begun before ("": in all files), which are read for it."""
    for warc in folder.closed_warcs():
        first = first_member(warc)
        if first is None or (logged_since and first.field("warc-date") >= logged_since):
            continue
        for member in members(warc):
            if isinstance(member, Member) and is_render(member):
                yield member.url, member.field("warc-date"), warc.name, member.offset, member.length
