"""What others have crawled becomes known to a crawl; their records, on request, part of its archive."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from email.utils import formatdate
from hashlib import sha1
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import NAMESPACE_URL, uuid5

from crawlerproject.batch.commoncrawl_index import Distant, ForeignCapture
from crawlerproject.errors import OperatorError
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import payload_digest
from crawlerproject.rules.archive.warc_members import Member, walk
from crawlerproject.rules.archive.warc_records import Original, make_member, one_line, warc_date, warcinfo
from crawlerproject.rules.revisits.history import History
from crawlerproject.stores.archive.warc_reader import captures_in, member_of
from crawlerproject.stores.atomic_files import replace_file
from crawlerproject.stores.protocols import Changes, PageRecord

_TAKEN = ("response", "revisit")  # WARC-Types: of a capture, of one whose payload is another's
_AT_A_TIME = 1000
"""Captures of one change of the store, and about as many records of one WARC file."""
# Of one record: far above what any crawler keeps of an answer (Common Crawl 5 MB), and what fits into memory.
_MOST_RECORD_BYTES = 1 << 26


class KnownPages(Protocol):
    """Where pages become known: a frontier, or those of several workers."""

    def page(self, key: bytes, host: str) -> PageRecord | None: ...

    def original(self, digest: bytes) -> Original | None: ...

    def apply(self, changes: Changes) -> None: ...

    def sync(self) -> None: ...


Payloads = dict[ForeignCapture, tuple[bytes, Original] | None]
"""Captures whose records are in the archive now, each with its payload's digest and itself; None for a revisit."""
Fetch = Callable[[list[ForeignCapture]], tuple[Payloads, list[str]]]
"""Brings records into the archive; what was refused, and why."""


class Imported(NamedTuple):
    """What an import came to."""

    pages: int  # newly known
    known: int  # known already, at least as late
    records: int  # now in the archive
    refused: tuple[str, ...]  # records that are not what the index says, and why


def import_captures(captures: Iterable[ForeignCapture], store: KnownPages, fetch: Fetch | None) -> Imported:
    """Make captures known, the latest of each page; ``fetch`` brings their records into the archive."""
    work = _Import(store, fetch)
    source = iter(captures)
    while some := list(islice(source, _AT_A_TIME)):
        work.take(some)
    return work.finish()


class _Import:
    """An import under way. A page whose record is refused is known all the same; a later run tries it again."""

    def __init__(self, store: KnownPages, fetch: Fetch | None) -> None:
        self._store = store
        self._fetch = fetch
        self._pages = self._known = self._records = 0
        self._refused: list[str] = []
        self._waiting: dict[bytes, list[ForeignCapture]] = {}  # revisits whose body no line has named yet, by digest
        self._bodies_by_theirs: dict[bytes, tuple[bytes, Original]] = {}  # where their digest is another than ours

    def take(self, some: list[ForeignCapture]) -> None:
        """The next captures of the index."""
        latest: dict[bytes, ForeignCapture] = {}
        for capture in some:
            before = latest.get(capture.address.key)
            if before is None or before.fetched_at < capture.fetched_at:
                latest[capture.address.key] = capture
        new = [capture for capture in latest.values() if self._is_news(capture)]
        bodies = self._bodies(new, some) if self._fetch is not None else {}
        # And one capture of each body that revisits wait for.
        taken = {body.digest for body in bodies.values() if not body.revisit}
        awaited = {each.digest: each for each in some if each.digest in self._waiting and not each.revisit}
        more = [each for digest, each in awaited.items() if digest not in taken]
        payloads = self._fetched([*bodies.values(), *more])
        self._fetched(self._answered(payloads))
        rows = [_record(capture, payloads.get(bodies.get(capture, capture)) or self._body(capture)) for capture in new]
        keys = [capture.address.key for capture in new]
        self._store.apply(Changes(pages=list(zip(keys, rows, strict=True))))
        self._known += len(some) - len(new)
        self._pages += len(new)

    def finish(self) -> Imported:
        """There are no more."""
        for capture in (capture for waiting in self._waiting.values() for capture in waiting):
            self._refused.append(f"{capture.address.url}: its last capture repeats one that the index does not name")
        self._store.sync()
        return Imported(self._pages, self._known, self._records, tuple(self._refused))

    def _is_news(self, capture: ForeignCapture) -> bool:
        """Whether it is later than what is known; or is that, and its record is wanted and is not here."""
        record = self._store.page(capture.address.key, capture.address.host)
        if record is None or record.fetched_at != capture.fetched_at or self._fetch is None:
            return record is None or record.fetched_at < capture.fetched_at
        return self._store.original(record.digest) is None

    def _bodies(self, new: list[ForeignCapture], some: list[ForeignCapture]) -> dict[ForeignCapture, ForeignCapture]:
        """For each the capture that has its body: itself, or of a revisit the latest of its page with this body.

        A revisit of another page's is taken itself where that body is here already. Else it waits for it.
        """
        by_body = {
            (each.address.url, each.digest): each
            for each in sorted(some, key=lambda each: each.fetched_at)
            if not each.revisit
        }
        bodies = {}
        for capture in new:
            body = by_body.get((capture.address.url, capture.digest)) if capture.revisit else capture
            if body is not None:
                bodies[capture] = body
            elif (there := self._body(capture)) is None:
                self._waiting.setdefault(capture.digest, []).append(capture)
            elif there[1].url != capture.address.url:
                bodies[capture] = capture
        return bodies

    def _body(self, capture: ForeignCapture) -> tuple[bytes, Original] | None:
        """Our digest of a body that is in the archive, and its capture."""
        original = self._store.original(capture.digest) if capture.digest else None
        return self._bodies_by_theirs.get(capture.digest) if original is None else (capture.digest, original)

    def _answered(self, payloads: Payloads) -> list[ForeignCapture]:
        """Revisits that have waited for these bodies, of other pages: those of their own say no more than the body."""
        there = {capture.digest: capture.address.url for capture in payloads}
        return [
            capture
            for digest, url in there.items()
            for capture in self._waiting.pop(digest, [])
            if capture.address.url != url
        ]

    def _fetched(self, captures: list[ForeignCapture]) -> Payloads:
        if self._fetch is None or not captures:
            return {}
        payloads, refused = self._fetch(captures)
        self._refused += refused
        self._records += len(payloads)
        made = {capture: payload for capture, payload in payloads.items() if payload is not None}
        self._store.apply(Changes(payloads=list(made.values())))
        theirs = {capture.digest: payload for capture, payload in made.items() if payload[0] != capture.digest}
        self._bodies_by_theirs |= theirs  # of chunks as they were sent, say
        return payloads


def _record(capture: ForeignCapture, payload: tuple[bytes, Original] | None) -> PageRecord:
    """The page's record. The moment of their fetch serves as If-Modified-Since (RFC 9110 13.1.3)."""
    history = History(visits=1, seen_at=capture.fetched_at)
    digest = payload[0] if payload else capture.digest
    moment = formatdate(capture.fetched_at, usegmt=True)  # RFC 9110 5.6.7
    url, at = capture.address.url, capture.fetched_at
    return PageRecord(url, Reason.FETCHED, capture.status, at, digest, "", moment, history.pack())


class Records:
    """Takes records by byte range into WARC files of their own: a file for each thousand, whole or not at all."""

    def __init__(self, distant: Distant, warc_folder: Path, index: Callable[[Path], object]) -> None:
        self._distant = distant
        self._folder = warc_folder
        self._index = index

    def __call__(self, captures: list[ForeignCapture]) -> tuple[Payloads, list[str]]:
        """``Fetch``."""
        text = "\n".join(f"{capture.filename} {capture.offset}" for capture in captures)
        name = f"import-{sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]}.warc.gz"
        path = self._folder / name
        problems = [] if path.exists() else self._written(path, name, captures)  # else an earlier run got so far
        if not path.exists():
            return {}, problems
        self._index(path)
        asked = {_origin(self._distant.base, capture): capture for capture in captures}
        taken: Payloads = {}
        for found in captures_in(path):
            if (capture := asked.get(tuple(found.notes.items()))) is None:
                continue
            member = found.member
            original = Original(member.field("warc-record-id"), member.url, member.field("warc-date"))
            taken[capture] = (payload_digest(member.body), original) if member.kind == "response" else None
        if not problems:
            left_out = (capture for capture in captures if capture not in taken)
            problems = [f"{capture.address.url}: an earlier run refused its record" for capture in left_out]
        return taken, problems

    def _written(self, path: Path, name: str, captures: list[ForeignCapture]) -> list[str]:
        """Take the records into a file, if there are any; what was refused."""
        problems: list[str] = []
        first = min(capture.fetched_at for capture in captures)
        fields = [("software", "crawlerproject"), ("description", f"records taken from {self._distant.base}")]
        made = [warcinfo(fields, filename=name, record_id=_record_id(name), now=first)]
        for capture in captures:
            data, problem = self._taken(capture)
            if problem:
                problems.append(f"{capture.address.url}: {problem}")
            else:
                made += [data, _origin_record(self._distant.base, capture)]
        if len(made) > 1:
            replace_file(path, b"".join(made))
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
        member = member_of(data, 0, len(data))
        if not isinstance(member, Member):
            return b"", f"{place} is not one whole record ({member.what})"
        if member.kind != _TAKEN[capture.revisit] or member.url != capture.address.url:
            return b"", f"{place} is another record ({member.kind} of {member.url[:100]})"
        if member.is_large:
            return b"", f"{place} is larger than is taken"
        if isinstance(next(walk([data])), Member):
            return data, ""
        # A record of another shape becomes a gzip member of its own, its block as it is.
        made_here = ("content-length", "warc-block-digest")
        fields = "".join(f"{name}: {one_line(value)}\r\n" for name, value in member.fields if name not in made_here)
        return make_member(f"WARC/1.0\r\n{fields}", member.block), ""


def leads_out(name: str) -> bool:
    """Whether a file's name in an index leads anywhere but below the place that the operator named.

    An index is a stranger's word: it could name files of this machine, or have us ask any server for ranges.
    """
    return "://" in name or name.startswith("/") or ".." in name.split("/") or not name.isprintable()


def _place(base: str, capture: ForeignCapture) -> str:
    return f"{base.rstrip('/')}/{capture.filename}" if base else capture.filename


def _origin(base: str, capture: ForeignCapture) -> tuple[tuple[str, str], ...]:
    """Where a record came from, as the metadata record behind it has it."""
    length = str(capture.length)
    return ("origin", _place(base, capture)), ("originOffset", str(capture.offset)), ("originLength", length)


def _origin_record(base: str, capture: ForeignCapture) -> bytes:
    head = (
        "WARC/1.1\r\nWARC-Type: metadata\r\n"
        f"WARC-Record-ID: {_record_id(f'{_place(base, capture)} {capture.offset}')}\r\n"
        f"WARC-Date: {warc_date(capture.fetched_at)}\r\nWARC-Target-URI: {capture.address.url}\r\n"
        "Content-Type: application/warc-fields\r\n"
    )
    return make_member(head, "".join(f"{name}: {value}\r\n" for name, value in _origin(base, capture)).encode())


def _record_id(text: str) -> str:
    return f"<{uuid5(NAMESPACE_URL, text).urn}>"
