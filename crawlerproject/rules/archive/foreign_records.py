"""Records in shapes that others write and we do not, cut by warcio.

Files without compression, several records in one gzip member, records whose last line breaks are missing, WARC before
1.0, ARC 1. What has the shape of our own files, whoever wrote it, is read without (``warc_members.walk``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any, Protocol
from uuid import NAMESPACE_URL, uuid5

from crawlerproject.rules.archive.warc_members import MAX_RECORD_BYTES, Flaw, Member

if TYPE_CHECKING:
    from warcio.archiveiterator import ArchiveIterator

_NO_RECORD = "no WARC or ARC record"
_ARC_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)")
_NO_ADDRESS = "0.0.0.0"

Fields = tuple[tuple[str, str], ...]


class Readable(Protocol):
    """What is read of a file."""

    def read(self, size: int, /) -> bytes: ...

    def tell(self) -> int: ...


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
            found = _member(source, record)
            yield found
            if isinstance(found, Flaw):
                return
    # It raises what parsing raises: its own ArchiveLoadFailed, and of odd lines ValueError, IndexError and others.
    except Exception:
        yield Flaw(source.offset, _NO_RECORD)
        return
    if found is None and file.tell() > start:  # it takes a word without a line's end for the end
        yield Flaw(start, _NO_RECORD)


def _member(source: ArchiveIterator, record: Any) -> Member | Flaw:
    offset = source.offset
    if record.length is None or record.length > MAX_RECORD_BYTES:
        return Flaw(offset, "no Content-Length" if record.length is None else f"record of {record.length} bytes")
    fields = _of_arc(record, offset) if record.format == "arc" else _of_warc(record)
    if fields is None:
        return Flaw(offset, _NO_RECORD)
    parts = []
    while part := record.raw_stream.read(MAX_RECORD_BYTES):
        parts.append(part)
    block = b"".join(parts)
    if len(block) != record.length:
        return Flaw(offset, f"torn record: {len(block)} bytes of {record.length}")
    return Member(offset, source.get_record_length(), fields, block)


def _of_warc(record: Any) -> Fields | None:
    fields = tuple((name.lower(), value) for name, value in record.rec_headers.headers)
    return fields if record.rec_type and record.rec_headers.get_header("Content-Length", "").strip().isdigit() else None


def _of_arc(record: Any, offset: int) -> Fields | None:
    """As ``warcio recompress`` turns ARC into WARC, with a record id that is the same each time."""
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
    return tuple(fields if ip == _NO_ADDRESS else [*fields, ("warc-ip-address", ip)])
