"""Archive files of other programs, record by record, as warcio reads them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import redirect_stderr
from hashlib import sha1
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from benchmarks.conformance.suite import Case, Suite
from crawlerproject.fetch.decoding import decode
from crawlerproject.rules.archive.http_messages import content_encoding
from crawlerproject.rules.archive.warc_members import Flaw
from crawlerproject.stores.archive.warc_reader import members

Record = tuple[str, str, str]
"""WARC-Type, address, sha1 of the payload without codings."""
_SUFFIXES = (".warc", ".arc", ".gz", ".bad")
_ENOUGH_BYTES = 1 << 26


def _cases(sources: Path) -> Iterator[Case]:
    for path in sorted(path for path in sources.rglob("*arc*") if path.name.endswith(_SUFFIXES) and path.is_file()):
        if ".warc" in path.name or ".arc" in path.name:
            yield Case(path.name, _ours(path), _theirs(path))


def _ours(path: Path) -> list[Record] | str:
    found: list[Record] = []
    for member in members(path):
        if isinstance(member, Flaw):
            return f"damaged after {len(found)} records"
        body = member.body
        if member.is_http and member.kind in ("response", "revisit"):
            body = decode(body, content_encoding(member.head), _ENOUGH_BYTES).body
        found.append((member.kind, member.url, sha1(body, usedforsecurity=False).hexdigest()))
    return found


def _theirs(path: Path) -> list[Record] | str:
    """Of a file whose gzip members hold several records what stands in it unpacked: warcio asks for that."""
    with redirect_stderr(io.StringIO()):  # it prints what it passes over
        try:
            return _records(io.BytesIO(path.read_bytes()))
        except ArchiveLoadFailed:
            return _records(io.BytesIO(gzip.decompress(path.read_bytes())))


def _records(file: io.BytesIO) -> list[Record] | str:
    found: list[Record] = []
    for record in ArchiveIterator(file, arc2warc=True):
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        digest = sha1(record.content_stream().read(), usedforsecurity=False).hexdigest()
        found.append((record.rec_type, url, digest))
    return found


SUITES = (
    Suite(
        "archives of other programs",
        "the samples of pywb 2.10.0",
        _cases,
        {"bad.arc": "records whose length is no number are damage; warcio takes them for empty ones"},
    ),
)
