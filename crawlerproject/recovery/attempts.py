"""All attempts recorded in a crawl's folder, captures and log lines, in the order in which they ended.

The new frontier while it is made: a RocksDB store that also finds a queued row by its URL, and payloads by digest.

A frontier never asks for either: it goes by host. Both lists are in a folder of their own, which goes when all is done.

From an attempt of a crawl to the end that it had: its response is read again from the archive.
"""

from __future__ import annotations

import heapq
import shutil
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any

from rocksdict import Options, Rdict
from scrapy.http import Response
from scrapy.settings import BaseSettings
from xxhash import xxh3_128_digest

from crawlerproject.errors import StorageError
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.learned.render_gains import Renders
from crawlerproject.frontier.passage import Lease
from crawlerproject.inspection.archived_response import archived_response, archived_wire, rendered_response
from crawlerproject.items import LeaseResult, Rendered
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.reading.outcomes import RECORDED, Outcomes, rendered_result, result_of
from crawlerproject.reading.page_reader import PageReader
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire, payload_digest
from crawlerproject.rules.archive.index_rows import sha1_of
from crawlerproject.rules.archive.warc_members import Member, is_ours
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED
from crawlerproject.rules.row_kinds import ROW_KINDS
from crawlerproject.stores.archive.archive import Written
from crawlerproject.stores.archive.warc_reader import ArchivedCapture, Progress, captures_in, first_member, member_at
from crawlerproject.stores.crawl_dir import WARC_SUFFIX, CrawlDir
from crawlerproject.stores.crawl_folders import removed_from
from crawlerproject.stores.logs.request_log import read_log
from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import MIB, make_folder

LISTS_SUFFIX = ".lists"
_PLACE = Struct("<BQ")  # priority, arrival
_SPAN = Struct("<IQQ")  # number of the file, offset, length
_BUFFER_BYTES = 16 * MIB

Span = tuple[int, int, int]
"""Of a record: the number of its file in the order of writing, its first byte, its length."""


class PlacedStore(RocksStore):
    """Changes are applied to the store first, then to the lists: what is lost of these by a crash is made again."""

    def __init__(self, folder: Path) -> None:
        """Begin in an empty ``folder``: what is there goes."""
        self._lists_folder = folder.with_name(folder.name + LISTS_SUFFIX)
        for left in (folder, self._lists_folder):
            shutil.rmtree(left, ignore_errors=True)
        super().__init__(folder)
        make_folder(str(self._lists_folder))
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(_BUFFER_BYTES)
        self._lists = Rdict(str(self._lists_folder), options)

    def apply(self, changes: Changes) -> None:
        """Apply all of it to the store, then to the lists. StorageError."""
        super().apply(changes)
        try:
            for row in changes.removed:
                self._lists.delete(_row_key(row.url, row.flags))
            for row in changes.queued:
                place = _PLACE.pack(row.priority, row.arrival) + row.host.encode()
                self._lists.put(_row_key(row.url, row.flags), place)
        except Exception as error:  # rocksdict raises no narrower class
            raise StorageError(f"{self._lists_folder} cannot be written: {error}") from error

    def row(self, url: str, flags: int = 0) -> QueuedPage | None:
        """The row that waits for a URL; FLAG_ROBOTS: of a robots.txt that was redirected there, FLAG_REQUISITE: so."""
        packed = self._lists.get(_row_key(url, flags))
        if packed is None:
            return None
        priority, arrival = _PLACE.unpack_from(packed)
        host = packed[_PLACE.size :].decode()
        found = self.head(host, 1, (priority, arrival - 1))
        return found[0] if found and found[0].url == url and found[0].arrival == arrival else None

    def keep_payload(self, digest: bytes, span: Span) -> None:
        """Remember where a payload is archived. StorageError."""
        try:
            self._lists.put(b"d" + digest, _SPAN.pack(*span))
        except Exception as error:
            raise StorageError(f"{self._lists_folder} cannot be written: {error}") from error

    def payload(self, digest: bytes) -> Span | None:
        """Where a payload was archived first."""
        packed = self._lists.get(b"d" + digest)
        return None if packed is None else _SPAN.unpack(packed)

    def close(self) -> None:
        """Let go of both, and remove the lists."""
        super().close()
        self._lists.close()
        shutil.rmtree(self._lists_folder, ignore_errors=True)


def _row_key(url: str, flags: int) -> bytes:
    kind = ROW_KINDS[flags]
    letter = b"p" if kind.is_robots else b"e" if kind.is_requisite else b"r"
    return letter + xxh3_128_digest(url.encode("utf-8", "surrogatepass"))


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


# Reasons of answers that were read; any other says why one was not.
_READ = {Reason.FETCHED, Reason.REDIRECT, Reason.HTTP_ERROR, Reason.RATE_LIMITED, Reason.NOT_MODIFIED, Reason.CHALLENGE}
_READ.add(Reason.PAYMENT_REQUIRED)
_FAILURES = {*Reason} - _READ


class Unreadable(Exception):
    """An attempt that cannot be read; the text is its key in the counts."""


class Answers:
    """Makes the endings of attempts."""

    def __init__(self, settings: BaseSettings, store: PlacedStore, reader: PageReader) -> None:
        self._store = store
        self._reader = reader
        self._max_bytes = settings.getint("FETCH_MAX_BYTES")
        self._outcomes = Outcomes(settings["CRAWLER_NAME"], sitemaps=settings.getbool("SITEMAPS"), consent=RECORDED)
        self._files: dict[int, Path] = {}  # that payloads are in

    async def page(self, lease: Lease, attempt: Attempt, renders: Renders) -> LeaseResult:
        """The end of an attempt. Raises Unreadable."""
        capture = attempt.capture
        if capture is None:
            return _failed(lease, attempt)
        if capture.rendered:
            rendered = Rendered(lease.row.url, html=capture.member.block)
            response = rendered_response(lease.row.url, capture.member)
            result = rendered_result(lease, rendered, await self._read(lease, response), RECORDED)
        else:
            result = await self._answered(lease, attempt, capture, renders)
            result.digest = sha1_of(capture.member.field("warc-payload-digest"))
        if _walled(attempt, capture):
            result.reason = Reason.CHALLENGE
        kind = attempt.logged("duplicate") or attempt.noted("duplicate")
        repeats = attempt.logged("duplicate_of") or attempt.noted("duplicate-of")
        if kind and repeats:
            result.duplicate = Duplicate(str(kind), str(repeats))
            result.found = [found.behind() for found in result.found]
        return result

    def written(self, capture: ArchivedCapture) -> Written:
        """Where a capture is."""
        member = capture.member
        digest = sha1_of(member.field("warc-payload-digest")) or payload_digest(member.payload)
        if member.kind == "response":
            self._files[capture.number] = capture.path
            if self._store.payload(digest) is None:
                self._store.keep_payload(digest, (capture.number, member.offset, member.length))
        identity, date = member.field("warc-record-id"), member.field("warc-date")
        return Written(capture.path.name, member.offset, member.length, digest, identity, date)

    # --- answers --------------------------------------------------------------------------------

    async def _answered(
        self, lease: Lease, attempt: Attempt, capture: ArchivedCapture, renders: Renders
    ) -> LeaseResult:
        member, row = capture.member, lease.row
        not_modified = member.field("warc-profile") == NOT_MODIFIED
        original = self._original(member) if member.kind == "revisit" and not not_modified else None
        wire = archived_wire(member, original)
        wire.ended_at = attempt.ended_at
        wire.received_bytes = int(attempt.logged("bytes") or 0)
        # Without a line the whole time stands for the first byte's: a host may seem slower than it is, never faster.
        ttfb = attempt.logged("ttfb_seconds") if attempt.line is not None else wire.ended_at - wire.started_at
        wire.ttfb_seconds = ttfb
        if not wire.status:
            raise Unreadable("without a status")
        response = archived_response(row.url, wire, self._max_bytes, original)
        if not lease.kind.is_robots and (failed := attempt.logged("reason")) in _FAILURES:
            result = result_of(lease, response, wire)
            result.reason = Reason(failed)  # the log tells why it was not read
            return result
        read = ReadPage() if attempt.noted("unread") else await self._read(lease, response)
        shell = read.facts is not None and not _walled(attempt, capture)
        to_render = shell and renders.wanted(row.url, row.host, read.triage.verdict)
        result = self._outcomes.fetched(lease, response, wire, read, to_render=to_render)
        if not_modified or attempt.logged("reason") == Reason.NOT_MODIFIED:  # what was asked is not read again
            result.reason, result.error = Reason.NOT_MODIFIED, ""
        if result.target is not None:
            result.found = [result.target]
        return result

    async def _read(self, lease: Lease, response: Response) -> ReadPage:
        coming = self._reader.read(lease, response)
        read = coming if isinstance(coming, ReadPage) else await coming
        if read.fault:
            raise Unreadable("could not be read again")
        read.challenge = ""  # the log and the archive know what it was
        return read

    def _original(self, revisit: Member) -> Member:
        """The capture whose payload a revisit repeats."""
        span = self._store.payload(sha1_of(revisit.field("warc-payload-digest")))
        if span is None:
            raise Unreadable("repeats a capture that is lost")
        number, offset, length = span
        found = member_at(self._files[number], offset, length)
        if not isinstance(found, Member):
            raise Unreadable("repeats a capture that is damaged")
        return found


def _failed(lease: Lease, attempt: Attempt) -> LeaseResult:
    """There was no response."""
    try:
        reason = Reason(attempt.logged("reason"))
    except ValueError:
        raise Unreadable("for a reason of another version") from None
    if lease.kind.is_render:
        raise Unreadable("not rendered")  # another time, maybe
    wire = Wire(ip=lease.address, ended_at=attempt.ended_at, ttfb_seconds=attempt.logged("ttfb_seconds"))
    return LeaseResult.failed(lease, reason, str(attempt.logged("error") or ""), wire)


def _walled(attempt: Attempt, capture: ArchivedCapture) -> bool:
    """Whether the page was an anti-bot wall, by the log or by the archive."""
    return "challenge" in (attempt.logged("reason"), *capture.notes)
