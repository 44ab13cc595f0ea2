"""What others have crawled becomes known to a crawl; their records, on request, part of its archive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha1
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import NAMESPACE_URL, uuid5

from crawlerproject.batch.commoncrawl_index import ForeignCapture
from crawlerproject.batch.remote_files import Distant
from crawlerproject.errors import OperatorError
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.warc_members import Member, walk
from crawlerproject.rules.archive.warc_records import Original, make_member, warc_date, warcinfo
from crawlerproject.rules.revisits.history import History
from crawlerproject.rules.revisits.refetch import http_date_text
from crawlerproject.stores.atomic_files import replace_file
from crawlerproject.stores.protocols import Changes, PageRecord

_AT_A_TIME = 1000
"""Captures of one change of the store, and records of one WARC file."""
# Of one record: far above what any crawler keeps of an answer (Common Crawl 5 MB), and what fits into memory.
_MOST_RECORD_BYTES = 1 << 26


class KnownPages(Protocol):
    """Where pages become known: a frontier, or those of several workers."""

    def page(self, key: bytes, host: str) -> PageRecord | None: ...

    def apply(self, changes: Changes) -> None: ...

    def sync(self) -> None: ...


class Imported(NamedTuple):
    """What an import came to."""

    pages: int  # newly known
    known: int  # known already, at least as late
    records: int  # now in the archive
    refused: tuple[str, ...]  # records that are not what the index says, and why


def import_captures(
    captures: Iterable[ForeignCapture],
    store: KnownPages,
    records: Callable[[list[ForeignCapture]], tuple[list[tuple[bytes, Original]], list[str]]] | None,
) -> Imported:
    """Make captures known, the latest of each page; ``records`` brings their records into the archive."""
    pages = known = brought = 0
    refused: list[str] = []
    source = iter(captures)
    while some := list(islice(source, _AT_A_TIME)):
        latest: dict[bytes, ForeignCapture] = {}
        for capture in some:
            before = latest.get(capture.address.key)
            if before is None or before.fetched_at < capture.fetched_at:
                latest[capture.address.key] = capture
        new = [capture for capture in latest.values() if _is_news(store, capture)]
        known += len(some) - len(new)
        payloads: dict[bytes, tuple[bytes, Original]] = {}
        if records is not None and new:
            made, problems = records(new)
            refused += problems
            payloads = {original.url.encode(): (digest, original) for digest, original in made}
            brought += len(made)
        rows = [(capture.address.key, _record(capture, payloads.get(capture.address.url.encode()))) for capture in new]
        store.apply(Changes(pages=rows, payloads=list(payloads.values())))
        pages += len(new)
    store.sync()
    return Imported(pages, known, brought, tuple(refused))


def _is_news(store: KnownPages, capture: ForeignCapture) -> bool:
    record = store.page(capture.address.key, capture.address.host)
    return record is None or record.fetched_at < capture.fetched_at


def _record(capture: ForeignCapture, payload: tuple[bytes, Original] | None) -> PageRecord:
    """As if we had been there then. Their fetch's moment serves as If-Modified-Since (RFC 9110 13.1.3)."""
    history = History(visits=1, seen_at=capture.fetched_at)
    digest = payload[0] if payload else capture.digest
    moment = http_date_text(capture.fetched_at)
    url, at = capture.address.url, capture.fetched_at
    return PageRecord(url, Reason.FETCHED, capture.status, at, digest, "", moment, history.pack())


class Records:
    """Takes records by byte range into WARC files of their own: a file for each thousand, whole or not at all."""

    def __init__(self, distant: Distant, warc_folder: Path, index: Callable[[Path], object]) -> None:
        self._distant = distant
        self._folder = warc_folder
        self._index = index

    def __call__(self, captures: list[ForeignCapture]) -> tuple[list[tuple[bytes, Original]], list[str]]:
        """Payload digests with the captures that hold them; and what was refused."""
        name = f"import-{_name(captures)}.warc.gz"
        path = self._folder / name
        if not path.exists():
            problems = self._written(path, name, captures)
        else:  # an earlier run got so far
            problems = []
        self._index(path)
        with path.open("rb") as file:
            good = [member for member in walk(iter(lambda: file.read(1 << 20), b"")) if isinstance(member, Member)]
        return [_original(member) for member in good if member.kind == "response"], problems

    def _written(self, path: Path, name: str, captures: list[ForeignCapture]) -> list[str]:
        problems: list[str] = []
        first = min(capture.fetched_at for capture in captures)
        fields = [("software", "crawlerproject"), ("description", f"records taken from {self._distant.base}")]
        members = [warcinfo(fields, filename=name, record_id=_record_id(name), now=first)]
        for capture in captures:
            data, problem = self._taken(capture)
            if problem:
                problems.append(f"{capture.address.url}: {problem}")
            else:
                members += [data, _origin(self._distant.base, capture)]
        replace_file(path, b"".join(members))
        return problems

    def _taken(self, capture: ForeignCapture) -> tuple[bytes, str]:
        place = f"{capture.filename} at {capture.offset}"
        if not capture.length:
            return b"", f"the index does not say how long {place} is"
        if capture.offset < 0 or not 0 < capture.length <= _MOST_RECORD_BYTES:
            return b"", f"{capture.length} bytes of {place} are no record"
        if leads_out(capture.filename):
            return b"", f"{place} is not below the place of the others"
        try:
            data = self._distant.read(capture.filename, capture.offset, capture.length)
        except OperatorError as error:
            return b"", str(error)
        member = next(walk([data]), None)
        if not isinstance(member, Member) or member.length != len(data):
            return b"", f"{place} is not one whole record"
        if member.kind != "response" or member.url != capture.address.url:
            return b"", f"{place} is another record ({member.kind} of {member.field('warc-target-uri')[:100]})"
        return data, ""


def leads_out(name: str) -> bool:
    """Whether a file's name in an index leads anywhere but below the place that the operator named.

    An index is a stranger's word: it could name files of this machine, or have us ask any server for ranges.
    """
    return "://" in name or name.startswith("/") or ".." in name.split("/") or not name.isprintable()


def _original(member: Member) -> tuple[bytes, Original]:
    digest = sha1(member.payload, usedforsecurity=False).digest()
    url = member.url
    return digest, Original(member.field("warc-record-id"), url, member.field("warc-date"))


def _origin(base: str, capture: ForeignCapture) -> bytes:
    """A metadata record that says where the record before it came from."""
    place = f"{base.rstrip('/')}/{capture.filename}" if base else capture.filename
    block = f"origin: {place}\r\noriginOffset: {capture.offset}\r\noriginLength: {capture.length}\r\n".encode()
    head = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {_record_id(f'{place} {capture.offset}')}\r\n"
        f"WARC-Date: {warc_date(capture.fetched_at)}\r\nWARC-Target-URI: {capture.address.url}\r\n"
        "Content-Type: application/warc-fields\r\n"
    )
    return make_member(head, block)


def _name(captures: list[ForeignCapture]) -> str:
    text = "\n".join(f"{capture.filename} {capture.offset}" for capture in captures)
    return sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]


def _record_id(text: str) -> str:
    return f"<{uuid5(NAMESPACE_URL, text).urn}>"


def counted(captures: Iterator[ForeignCapture], limit: int | None) -> Iterator[ForeignCapture]:
    """At most ``limit`` of them."""
    return captures if limit is None else islice(captures, limit)
