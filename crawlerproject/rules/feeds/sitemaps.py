"""Decides what a sitemap lists (sitemaps.org 0.9): index files, gzip, plain text, RSS and Atom in its place.

A site may speak for itself only: addresses of other hosts count where the protocol allows them, that is for hosts
whose own robots.txt names the sitemap ("cross submits"). Everything is bounded: bytes after decompression, entries,
and by the crawl the depth of indexes and the number of files.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from crawlerproject.rules.feeds.xml_entries import MAX_TEXT, EntriesReader, Entry

MAX_ENTRIES = 50_000
"""Of one file, by the protocol."""
MAX_BYTES = 50 * 1024 * 1024
"""Of one file once decompressed, by the protocol."""
MAX_INDEX_DEPTH = 2
"""Indexes within an index: the protocol allows none; one more is seen in practice."""

_PIECE_BYTES = 65_536
_GZIP = b"\x1f\x8b"
_FEEDS = frozenset({"rss", "feed", "RDF"})


@dataclass(slots=True)
class Sitemap:
    """What one file lists."""

    kind: str = ""  # "urlset", "sitemapindex", "rss", "feed", "RDF", "text"; "" when it is none of them
    entries: list[Entry] = field(default_factory=list)
    flaw: str = ""  # why it was not read to its end; empty when it was

    @property
    def index(self) -> bool:
        """Whether it lists sitemaps, not pages."""
        return self.kind == "sitemapindex"


def read_sitemap(body: bytes) -> Sitemap:
    """The entries of a sitemap as fetched (Content-Encoding undone). Never raises for what the body holds."""
    pieces = _Pieces(body)
    first = pieces.peek()
    if _is_text(first):
        sitemap = _read_text(pieces)
    else:
        sitemap = _read_xml(pieces)
    sitemap.flaw = pieces.flaw or sitemap.flaw
    return sitemap


def may_list(entry_host: str, sitemap_host: str, declared_by: str) -> bool:
    """Whether a sitemap at ``sitemap_host``, named in the robots.txt of ``declared_by``, may speak for a host.

    Host keys. A sitemap that no robots.txt names (``declared_by`` empty) speaks for its own host only.
    """
    return entry_host == (declared_by or sitemap_host)


class _Pieces:
    """The document, decompressed a piece at a time and cut at the bound."""

    def __init__(self, body: bytes) -> None:
        self.flaw = ""
        self._source = self._inflated(body) if body.startswith(_GZIP) else self._plain(body)
        self._ahead: list[bytes] = []

    def peek(self) -> bytes:
        piece = next(self._source, b"")
        self._ahead = [piece] if piece else []
        return piece

    def __iter__(self) -> Iterator[bytes]:
        yield from self._ahead
        yield from self._source

    def _plain(self, body: bytes) -> Iterator[bytes]:
        if len(body) > MAX_BYTES:
            self.flaw = f"larger than {MAX_BYTES >> 20} MB"
        view = memoryview(body)[:MAX_BYTES]
        for at in range(0, len(view), _PIECE_BYTES):
            yield bytes(view[at : at + _PIECE_BYTES])

    def _inflated(self, body: bytes) -> Iterator[bytes]:
        inflater = zlib.decompressobj(31)
        total = at = 0
        waiting = b""
        while not inflater.eof:
            if not waiting:  # a little at a time: what is not used yet is copied with each piece
                waiting, at = body[at : at + _PIECE_BYTES], at + _PIECE_BYTES
            try:
                piece = inflater.decompress(waiting, _PIECE_BYTES)
            except zlib.error as error:
                self.flaw = f"broken gzip: {error}"
                return
            waiting = inflater.unconsumed_tail
            if not piece and not waiting and at >= len(body) and not inflater.eof:
                self.flaw = "gzip that ends early"
                return
            total += len(piece)
            if total > MAX_BYTES:
                self.flaw = f"larger than {MAX_BYTES >> 20} MB once decompressed"
                return
            yield piece


def _is_text(first: bytes) -> bool:
    start = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:8].lower().startswith((b"http://", b"https://"))


def _read_text(pieces: _Pieces) -> Sitemap:
    sitemap = Sitemap("text")
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).splitlines(keepends=True) or [b""]
        if rest.endswith((b"\n", b"\r")):
            lines.append(rest)
            rest = b""
        if not _take_lines(sitemap, lines) or len(rest) > MAX_TEXT:
            return sitemap
    _take_lines(sitemap, [rest])
    return sitemap


def _take_lines(sitemap: Sitemap, lines: list[bytes]) -> bool:
    for line in lines:
        text = line.decode("utf-8-sig", "replace").strip()
        if not text.lower().startswith(("http://", "https://")) or len(text) > MAX_TEXT:
            continue
        if len(sitemap.entries) == MAX_ENTRIES:
            sitemap.flaw = f"more than {MAX_ENTRIES:,} entries"
            return False
        sitemap.entries.append(Entry(text))
    return True


def _read_xml(pieces: _Pieces) -> Sitemap:
    reader = EntriesReader()
    sitemap = Sitemap()
    for entry in reader.read(pieces):
        if len(sitemap.entries) == MAX_ENTRIES:
            sitemap.flaw = f"more than {MAX_ENTRIES:,} entries"
            break
        sitemap.entries.append(entry)
    if reader.kind in ("urlset", "sitemapindex") or reader.kind in _FEEDS:
        sitemap.kind = reader.kind
        # An index lists sitemaps, a list of pages pages; what says otherwise inside is not believed.
        sitemap.entries = [entry for entry in sitemap.entries if entry.is_index == (reader.kind == "sitemapindex")]
        sitemap.flaw = sitemap.flaw or reader.flaw
    else:
        sitemap.entries = []
        sitemap.flaw = reader.flaw or f"not a sitemap but <{reader.kind[:40]}>"
    return sitemap
