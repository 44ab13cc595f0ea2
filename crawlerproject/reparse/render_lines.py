"""Which record a browser made of a page, by URL: the log's lines on it, in a file of this process alone.

A month of rendering is millions of lines, of a kilobyte each in Python's memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.log_query import open_log

_RENDERED = 'SELECT url, time, warc, "offset", length FROM log WHERE rendered AND warc IS NOT NULL'
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
    """All of some folders, as of now. None without a request log."""

    def __init__(self, folders: Sequence[CrawlDir]) -> None:
        self._lines = sqlite3.connect("")  # SQLite: a temporary file without a name; what fits its cache is not written
        self._lines.execute("CREATE TABLE line (url TEXT, time TEXT, warc TEXT, start INTEGER, length INTEGER)")
        try:
            log = open_log([folder.log for folder in folders])
        except OperatorError:
            return
        with closing(log):
            found = log.execute(_RENDERED)
            while some := found.fetchmany(_AT_A_TIME):
                self._lines.executemany("INSERT INTO line VALUES (?, ?, ?, ?, ?)", some)
        self._lines.execute("CREATE INDEX of_url ON line (url, time)")

    def of(self, url: str) -> list[RenderLine]:
        """Those of a URL, oldest first."""
        found = self._lines.execute("SELECT time, warc, start, length FROM line WHERE url = ? ORDER BY time", (url,))
        return [RenderLine(*row) for row in found]

    def close(self) -> None:
        """The file is gone."""
        self._lines.close()
