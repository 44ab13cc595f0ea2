"""Which captures are read again: the latest good one of each URL, or all, in the order of the index.

The index is sorted by URL, so the captures of one URL are neighbours: no more than those are in memory at a time.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from crawlerproject.reparse.render_lines import RenderLine, RenderLines
from crawlerproject.rules.archive import cdxj
from crawlerproject.rules.archive.cdxj import REVISIT_MIME, CdxjEntry
from crawlerproject.stores.archive.captures import CDXJ_SUFFIX, IndexedCapture
from crawlerproject.stores.crawl_dir import WARC_SUFFIX, CrawlDir
from crawlerproject.stores.index.cdxj import JOURNAL_SUFFIX, merged_lines

_OK, _NOT_MODIFIED = 200, 304
_ROBOTS = "/robots.txt"


class Chosen(NamedTuple):
    """A capture to be read again."""

    capture: IndexedCapture
    rendered: RenderLine | None  # what a browser made of it


def chosen(folders: Sequence[CrawlDir], *, every: bool, indexes: Sequence[Path] | None = None) -> Iterator[Chosen]:
    """The captures of answers with status 200, and of pages that had not changed, robots.txt apart.

    Of a URL the latest one, or ``every`` one; of these ``indexes`` alone, where they are given: then they are the same
    ones in the same order at any time.
    """
    found = _lines(folders) if indexes is None else merged_lines(indexes)
    with closing(RenderLines(folders)) as renders:
        for _, lines in groupby(found, key=lambda line: line.partition(b" ")[0]):
            of_url: dict[str, list[IndexedCapture]] = defaultdict(list)
            for line, _ in groupby(lines):  # a file that is closed meanwhile has its lines in both places
                if (parsed := cdxj.parse(line)) is not None:
                    of_url[parsed[0].url].append(IndexedCapture(parsed[1], parsed[0]))
            for url, captures in of_url.items():
                yield from _of_url(captures, renders.of(url), every=every)


def _of_url(captures: list[IndexedCapture], renders: list[RenderLine], *, every: bool) -> Iterator[Chosen]:
    good = [capture for capture in captures if _is_good(capture.row)]
    for capture in good if every else good[-1:]:
        since = capture.row.timestamp
        until = min((other.row.timestamp for other in captures if other.row.timestamp > since), default="9")
        within = (line for line in renders if since <= _digits(line.time) < until)
        yield Chosen(capture, next(within, None))


def _is_good(row: CdxjEntry) -> bool:
    status = (_OK, _NOT_MODIFIED) if row.mime == REVISIT_MIME else (_OK,)
    return row.status in status and urlsplit(row.url).path != _ROBOTS


def _lines(folders: Sequence[CrawlDir]) -> Iterator[bytes]:
    """The lines of all indexes, and of those to come of files that are still open, sorted."""
    journals = [journal for folder in folders for journal in sorted(folder.index.glob(f"*{JOURNAL_SUFFIX}"))]
    sources: list[Any] = []
    for journal in journals:
        filename = f"{journal.name.removesuffix(JOURNAL_SUFFIX)}{WARC_SUFFIX}"
        try:
            found = [row for line in journal.read_bytes().splitlines() if (row := cdxj.unpack(line)) is not None]
        except FileNotFoundError:  # closed a moment ago: its index is there now
            continue
        latest = {row.start: row for row in found}  # an offset is used again after a cut
        sources.append(sorted(cdxj.line(row, filename) + b"\n" for row in latest.values()))
    return heapq.merge(*sources, merged_lines(closed_indexes(folders)))


def closed_indexes(folders: Sequence[CrawlDir]) -> list[Path]:
    """The indexes of closed WARC files, which never change."""
    return [path for folder in folders for path in sorted(folder.index.glob(f"*{CDXJ_SUFFIX}"))]


def _digits(time: str) -> str:
    """ISO 8601 as the index writes a moment."""
    return time[:19].replace("-", "").replace("T", "").replace(":", "")
