"""What a WARC file really holds: a strict reading of its gzip members that stops at the first flaw.

The usual readers pass over torn files in silence. Here a good record is a gzip member that inflates to its end with
CRC and size right, begins with a WARC header, is as long as that says and ends with two line breaks. Others write
records in other shapes as well: files without compression, several records in one gzip member, records whose last line
breaks are missing, WARC before 1.0, ARC 1. ``walk`` has them cut on demand, by warcio (``records_in``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha1
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self
from uuid import NAMESPACE_URL, uuid5

from isal import isal_zlib

from crawlerproject import native
from crawlerproject.rules.archive.http_messages import MAX_LENGTH_DIGITS, digest_text, holds, states

if TYPE_CHECKING:
    from warcio.archiveiterator import ArchiveIterator

CHUNK_BYTES = 262_144
"""Bytes to read at once: a member in a hundred goes beyond (our measurement), and is begun anew with the next."""
_WINDOW_BYTES = (
    8192  # of them to inflate at once, at first: most members are shorter, and what is behind them is copied
)
MAX_RECORD_BYTES = 1 << 30
"""Inflated size past which a record is not held whole: neither it nor a gzip bomb may fill the memory."""
LARGE_KEPT_BYTES = 32 << 20
"""Of such a record so much is held: more than is read of any page."""
_LARGEST_BYTES = 1 << 36  # past which it is a flaw: a minute of inflating (ours)

_GZIP = 31  # zlib's window bits for "gzip members only"
_PLAIN = b"WARC/1."
_MARK = b"\x1f\x8b"  # RFC 1952 2.3.1
_FLAGS = 3  # RFC 1952 2.3.1: the byte of a member that holds its flags,
_LARGEST_FLAGS = b"\x1f"  # of which the upper three are reserved and must be zero
_BAD_GZIP: tuple[type[Exception], ...] = (isal_zlib.IsalError, EOFError)  # type: ignore[assignment]  # its stub: an instance
_END = b"\r\n\r\n"
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_BARE_LF = re.compile(rb"(?<!\r)\n")
_CHUNKED = re.compile(rb"(?i)\ntransfer-encoding[ \t]*:[^\r\n]*chunked")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]{0,4096})?\r?\n")  # RFC 9112 7.1
_OUR_SOFTWARE = b"software: crawlerproject/"  # in the warcinfo of a file that this project wrote
TOMBSTONE = "tombstone"
"""WARC-Type of what stands where a capture was erased (``withdrawal.py``)."""
_WHOLE_AFTER = frozenset({"warcinfo", "metadata", TOMBSTONE})  # types that end what we write at once
_NO_RECORD = "no WARC or ARC record"
_ARC_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)")
_NO_ADDRESS = "0.0.0.0"


class Fields(tuple[tuple[str, str], ...]):
    """Names, lower-cased, and values of a record, in order."""

    __slots__ = ()

    def first(self, name: str) -> str:
        """The first value of a name in lower case, "" without one."""
        return next((value for field, value in self if field == name), "")

    def all(self, name: str) -> list[str]:
        """Every value of a name that may repeat."""
        return [value for field, value in self if field == name]


class LargeFields(Fields):
    """Those of a record of which the beginning alone is held."""

    def __init__(self, _: Iterable[tuple[str, str]], wrong_digest: str = "") -> None:
        self.wrong_digest = wrong_digest  # the name of the sha1 digest field that does not hold

    def __new__(cls, fields: Iterable[tuple[str, str]], wrong_digest: str = "") -> Self:
        return super().__new__(cls, fields)


class Member(NamedTuple):
    """One good record and where its gzip member lies in the file."""

    offset: int
    length: int
    fields: Fields  # or what the native reader has in their place
    block: bytes
    shared: bool = False  # other records lie in the same gzip member: a reader that goes there finds the first one

    @property
    def end(self) -> int:
        """First byte after the member."""
        return self.offset + self.length

    @property
    def is_large(self) -> bool:
        """Whether ``block`` is no more than the beginning of the record's."""
        return isinstance(self.fields, LargeFields)

    @property
    def kind(self) -> str:
        """The WARC-Type."""
        return self.fields.first("warc-type")

    @property
    def url(self) -> str:
        """The address that was asked; wget writes it between angle brackets, as WARC 1.0 had it."""
        return self.field("warc-target-uri").strip("<>")

    def field(self, name: str) -> str:
        """The first value of a field, "" without one; ``name`` in lower case."""
        return self.fields.first(name)

    def all(self, name: str) -> list[str]:
        """Every value of a field that may repeat."""
        return self.fields.all(name)

    @property
    def is_http(self) -> bool:
        """Whether the block is an HTTP message."""
        return self.field("content-type").startswith("application/http")

    @property
    def head(self) -> bytes:
        """The head of an HTTP message with its blank line, lines ending with CRLF as those of ours do."""
        head = self.block[: self.head_bytes]
        return _BARE_LF.sub(b"\r\n", head) if head.count(b"\n") != head.count(b"\r\n") else head

    @property
    def payload(self) -> bytes:
        """The block after its HTTP head when it is an HTTP message, the whole block otherwise."""
        return self.block[self.head_bytes :] if self.is_http else self.block

    @property
    def body(self) -> bytes:
        """The payload without transfer coding, which others store as it was sent, or take off and leave in the head."""
        return unchunked(self.payload) if self.is_http and _CHUNKED.search(self.head) else self.payload

    @property
    def head_bytes(self) -> int:
        """How long the head of an HTTP message is."""
        end = _BLANK_LINE.search(self.block)
        return end.end() if end is not None else len(self.block)


def is_ours(first: Member | Flaw | None) -> bool:
    """Whether a file that begins with this record was written by this project."""
    return isinstance(first, Member) and first.kind == "warcinfo" and _OUR_SOFTWARE in first.block


def unchunked(payload: bytes) -> bytes:
    """What lies in the chunks of a payload, which may break off; the payload itself where it is not in chunks."""
    parts, position = [], 0
    while position < len(payload):
        size = _CHUNK_SIZE.match(payload, position)
        if size is None:
            return payload
        start, length = size.end(), int(size[1], 16)
        if not length:
            break
        parts.append(payload[start : start + length])
        position = start + length
        if position < len(payload):
            if not payload.startswith((b"\r\n", b"\n"), position):
                return payload
            position += 2 if payload[position] == 13 else 1
    return b"".join(parts)


class Flaw(NamedTuple):
    """Where a file stops being good, and in what way."""

    offset: int
    what: str
    plain: bool = False  # it is not gzip


Cut = Callable[[bytes, int, int], Iterator["Member | Flaw"] | None]
"""The records in what a whole gzip member holds, of its place and its length; None: this file is not to have such."""


class Readable(Protocol):
    """What is read of a file."""

    def read(self, size: int, /) -> bytes: ...

    def tell(self) -> int: ...


def walk(
    chunks: Iterable[bytes], start: int = 0, max_bytes: int = MAX_RECORD_BYTES, cut: Cut | None = None
) -> Iterator[Member | Flaw]:
    """Every good member of a file whose bytes from ``start`` on come in ``chunks``; a Flaw, if any, comes last.

    ``cut`` is asked about each whole member that is not one record of our shape.
    """
    packed = _Packed(chunks, start, max_bytes)
    while packed.more():
        offset = packed.offset
        plain, held = packed.plain()
        if plain:
            yield from plain
            continue
        record = packed.next() if held is None else held
        if isinstance(record, Flaw):
            yield record
            return
        length, others = packed.offset - offset, None
        if isinstance(record, LargeRecord):
            member = record.member(offset, length)
        else:
            member = _member(record, offset, length)
            others = None if cut is None or isinstance(member, Member) else cut(record, offset, length)
        for found in (member,) if others is None else others:
            yield found
            if isinstance(found, Flaw):
                return


def whole_length(members: Iterable[Member | Flaw]) -> int:
    """End of the last whole capture (or of the warcinfo): what a damaged file of ours may be cut to."""
    end = 0
    for member in members:
        if isinstance(member, Member) and member.kind in _WHOLE_AFTER:
            end = member.end
    return end


def wrong_digest(member: Member) -> str:
    """The name of the sha1 digest field that does not hold; "" when all hold or none can be checked."""
    if isinstance(member.fields, LargeFields):
        return member.fields.wrong_digest
    reader = native.reader
    if reader is not None and reader.holds(member.fields, member.block):
        return ""
    if not holds(member.field("warc-block-digest"), member.block):
        return "WARC-Block-Digest"
    stated = member.field("warc-payload-digest")
    if not stated or member.kind == "revisit":
        return ""
    start = member.head_bytes if member.is_http else 0
    if holds(stated, memoryview(member.block)[start:]):
        return ""
    # Writers that store a chunked body as it was sent disagree on what its payload is; we store none.
    return "" if start and _CHUNKED.search(member.block, 0, start) else "WARC-Payload-Digest"


class _Packed:
    """The gzip members of a file, inflated one after the other."""

    def __init__(self, chunks: Iterable[bytes], offset: int, max_bytes: int) -> None:
        self.offset = offset  # in the file, of the next member
        self._source = iter(chunks)
        self._chunk, self._at = b"", 0
        self._max_bytes = max_bytes
        self._reader = native.reader

    def more(self) -> bool:
        """Whether the file goes on."""
        if self._at == len(self._chunk):
            self._chunk, self._at = next(self._source, b""), 0
        return bool(self._chunk)

    def plain(self) -> tuple[list[Member], bytes | None]:
        """Plain records that follow, or all that the next member holds; neither: ``next`` has to inflate it."""
        if self._reader is None:
            return [], None
        found = self._reader.members(self._chunk, self._at, self._max_bytes, self.offset, Member)
        if found[0] == self._at and len(self._chunk) - self._at < CHUNK_BYTES and (more := next(self._source, b"")):
            self._chunk, self._at = self._chunk[self._at :] + more, 0
            found = self._reader.members(self._chunk, 0, self._max_bytes, self.offset, Member)
        end, records, held = found
        self.offset += end - self._at
        self._at = end
        return records, held

    def next(self) -> bytes | LargeRecord | Flaw:
        """What the next member holds, or what is wrong with it."""
        while len(self._chunk) - self._at <= _FLAGS and (more := next(self._source, b"")):
            self._chunk, self._at = self._chunk[self._at :] + more, 0
        head = self._chunk[self._at : self._at + len(_PLAIN)]
        if not head.startswith(_MARK):
            what = "not compressed" if head == _PLAIN else "bad gzip member (it does not begin as one)"
            return Flaw(self.offset, what, plain=True)
        if head[_FLAGS : _FLAGS + 1] > _LARGEST_FLAGS:  # isal lets them pass, zlib and gzip do not
            return Flaw(self.offset, "bad gzip member (reserved flags)")
        try:
            return self._inflated()
        except _BAD_GZIP as problem:
            return Flaw(self.offset, f"bad gzip member ({problem})")

    def _inflated(self) -> bytes | LargeRecord | Flaw:
        inflater, large = isal_zlib.decompressobj(_GZIP), None
        parts, taken, inflated_bytes, window_bytes = list[bytes](), 0, 0, _WINDOW_BYTES
        while True:
            window = memoryview(self._chunk)[self._at : self._at + window_bytes]
            window_bytes = CHUNK_BYTES
            part = inflater.decompress(window)
            inflated_bytes += len(part)
            if large is not None:
                large.take(part)
            else:
                parts.append(part)
                if inflated_bytes > CHUNK_BYTES >= inflated_bytes - len(part):
                    large = LargeRecord.of(b"".join(parts), self._max_bytes)
            used = len(window) - len(inflater.unused_data) if inflater.eof else len(window)
            self._at += used
            taken += used
            if inflated_bytes > (self._max_bytes if large is None else _LARGEST_BYTES):
                return Flaw(self.offset, f"record of more than {self._max_bytes} bytes")
            if inflater.eof:
                self.offset += taken
                return b"".join(parts) if large is None else large
            if not self.more():
                return Flaw(self.offset, "torn gzip member")


def _member(record: bytes, offset: int, length: int) -> Member | Flaw:
    reader = native.reader
    plain = None if reader is None else reader.record(record)
    return judged(record, offset, length) if plain is None else Member(offset, length, *plain)


def judged(record: bytes, offset: int, length: int) -> Member | Flaw:
    """The record of a member, or what is wrong with it; in Python, which the native reader must agree with."""
    head, end, rest = record.partition(_END)
    if not end or not head.startswith(_PLAIN):
        return Flaw(offset, "no WARC header")
    fields = _fields_of(head)
    stated = fields.first("content-length")
    if not (stated.isascii() and stated.isdigit()):
        return Flaw(offset, "no Content-Length")
    if rest[int(stated) + len(_END) :].startswith(_PLAIN):
        return Flaw(offset, "several records in one gzip member; each needs one of its own")
    if len(rest) != int(stated) + len(_END) or not rest.endswith(_END):
        return Flaw(offset, f"record of {len(rest)} bytes where {stated} and two line breaks were due")
    return Member(offset, length, fields, rest[: -len(_END)])


def _fields_of(head: bytes) -> Fields:
    lines = [line.partition(":") for line in head.decode("utf-8", "replace").split("\r\n")[1:]]
    return Fields([(name.strip().lower(), value.strip()) for name, _, value in lines])


class LargeRecord:
    """A record that comes in parts: its beginning is kept, its digests are made as it comes."""

    def __init__(self, fields: Fields, block_bytes: int) -> None:
        self._fields, self._due = fields, block_bytes
        self._kept, self._after, self._came = bytearray(), b"", 0
        self._block, self._payload = (sha1(usedforsecurity=False) for _ in range(2))
        self._payload_at: int | None = None if fields.first("content-type").startswith("application/http") else 0

    @classmethod
    def of(cls, beginning: bytes, max_bytes: int) -> LargeRecord | None:
        """The record that begins so, if it says that with its head it is larger than ``max_bytes``."""
        head, end, rest = beginning.partition(_END)
        if not end or not head.startswith(_PLAIN):
            return None
        fields = _fields_of(head)
        stated = fields.first("content-length")
        if not (stated.isascii() and stated.isdigit()) or len(stated) > MAX_LENGTH_DIGITS:
            return None
        if len(head) + int(stated) + 2 * len(_END) <= max_bytes:
            return None
        record = cls(fields, int(stated))
        record.take(rest)
        return record

    def take(self, part: bytes) -> None:
        """The next of it."""
        block, after = part[: self._due - self._came], part[self._due - self._came :]
        self._after = (self._after + after)[: len(_END) + 1]
        self._block.update(block)
        if self._payload_at is None:  # the head of an HTTP message is within the first part
            found = _BLANK_LINE.search(block)
            self._payload_at = found.end() if found is not None else len(block)
            self._payload.update(memoryview(block)[self._payload_at :])
        else:
            self._payload.update(block)
        self._kept += block[: LARGE_KEPT_BYTES - len(self._kept)]
        self._came += len(block)

    def member(self, offset: int, length: int) -> Member | Flaw:
        """It as a whole, or what is wrong with it."""
        if self._came != self._due or self._after != _END:
            came = self._came + len(self._after)
            return Flaw(offset, f"record of {came} bytes where {self._due} and two line breaks were due")
        fields, wrong, digest = self._fields, "", self._payload.digest()
        stated = fields.first("warc-payload-digest")
        chunked = self._payload_at and _CHUNKED.search(self._kept, 0, self._payload_at)
        if not states(fields.first("warc-block-digest"), self._block.digest()):
            wrong = "WARC-Block-Digest"
        elif fields.first("warc-type") != "revisit" and not chunked and not states(stated, digest):
            wrong = "WARC-Payload-Digest"
        if not stated:  # who wants to know it has no more than the beginning
            fields = Fields((*fields, ("warc-payload-digest", f"sha1:{digest_text(digest)}")))
        return Member(offset, length, LargeFields(fields, wrong), bytes(self._kept))


def records_in(data: bytes, offset: int, length: int) -> Iterator[Member | Flaw]:
    """All records of one gzip member, which lies at ``offset`` and holds ``data``; a Flaw, if any, comes last.

    Several have its place in common and are ``shared``.
    """
    found = list(plain_records(BytesIO(data)))
    shared = len(found) > 1
    for record in found:
        if isinstance(record, Flaw):
            yield Flaw(offset, record.what)
        else:
            yield record._replace(offset=offset, length=length, shared=shared)


def plain_records(file: Readable) -> Iterator[Member | Flaw]:
    """All records of what is not compressed, from where ``file`` stands; a Flaw, if any, comes last."""
    from warcio.archiveiterator import ArchiveIterator  # few archives are of such shapes

    class Records(ArchiveIterator):  # type: ignore[misc]  # warcio has no types
        INC_RECORD = ""  # it would print what stands between records, and goes on behind it

    start, found = file.tell(), None
    source = Records(file, no_record_parse=True)
    try:
        for record in source:
            found = _foreign_member(source, record)
            yield found
            if isinstance(found, Flaw):
                return
    # It raises what parsing raises: its own ArchiveLoadFailed, and of odd lines ValueError, IndexError and others.
    except Exception:
        yield Flaw(source.offset, _NO_RECORD)
        return
    if found is None and file.tell() > start:  # it takes a word without a line's end for the end
        yield Flaw(start, _NO_RECORD)


def _foreign_member(source: ArchiveIterator, record: Any) -> Member | Flaw:
    offset = source.offset
    if record.length is None or record.length > _LARGEST_BYTES:
        return Flaw(offset, "no Content-Length" if record.length is None else f"record of {record.length} bytes")
    if record.format == "arc":
        fields = _of_arc(record, offset)
    elif record.rec_type and record.rec_headers.get_header("Content-Length", "").strip().isdigit():
        fields = Fields((name.lower(), value) for name, value in record.rec_headers.headers)
    else:
        fields = None
    if fields is None:
        return Flaw(offset, _NO_RECORD)
    if record.length > MAX_RECORD_BYTES:
        large = LargeRecord(fields, record.length)
        while part := record.raw_stream.read(CHUNK_BYTES):
            large.take(part)
        large.take(_END)
        found = large.member(offset, 0)
        return found if isinstance(found, Flaw) else found._replace(length=source.get_record_length())
    parts = []
    while part := record.raw_stream.read(MAX_RECORD_BYTES):
        parts.append(part)
    block = b"".join(parts)
    if len(block) != record.length:
        return Flaw(offset, f"torn record: {len(block)} bytes of {record.length}")
    return Member(offset, source.get_record_length(), fields, block)


def _of_arc(record: Any, offset: int) -> Fields | None:
    """The WARC fields of an ARC record, as ``warcio recompress`` writes them; its record id is the same each time."""
    url, ip, date, media_type, length = (value for _, value in record.rec_headers.headers)
    moment = _ARC_DATE.fullmatch(date)
    if moment is None or ":" not in url or not length.strip().isdigit():
        return None  # five words of some text
    kind = "resource"
    if record.rec_type == "arc_header":
        kind = "warcinfo"
    elif url.startswith(("http:", "https:")):
        kind, media_type = "response", "application/http; msgtype=response"
    year, month, day, hour, minute, second = moment.groups()
    fields = [
        ("warc-type", kind),
        ("warc-record-id", f"<{uuid5(NAMESPACE_URL, f'{url} {date} {offset}').urn}>"),
        ("warc-date", f"{year}-{month}-{day}T{hour}:{minute}:{second}Z"),
        ("warc-filename" if kind == "warcinfo" else "warc-target-uri", url.removeprefix("filedesc://")),
        ("content-type", media_type),
        ("content-length", str(record.length)),
    ]
    return Fields(fields if ip == _NO_ADDRESS else [*fields, ("warc-ip-address", ip)])
