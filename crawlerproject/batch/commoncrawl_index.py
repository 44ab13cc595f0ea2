"""Captures that an index of others names: Common Crawl's columnar index (Parquet) or CDXJ, with filters.

``Distant`` reads that index, and records, from a folder or a server.
"""

from __future__ import annotations

import gzip
import io
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.index_rows import REVISIT_MIME, sha1_of
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.urls import Address, UrlRefused, parse
from crawlerproject.stores.uploads.distant import SpanFile

_COLUMNS = {
    "url": "url",
    "fetch_time": "fetch_time",
    "fetch_status": "status",
    "content_digest": "digest",
    "warc_filename": "filename",
    "warc_record_offset": "offset",
    "warc_record_length": "length",
}
_KINDS = (".parquet", ".cdxj", ".cdxj.gz", ".cdx.gz")  # of a folder
# Lines that say of what form the others are: OpenWayback's, and the index of compressed blocks.
_HEADERS = (b"!", b" CDX")
# Of a file that is read from one end to the other: one request to its server for so much.
_AHEAD_BYTES = 8 * 1024 * 1024
# Of one line: an address of 2,000 characters and its fields need 3,000.
_MAX_LINE_BYTES = 64 * 1024
_TIMEOUT_SECONDS = 60.0
# A server that answers so is busy: it is left alone, longer each time.
_TRIES = 6
_REST_SECONDS = 2.0
_BUSY = (429, 500, 502, 503, 504)
# Parquet's footer and column chunks are read in pieces of at least this much.
_BLOCK_BYTES = 256 * 1024


class ForeignCapture(NamedTuple):
    """One capture of another's archive."""

    address: Address
    fetched_at: float  # epoch seconds
    status: int
    digest: bytes  # sha1 of the payload as they store it; empty when unknown
    filename: str
    offset: int
    length: int  # 0: not given
    revisit: bool = False  # its record has no body, that of another capture stands for it


@dataclass(frozen=True, slots=True)
class Filter:
    """What is taken; empty or None takes everything."""

    domains: frozenset[str] = frozenset()  # registered domains, or hosts
    prefixes: tuple[str, ...] = ()
    languages: frozenset[str] = frozenset()  # as the index writes them (ISO 639-3)
    status: int | None = 200
    since: float | None = None  # epoch seconds
    until: float | None = None

    def takes(self, capture: ForeignCapture, languages: str) -> bool:
        """Whether a capture passes."""
        host = capture.address.host
        if self.domains and host not in self.domains and registered_domain(host) not in self.domains:
            return False
        if self.prefixes and not capture.address.url.startswith(self.prefixes):
            return False
        if self.languages and self.languages.isdisjoint(languages.split(",")):
            return False
        if self.status is not None and capture.status != self.status:
            return False
        return not (self.since and capture.fetched_at < self.since) and not (
            self.until and capture.fetched_at >= self.until
        )


def read_captures(source: str, distant: Distant, wanted: Filter) -> Iterator[ForeignCapture]:
    """The captures that a file, a folder, an HTTP address or a list of paths (``.paths``, ``.paths.gz``) names.

    Raises OperatorError for what is no such index; single lines that cannot be read are left out.
    """
    if "://" not in source and Path(source).is_dir():
        files = sorted(path for path in Path(source).rglob("*") if path.name.endswith(_KINDS))
        if not files:
            raise OperatorError(f"{source} holds no index: no .parquet and no .cdxj file.")
        for path in files:
            yield from read_captures(str(path), distant, wanted)
    elif source.endswith((".paths", ".paths.gz")):
        for line in _lines_of(source, distant):
            yield from read_captures(line.decode("utf-8", "replace").strip(), distant, wanted)
    elif source.endswith(".parquet"):
        yield from _columnar(source, distant, wanted)
    else:
        yield from _lines(source, distant, wanted)


def _columnar(source: str, distant: Distant, wanted: Filter) -> Iterator[ForeignCapture]:
    opened: Any = buffered(distant, source) if "://" in source or "://" in distant.base else source
    try:
        file = pq.ParquetFile(opened)
    except (pa.ArrowInvalid, FileNotFoundError) as error:
        raise OperatorError(f"{source} is no Parquet file ({str(error)[:100]}).") from error
    names = set(file.schema_arrow.names)
    if missing := sorted(set(_COLUMNS) - names):
        raise OperatorError(f"{source} is of an unknown schema: it has no column {', '.join(missing)}.")
    columns = [*_COLUMNS, *(name for name in ("content_languages", "content_mime_type") if name in names)]
    for batch in file.iter_batches(columns=columns):
        if wanted.status is not None:  # before rows become objects
            batch = batch.filter(pc.equal(batch["fetch_status"], wanted.status))
        for row in batch.to_pylist():
            moment = row["fetch_time"]
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            fields = {new: row[old] for old, new in _COLUMNS.items()} | {"mime": row.get("content_mime_type")}
            made = _capture(fields, moment.timestamp())
            if made is not None and wanted.takes(made, row.get("content_languages") or ""):
                yield made


def _lines(source: str, distant: Distant, wanted: Filter) -> Iterator[ForeignCapture]:
    good, bad, unknown = 0, 0, " is of an unknown schema: its lines are not those of a CDXJ index."
    for line in _lines_of(source, distant):
        if line.startswith(_HEADERS):
            continue
        start = line.find(b"{")
        words = line[: max(start, 0)].split()
        try:
            fields = orjson.loads(line[start:])
            moment = datetime.strptime(words[-1].decode(), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
            made = _capture(fields, moment.timestamp())
        except (ValueError, IndexError, TypeError):
            made = None
        if made is None:
            bad += 1
            if bad > 10 and not good:
                raise OperatorError(f"{source}{unknown}")
            continue
        good += 1
        if wanted.takes(made, fields.get("languages") or ""):
            yield made
    if bad and not good:
        raise OperatorError(f"{source}{unknown}")


def _capture(fields: dict[str, Any], fetched_at: float) -> ForeignCapture | None:
    try:
        address = parse(fields["url"])
        return ForeignCapture(
            address,
            fetched_at,
            _number(fields.get("status")),  # what is no HTTP has none
            sha1_of(fields.get("digest")),
            str(fields["filename"]),
            int(fields["offset"]),
            _number(fields.get("length")),
            fields.get("mime") == REVISIT_MIME,
        )
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError, UrlRefused):
        return None


def _number(value: Any) -> int:
    """A number of an index; 0 for none, which some write as ``-``."""
    return 0 if value in (None, "", "-") else int(value)


def _lines_of(source: str, distant: Distant) -> Iterator[bytes]:
    """A text file's lines, unpacked as they are needed: a file of Common Crawl's CDXJ is some 6 GB of text."""
    raw = buffered(distant, source, _AHEAD_BYTES)
    lines: Any = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
    try:
        while line := lines.readline(_MAX_LINE_BYTES):
            yield line
    except (OSError, EOFError, zlib.error) as error:
        raise OperatorError(f"{source} is broken gzip ({error}).") from error


@dataclass(slots=True)
class Distant:
    """One place of files: a folder or an HTTP address, with a pause between requests to the latter."""

    base: str
    user_agent: str
    pause_seconds: float
    sleep: Callable[[float], None] = time.sleep
    requests: int = 0

    def read(self, name: str, offset: int | None = None, length: int = 0) -> bytes:
        """A whole file, or a span of it. Raises OperatorError when it cannot be had."""
        place = _joined(self.base, name)
        if "://" not in place:
            try:
                with open(place, "rb") as file:
                    file.seek(offset or 0)
                    return file.read(-1 if offset is None else length)
            except OSError as error:
                raise OperatorError(f"{place} cannot be read ({error.strerror}).") from error
        headers = {"User-Agent": self.user_agent, "Accept-Encoding": "identity"}
        if offset is not None:
            headers["Range"] = f"bytes={offset}-{offset + length - 1}"
        body = self._asked(urllib.request.Request(place, headers=headers))
        return body[offset : offset + length] if offset is not None and len(body) > length else body

    def size(self, name: str) -> int:
        """Bytes of a file."""
        place = _joined(self.base, name)
        if "://" not in place:
            try:
                return Path(place).stat().st_size
            except OSError as error:
                raise OperatorError(f"{place} cannot be read ({error.strerror}).") from error
        request = urllib.request.Request(place, headers={"User-Agent": self.user_agent}, method="HEAD")
        self._rest()
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                return int(answer.headers["Content-Length"])
        except (OSError, TypeError, ValueError) as error:
            raise OperatorError(f"{place} cannot be read: {error}.") from error

    def _asked(self, request: urllib.request.Request) -> bytes:
        for attempt in range(_TRIES):
            self._rest()
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                    body: bytes = answer.read()
                    return body
            except urllib.error.HTTPError as error:
                if error.code not in _BUSY or attempt + 1 == _TRIES:
                    raise OperatorError(f"{request.full_url} answers {error.code} {error.reason}.") from error
                asked = error.headers.get("Retry-After", "")
                self.sleep(float(asked) if asked.isdigit() else _REST_SECONDS * 2**attempt)
            except OSError as error:
                if attempt + 1 == _TRIES:
                    raise OperatorError(f"{request.full_url} cannot be reached: {error}.") from error
                self.sleep(_REST_SECONDS * 2**attempt)
        raise AssertionError("unreachable")

    def _rest(self) -> None:
        if self.requests:
            self.sleep(self.pause_seconds)
        self.requests += 1


def buffered(distant: Distant, name: str, block_bytes: int = _BLOCK_BYTES) -> io.BufferedReader:
    """A file as pyarrow reads one: the spans that are wanted are fetched, a little more at a time unless asked."""
    spans = SpanFile(distant.size(name), lambda start, end: distant.read(name, start, end - start))
    return io.BufferedReader(spans, block_bytes)


def _joined(base: str, name: str) -> str:
    if "://" in name or not base or name.startswith("/"):
        return name
    return f"{base.rstrip('/')}/{name}"
