"""The captures of a URL, found by the indexes: of closed files, and of the one that is still being written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive import index_rows
from crawlerproject.rules.archive.index_rows import REVISIT_MIME, CdxjEntry, surt_key
from crawlerproject.rules.archive.warc_members import Flaw, Member
from crawlerproject.rules.url.urls import UrlRefused, host_key, host_name, parse
from crawlerproject.stores.archive.warc_reader import member_at
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX, WARC_SUFFIX, CrawlDir
from crawlerproject.stores.index.index_files import CDXJ_SUFFIX, JOURNAL_SUFFIX, archive_of_journal
from crawlerproject.stores.operator_files.watched_lists import withdrawn_of


class IndexedCapture(NamedTuple):
    """One capture, as the index has it."""

    filename: str  # without ".open"
    row: CdxjEntry


class Captures:
    """Answers from the indexes in the ``folders`` of one crawl; reads a WARC only for ``record``.

    ``elsewhere``: indexes and WARC files of theirs that lie at another place.
    """

    def __init__(self, folders: Sequence[Path], elsewhere: Sequence[Path] = ()) -> None:
        self._elsewhere = {path.name: path for path in elsewhere}
        self._folders = [CrawlDir(folder) for folder in folders]

    def of_url(self, url: str) -> list[IndexedCapture]:
        """All captures whose key is that of ``url`` (scheme, www. and the order of the query do not matter), by time.

        Raises OperatorError when ``url`` is not a URL.
        """
        try:
            whole = parse(url if "://" in url else f"http://{url}").url
        except UrlRefused:
            raise OperatorError(f"{url!r} is no http or https URL.") from None
        key, host = surt_key(whole), host_name(host_key(whole)).removeprefix("www.").encode()
        found: dict[tuple[str, int], IndexedCapture] = {}
        # Journals first: one that is closed meanwhile is then found among the closed ones.
        for journal in self._all(JOURNAL_SUFFIX):
            filename = archive_of_journal(journal)
            with suppress(FileNotFoundError), journal.open("rb") as file:  # closed a moment ago: its index is there now
                for line in file:
                    # Most lines are of other hosts, and a key takes ten times as long to make as this look.
                    if host in line and (row := index_rows.unpack(line)) is not None and surt_key(row.url) == key:
                        found[filename, row.offset] = IndexedCapture(filename, row)
        for index in self._all(CDXJ_SUFFIX):
            for line in lines_of_key(index, key):
                if (parsed := index_rows.parse(line)) is not None:
                    found[parsed[1], parsed[0].offset] = IndexedCapture(parsed[1], parsed[0])
        # Of a file that is open, or at another place, the index has them still.
        lists = [withdrawn_of(folder) for folder in self._folders]
        shown = [each for each in found.values() if not any(listed.covers(each.row.url) for listed in lists)]
        return sorted(shown, key=lambda capture: (capture.row.timestamp, capture.filename, capture.row.offset))

    def unindexed(self) -> list[str]:
        """Closed WARC files that no index covers."""
        suffixes = (CDXJ_SUFFIX, JOURNAL_SUFFIX)
        names = {path.name.removesuffix(suffix) for suffix in suffixes for path in self._all(suffix)}
        closed = sorted(path.name for folder in self._folders for path in folder.closed_warcs())
        return [name for name in closed if name.removesuffix(WARC_SUFFIX) not in names]

    def record(self, capture: IndexedCapture) -> Member:
        """The response or revisit record itself. Raises OperatorError when the index does not tell the truth."""
        path = self._path(capture.filename)
        where = f"{capture.filename} at byte {capture.row.offset}"
        try:
            member = member_at(path, capture.row.offset, capture.row.length)
        except FileNotFoundError:
            raise OperatorError(f"The index names {capture.filename}, which is missing in {path.parent}.") from None
        if isinstance(member, Flaw):
            raise OperatorError(f"There is no good record in {where} ({member.what}); scrapy verify says more.")
        if member.url != capture.row.url:
            raise OperatorError(f"The index names {capture.row.url} in {where}, but another record is there.")
        return member

    def _all(self, suffix: str) -> list[Path]:
        here = sorted(path for folder in self._folders for path in folder.index.glob(f"*{suffix}"))
        return [*here, *(path for name, path in self._elsewhere.items() if name.endswith(suffix))]

    def _path(self, filename: str) -> Path:
        """Where a WARC file is, or would be."""
        names = (filename, f"{filename}{OPEN_SUFFIX}")
        paths = [folder.warc / name for folder in self._folders for name in names]
        return next((path for path in paths if path.exists()), self._elsewhere.get(filename, paths[0]))

    def original(self, revisit: Member) -> IndexedCapture | None:
        """The capture whose body a revisit stands for; None when this archive does not have it."""
        url, date = revisit.field("warc-refers-to-target-uri"), revisit.field("warc-refers-to-date")
        timestamp = re.sub(r"\D", "", date)[:14]
        digest = revisit.field("warc-payload-digest").removeprefix("sha1:")
        try:
            same = [found for found in self.of_url(url) if found.row.url == url and found.row.mime != REVISIT_MIME]
        except OperatorError:
            return None
        exact = [found for found in same if found.row.timestamp == timestamp]
        return next(iter(exact or [found for found in same if digest and found.row.digest == digest]), None)


def nearest(captures: list[IndexedCapture], timestamp: str) -> IndexedCapture:
    """The last capture within ``timestamp``, digits from the year on, as many as are known; or the nearest to it.

    Raises OperatorError when it is not a time.
    """
    digits = re.sub(r"\D", "", timestamp)
    if not 4 <= len(digits) <= 20:
        raise OperatorError(f"{timestamp!r} is no time; write for example 2026, 20261121 or 2026-11-21T16:15:00.")
    try:
        wanted = _seconds(digits[:14])
    except ValueError:
        raise OperatorError(f"{timestamp!r} is no time: no calendar has it.") from None
    within = [capture for capture in captures if capture.row.timestamp.startswith(digits[:14])]
    return within[-1] if within else min(captures, key=lambda capture: abs(_seconds(capture.row.timestamp) - wanted))


def lines_of_key(index: Path, key: str) -> Iterator[bytes]:
    """The lines of a sorted CDXJ file that begin with ``key``, found by halving the file."""
    prefix = key.encode() + b" "
    low, high = 0, index.stat().st_size
    with index.open("rb") as file:
        while low < high:
            middle = (low + high) // 2
            file.seek(max(0, middle - 1))
            if middle:
                file.readline()
            line = file.readline()
            if line and line < prefix:
                low = middle + 1
            else:
                high = middle
        file.seek(max(0, low - 1))
        if low:
            file.readline()
        for line in file:
            if not line.startswith(prefix):
                return
            yield line


def _seconds(timestamp: str) -> float:
    whole = timestamp + "00000101000000"[len(timestamp) :]
    return datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
