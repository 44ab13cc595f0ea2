"""What an archive holds, for the page that a replay opens with: its seeds, its hosts, a title and dates of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from crawlerproject.batch.page_captures import PageCapture
from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive import index_rows
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.archive.capture_index import Captures, IndexedCapture
from crawlerproject.stores.archive.warc_reader import ArchivedCapture

MOST_LINES = 500_000
"""Of the index that are read: some five seconds of CPU, and a page that says so."""
MOST_LISTED = 200
"""Seeds, and hosts: as many titles are read out of the archive, two milliseconds each."""
_OK, _HTML = 200, "text/html"


class Shown(NamedTuple):
    """A page to begin with."""

    url: str
    timestamp: str  # YYYYmmddHHMMSS, of its last capture
    title: str


@dataclass(slots=True)
class HostShown:
    """A host's HTML pages with status 200, by captures."""

    host: str
    best: IndexedCapture  # the capture of the shortest address, which is mostly the front page
    first: str
    last: str
    pages: int = 0
    title: str = ""


class Contents(NamedTuple):
    """The first of each, and how many there are."""

    seeds: list[Shown]
    hosts: list[HostShown]  # those with most pages first
    hosts_in_all: int
    pages: int
    whole: bool  # the index was read to its end


def contents(indexes: Iterable[Path], captures: Captures, seeds: Sequence[str]) -> Contents:
    """What the CDXJ files name; ``seeds`` are listed where they were captured, with the last capture of each."""
    wanted, found = set(seeds), dict[str, IndexedCapture]()
    hosts: dict[str, HostShown] = {}
    lines = (line for path in indexes for line in _lines(path))
    for line in islice(lines, MOST_LINES):
        if (parsed := index_rows.parse(line)) is None:
            continue
        one = IndexedCapture(parsed[1], parsed[0])
        row = one.row
        if row.url in wanted and (row.url not in found or found[row.url].row.timestamp <= row.timestamp):
            found[row.url] = one
        if row.status == _OK and _HTML in (row.mime, row.identified):
            key = host_key(row.url)
            host = hosts.setdefault(key, HostShown(key, one, row.timestamp, row.timestamp))
            host.pages += 1
            host.first, host.last = min(host.first, row.timestamp), max(host.last, row.timestamp)
            host.best = min(host.best, one, key=lambda each: (len(each.row.url), each.row.url))
    whole = next(lines, None) is None
    shown = sorted(hosts.values(), key=lambda host: (-host.pages, host.host))[:MOST_LISTED]
    for host in shown:
        host.title = _title(captures, host.best)
    chosen = [found[url] for url in seeds if url in found][:MOST_LISTED]
    listed = [Shown(one.row.url, one.row.timestamp, _title(captures, one)) for one in chosen]
    return Contents(listed, shown, len(hosts), sum(host.pages for host in hosts.values()), whole)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _title(captures: Captures, capture: IndexedCapture) -> str:
    """Of an answer that is in the archive; "" where it has none, or the index does not say the truth."""
    try:
        member = captures.record(capture)
    except (OperatorError, OSError):
        return ""
    page = PageCapture(ArchivedCapture(member, Path(capture.filename))).read_html()
    return page.title if page is not None else ""
