"""Decides what a sitemap lists (sitemaps.org 0.9): index files, gzip, plain text, RSS and Atom in its place.

A site may speak for itself only: addresses of other hosts count where the protocol allows them, that is for hosts
whose own robots.txt names the sitemap ("cross submits"). Everything is bounded: bytes after decompression, entries,
and by the crawl the depth of indexes and the number of files.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from crawlerproject.rules.feeds.xml_entries import MAX_TEXT, EntriesReader, Entry
from crawlerproject.rules.feeds.xml_text import text_pieces

MAX_ENTRIES = 50_000
"""Of one file, by the protocol."""
MAX_BYTES = 50 * 1024 * 1024
"""Of one file once decompressed, by the protocol."""
MAX_INDEX_DEPTH = 2
"""Indexes within an index: the protocol allows none; one more is seen in practice."""

_PIECE_BYTES = 65_536
_GZIP_BYTES = 8192  # of input at a time: what is left over is copied with each piece, and with each member
_GZIP = b"\x1f\x8b"
_FEEDS = frozenset({"rss", "feed", "RDF"})
_LINE_END = re.compile(r"[\r\n]")


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


def read_sitemap(body: bytes, content_type: str | None = None, url: str = "") -> Sitemap:
    """The entries of a sitemap at ``url``, its Content-Encoding undone. Never raises for what the body holds."""
    pieces = _Pieces(body)
    text = text_pieces(pieces, content_type)
    first = next(text, "")
    read = _read_text if _is_text(first) else _read_xml
    sitemap = read(chain([first], text), url)
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
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield from self._inflated(self._body) if self._body.startswith(_GZIP) else self._plain(self._body)

    def _plain(self, body: bytes) -> Iterator[bytes]:
        if len(body) > MAX_BYTES:
            self.flaw = f"larger than {MAX_BYTES >> 20} MB"
        view = memoryview(body)[:MAX_BYTES]
        for at in range(0, len(view), _PIECE_BYTES):
            yield bytes(view[at : at + _PIECE_BYTES])

    def _inflated(self, body: bytes) -> Iterator[bytes]:
        """One member after the other (RFC 1952 2.2); what follows the last is padding."""
        inflater = zlib.decompressobj(31)
        total = at = 0
        waiting = b""
        while True:
            if not waiting:  # a little at a time: what is not used yet is copied with each piece
                waiting, at = body[at : at + _GZIP_BYTES], at + _GZIP_BYTES
            try:
                piece = inflater.decompress(waiting, _PIECE_BYTES)
            except zlib.error as error:
                self.flaw = f"broken gzip: {error}"
                return
            waiting = inflater.unconsumed_tail
            total += len(piece)
            if total > MAX_BYTES:
                self.flaw = f"larger than {MAX_BYTES >> 20} MB once decompressed"
                return
            if piece:
                yield piece
            if inflater.eof:
                waiting = inflater.unused_data
                if len(waiting) < len(_GZIP):
                    waiting, at = waiting + body[at : at + _GZIP_BYTES], at + _GZIP_BYTES
                if not waiting.startswith(_GZIP):
                    return
                inflater = zlib.decompressobj(31)
            elif not piece and not waiting and at >= len(body):
                self.flaw = "gzip that ends early"
                return


def _is_text(first: str) -> bool:
    return first.lstrip("\ufeff\t\n\r ")[:8].lower().startswith(("http://", "https://"))


def _read_text(pieces: Iterable[str], _: str) -> Sitemap:
    """A list with an address on each line (sitemaps.org, "Text file")."""
    sitemap = Sitemap("text")
    rest = ""
    for piece in pieces:
        *lines, rest = _LINE_END.split(rest + piece)
        if not _take_lines(sitemap, lines) or len(rest) > MAX_TEXT:
            return sitemap
    _take_lines(sitemap, [rest])
    return sitemap


def _take_lines(sitemap: Sitemap, lines: list[str]) -> bool:
    for line in lines:
        url = line.strip("\ufeff\t ")
        if not url.lower().startswith(("http://", "https://")) or len(url) > MAX_TEXT:
            continue
        if len(sitemap.entries) == MAX_ENTRIES:
            sitemap.flaw = f"more than {MAX_ENTRIES:,} entries"
            return False
        sitemap.entries.append(Entry(url))
    return True


def _read_xml(pieces: Iterable[str], url: str) -> Sitemap:
    reader = EntriesReader(url)
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
