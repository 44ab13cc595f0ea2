"""All attempts recorded in a crawl's folder, captures and log lines, in the order in which they ended."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from crawlerproject.rules.archive.warc_members import is_ours
from crawlerproject.stores.archive.warc_reader import ArchivedCapture, Progress, captures_in, first_member
from crawlerproject.stores.crawl_dir import WARC_SUFFIX, CrawlDir
from crawlerproject.stores.crawl_folders import removed_from
from crawlerproject.stores.logs.request_log import read_log

Line = dict[str, Any]
Place = tuple[int, int]
"""Of a record: the number of its file in the order of writing, its first byte."""

_FIRST: Place = (0, 0)
_END: Place = (1 << 60, 0)
_NEEDED = ("url", "time", "end")
# Lines and captures are written in one order, but for pages that waited for room on the disk.
_LINES_AHEAD = 1000
_GONE = -1  # the number of a file that is not there


@dataclass(slots=True)
class Attempt:
    """One request of the crawl's: its line in the log, its capture, or both."""

    line: Line | None
    capture: ArchivedCapture | None

    @property
    def url(self) -> str:
        """The address that was asked."""
        return self.capture.url if self.capture is not None else str(self.logged("url"))

    @property
    def hops(self) -> str:
        """The path from the seed in Heritrix' letters."""
        return self._either("hop", "hopsFromSeed")

    @property
    def via(self) -> str:
        """The page it was found on."""
        return self._either("via", "via")

    @property
    def depth(self) -> int:
        """Links from a seed. Without a log line: one per letter but redirects, and one for all sitemaps together."""
        if self.line is not None:
            return int(self.logged("depth") or 0)
        messages = self.hops.replace("R", "")
        return len(messages.replace("M", "")) + ("MM" in messages)

    @property
    def rendered(self) -> bool:
        """Whether a browser was at work."""
        return self.capture.rendered if self.capture is not None else bool(self.logged("rendered"))

    @property
    def ended_at(self) -> float:
        """Epoch seconds."""
        if self.line is not None:
            return datetime.fromisoformat(self.line["end"]).timestamp()
        assert self.capture is not None
        return self.capture.ended_at

    @property
    def lost(self) -> bool:
        """Whether it was answered and the answer is not in the archive any more."""
        return self.capture is None and self.logged("status") is not None

    def logged(self, name: str) -> Any:
        """A field of the log line; None without a line."""
        return self.line.get(name) if self.line is not None else None

    def noted(self, name: str) -> str:
        """A field of the capture's metadata record; "" when absent."""
        return self.capture.notes.get(name, "") if self.capture is not None else ""

    def _either(self, logged: str, noted: str) -> str:
        return str(self.logged(logged) or "") if self.line is not None else self.noted(noted)


def attempts(folders: Iterable[CrawlDir], progress: Progress) -> Iterator[Attempt]:
    """The attempts of a crawl, in all of its folders. ``progress`` is called with the bytes of WARC files read."""
    found: list[Iterator[Attempt]] = []
    first = 0
    for folder in folders:
        there = [path for path in removed_from(folder) if path.name.endswith(WARC_SUFFIX)]
        warcs = [*there, *in_order(folder.warc)]  # what was removed here, since another place has it, is older
        found.append(_of_folder(folder, dict(enumerate(warcs, first)), progress))
        first += len(warcs)
    return heapq.merge(*found, key=lambda attempt: attempt.ended_at) if len(found) > 1 else found[0]


def _of_folder(folder: CrawlDir, warcs: dict[int, Path], progress: Progress) -> Iterator[Attempt]:
    """Captures older than the log come first. Log lines may refer to captures that are lost."""
    numbers = {path.name: number for number, path in warcs.items()}
    archived = (capture for number, path in warcs.items() for capture in captures_in(path, progress, number))
    captures, lines = _Captures(capture for capture in archived if capture.whole), _Lines(read_log(folder.log))
    logged = (_place(line, numbers) for line in read_log(folder.log))
    began = next((place for place in logged if place is not None and place[0] != _GONE), _FIRST)
    yield from captures.before(began, lines)
    for line in lines:
        place = _place(line, numbers)
        if place is None:
            yield Attempt(line, None)
            continue
        yield from captures.before(place, lines, line)
        if (found := captures.take(place, line)) is not None:
            yield Attempt(line, found)
        elif place[0] == _GONE or place > captures.last:
            yield Attempt(line, None)
    yield from captures.before(_END, lines)


def in_order(folder: Path) -> list[Path]:
    """The crawl's own closed WARC files, in the order of writing."""
    dated = []
    for path in folder.glob(f"*{WARC_SUFFIX}"):
        first = first_member(path)
        # In one that was packed by gzip as a whole no place leads to a capture.
        if first is not None and is_ours(first) and not first.shared:
            dated.append((first.field("warc-date"), path.name, path))
    return [path for _, _, path in sorted(dated)]


class _Lines:
    """The log's lines in order, with a look-ahead."""

    def __init__(self, found: Iterable[Line]) -> None:
        self._found = (line for line in found if all(isinstance(line.get(name), str) for name in _NEEDED))
        self._ahead: deque[Line] = deque()
        self._expected = Counter[tuple[str, str]]()
        self._fill()

    def __iter__(self) -> Iterator[Line]:
        while self._ahead:
            line = self._ahead.popleft()
            key = _key(line)
            self._expected[key] -= 1
            if not self._expected[key]:
                del self._expected[key]
            self._fill()
            yield line

    def expects(self, capture: ArchivedCapture) -> bool:
        """Whether a line ahead refers to this capture."""
        return capture.key in self._expected

    def _fill(self) -> None:
        for line in islice(self._found, _LINES_AHEAD - len(self._ahead)):
            self._ahead.append(line)
            self._expected[_key(line)] += 1


class _Captures:
    """Captures in order, with a look-ahead of one."""

    def __init__(self, found: Iterator[ArchivedCapture]) -> None:
        self._found = found
        self._next = next(found, None)
        self.last: Place = (-1, 0)  # that was given out

    def before(self, place: Place, lines: _Lines, line: Line | None = None) -> Iterator[Attempt]:
        """Captures before a place that neither ``line`` nor a line ahead refers to."""
        key = _key(line) if line is not None else None
        while (capture := self._next) is not None and capture.place < place:
            if capture.key == key or lines.expects(capture):
                return
            yield Attempt(None, self._taken(capture))

    def take(self, place: Place, line: Line) -> ArchivedCapture | None:
        """That of a line, wherever it stands: what was cut out of its file before it has moved it.

        None when there is no capture, or it is another attempt's: after a crash places are reused.
        """
        capture = self._next
        if capture is None or not (capture.key == _key(line) or (capture.place, capture.url) == (place, line["url"])):
            return None
        return self._taken(capture)

    def _taken(self, capture: ArchivedCapture) -> ArchivedCapture:
        self.last = capture.place
        self._next = next(self._found, None)
        return capture


def _key(line: Line) -> tuple[str, str]:
    """What a line shares with its capture: the URL and the record's date."""
    return line["url"], line["end" if line.get("rendered") else "time"]


def _place(line: Line, numbers: dict[str, int]) -> Place | None:
    """The place of a line's capture; None when it has none."""
    name, offset = line.get("warc"), line.get("offset")
    if not isinstance(name, str) or not isinstance(offset, int):
        return None
    return numbers.get(name, _GONE), offset
