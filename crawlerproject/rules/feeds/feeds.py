"""Decides what a list of addresses names: sitemaps (sitemaps.org 0.9) and feeds (RSS, Atom, JSON Feed, WebSub's hubs).

A sitemap may be an index of others, gzip, plain text, or a feed in its place. A site may speak for itself only:
addresses of other hosts count where the protocol allows them, that is for hosts whose own robots.txt names the sitemap
("cross submits"). Everything is bounded: bytes after decompression, entries, and by the crawl the depth of indexes and
the number of files.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from crawlerproject.rules.feeds.entry_dates import entry_date
from crawlerproject.rules.feeds.xml_entries import MAX_TEXT, EntriesReader, Entry
from crawlerproject.rules.web_encodings import UTF_8, charset_of, decode, mark_of, xml_encoding

MAX_SITEMAP_ENTRIES = 50_000
"""Of one file, by the protocol."""
MAX_SITEMAP_BYTES = 50 * 1024 * 1024
"""Of one file once decompressed, by the protocol."""
MAX_INDEX_DEPTH = 2
"""Indexes within an index: the protocol allows none; one more is seen in practice."""
MAX_FEED_ENTRIES = 1000
"""Of one feed: real ones have 10 to 50; a longer tail is old news."""
MAX_FEED_BYTES = 5 * 1024 * 1024
"""Of one feed."""
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"})

_XML_TYPES = frozenset({"text/xml", "application/xml", ""})
_JSON_TYPES = frozenset({"application/json", "application/feed+json"})
_JSON_MARK = b"https://jsonfeed.org/version/"
_FEEDS = frozenset({"rss", "feed", "RDF"})
_SNIFF_BYTES = 1024
# RFC 8288 3: commas and semicolons within <> and quotes belong to what stands there. What does not close ends with it.
_LINK = re.compile(r'<([^<>]*+)>((?:[^",<]++|"(?:[^"\\]|\\.)*+(?:"|\Z))*+)', re.DOTALL)
_LINK_PARAMETER = re.compile(r';\s*+([^\s;=",]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)|([^\s;",]++))', re.DOTALL)
_PIECE_BYTES = 65_536
_GZIP_BYTES = 8192  # of input at a time: what is left over is copied with each piece, and with each member
_GZIP = b"\x1f\x8b"
_LINE_END = re.compile(r"[\r\n]")
_UTF_16 = frozenset({"utf-16le", "utf-16be"})
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
# Where bytes may be cut in two: no octet of a longer character is a ">", but in ISO-2022-JP, which goes back to
# ASCII by this escape.
_CUTS = {"iso-2022-jp": b"\x1b(B"}


@dataclass(slots=True)
class Sitemap:
    """What one file lists."""

    kind: str = ""  # "urlset", "sitemapindex", "rss", "feed", "RDF", "text"; "" for any other document
    entries: list[Entry] = field(default_factory=list)
    flaw: str = ""  # why it was not read to its end; empty when it was

    @property
    def index(self) -> bool:
        """Whether it lists sitemaps, not pages."""
        return self.kind == "sitemapindex"


@dataclass(slots=True)
class Feed:
    """What one feed says."""

    kind: str = ""  # "rss", "feed" (Atom), "RDF", "json"; "" when it is no feed
    entries: list[Entry] = field(default_factory=list)
    hubs: list[str] = field(default_factory=list)  # as written
    self_url: str = ""  # as written: the topic to subscribe to
    flaw: str = ""


def read_sitemap(body: bytes, content_type: str | None = None, url: str = "") -> Sitemap:
    """The entries of a sitemap at ``url``, its Content-Encoding undone. Never raises for what the body holds."""
    pieces = _Pieces(body)
    text = text_pieces(pieces, content_type)
    first = next(text, "")
    is_text = first.lstrip("\ufeff\t\n\r ")[:8].lower().startswith(("http://", "https://"))
    read = _read_text if is_text else _read_xml
    sitemap = read(chain([first], text), url)
    sitemap.flaw = pieces.flaw or sitemap.flaw
    return sitemap


def may_list(entry_host: str, sitemap_host: str, declared_by: str) -> bool:
    """Whether a sitemap at ``sitemap_host``, named in the robots.txt of ``declared_by``, may speak for a host.

    Host keys. A sitemap that no robots.txt names (``declared_by`` empty) speaks for its own host only.
    """
    return entry_host == (declared_by or sitemap_host)


def is_feed(content_type: str, body: bytes) -> bool:
    """Whether to read the body as a feed: by its type and by how it starts, since HTML is served as RSS too."""
    media_type = content_type.partition(";")[0].strip().lower()
    start = body[:_SNIFF_BYTES]
    if media_type in _JSON_TYPES:
        return _JSON_MARK in start.replace(b"\\/", b"/")
    if media_type in FEED_TYPES or media_type in _XML_TYPES:
        reader = EntriesReader()
        next(reader.read(text_pieces([body[:_PIECE_BYTES]], content_type)), None)
        return reader.kind in _FEEDS
    return False


def read_feed(body: bytes, content_type: str | None = None, url: str = "") -> Feed:
    """The entries of a feed at ``url``. Never raises for what the body holds."""
    if body[:_SNIFF_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return _read_json(body)
    reader = EntriesReader(url)
    pieces = (body[at : at + _PIECE_BYTES] for at in range(0, min(len(body), MAX_FEED_BYTES), _PIECE_BYTES))
    entries, flaw = _entries(reader, text_pieces(pieces, content_type), MAX_FEED_ENTRIES)
    if reader.kind not in _FEEDS:
        return Feed(flaw=reader.flaw or f"not a feed but <{reader.kind[:40]}>")
    return Feed(reader.kind, entries, reader.hubs, reader.self_url, flaw or reader.flaw)


def link_header(values: Iterable[str]) -> tuple[list[str], str]:
    """Hubs and self of ``Link`` headers (RFC 8288), which WebSub lets stand before those of the document."""
    hubs: list[str] = []
    own = ""
    for target, parameters in _LINK.findall(", ".join(values)):
        fields: dict[str, str] = {}
        for name, quoted, bare in _LINK_PARAMETER.findall(parameters):
            fields.setdefault(name.lower(), quoted or bare)  # RFC 8288 3.3: of several rel the first counts
        rels = fields.get("rel", "").lower().split()
        if "hub" in rels:
            hubs.append(target)
        if "self" in rels:
            own = own or target
    return hubs, own


def _read_json(body: bytes) -> Feed:
    try:
        document = json.loads(body[:MAX_FEED_BYTES].decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError) as error:
        return Feed(flaw=f"not well-formed JSON: {str(error)[:80]}")
    if not isinstance(document, dict) or not str(document.get("version", "")).startswith(_JSON_MARK.decode()):
        return Feed(flaw="not a JSON Feed")
    feed = Feed("json", self_url=_text(document.get("feed_url")))
    feed.hubs = [_text(hub.get("url")) for hub in _list(document.get("hubs")) if _text(hub.get("type")) == "WebSub"]
    for item in _list(document.get("items"))[:MAX_FEED_ENTRIES]:
        if url := _text(item.get("url")):
            moment = _text(item.get("date_modified")) or _text(item.get("date_published"))
            feed.entries.append(Entry(url, entry_date(moment)))
    return feed


def _list(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) and len(value) <= MAX_TEXT else ""


class _Pieces:
    """The document, decompressed a piece at a time and cut at the bound."""

    def __init__(self, body: bytes) -> None:
        self.flaw = ""
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield from self._inflated(self._body) if self._body.startswith(_GZIP) else self._plain(self._body)

    def _plain(self, body: bytes) -> Iterator[bytes]:
        if len(body) > MAX_SITEMAP_BYTES:
            self.flaw = f"larger than {MAX_SITEMAP_BYTES >> 20} MB"
        view = memoryview(body)[:MAX_SITEMAP_BYTES]
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
            if total > MAX_SITEMAP_BYTES:
                self.flaw = f"larger than {MAX_SITEMAP_BYTES >> 20} MB once decompressed"
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
        if len(sitemap.entries) == MAX_SITEMAP_ENTRIES:
            sitemap.flaw = f"more than {MAX_SITEMAP_ENTRIES:,} entries"
            return False
        sitemap.entries.append(Entry(url))
    return True


def _read_xml(pieces: Iterable[str], url: str) -> Sitemap:
    reader = EntriesReader(url)
    entries, flaw = _entries(reader, pieces, MAX_SITEMAP_ENTRIES)
    index = reader.kind == "sitemapindex"
    if not index and reader.kind != "urlset" and reader.kind not in _FEEDS:
        return Sitemap(flaw=reader.flaw or f"not a sitemap but <{reader.kind[:40]}>")
    # An index lists sitemaps, a list of pages pages; what says otherwise inside is not believed.
    return Sitemap(reader.kind, [entry for entry in entries if entry.is_index == index], flaw or reader.flaw)


def _entries(reader: EntriesReader, pieces: Iterable[str], most: int) -> tuple[list[Entry], str]:
    """The first entries, and what is wrong when there are more."""
    entries: list[Entry] = []
    for entry in reader.read(pieces):
        if len(entries) == most:
            return entries, f"more than {most:,} entries"
        entries.append(entry)
    return entries, ""


def text_pieces(pieces: Iterable[bytes], content_type: str | None) -> Iterator[str]:
    """The text of ``pieces`` in pieces of its own. It never raises for what they hold.

    The encoding is that of the mark, of Content-Type, of the XML declaration (RFC 7303 3.2), and else UTF-8, in which
    what is not UTF-8 is read as windows-1252: one such letter in one title makes no address another.
    """
    source = iter(pieces)
    first = next(source, b"")
    name, mark_bytes = _encoding(first, content_type)
    first = first[mark_bytes:]
    if name == UTF_8 or name in _UTF_16:
        decoder = codecs.getincrementaldecoder(name)("windows-1252-within" if name == UTF_8 else "replace")
        yield decoder.decode(first)
        for piece in source:
            yield decoder.decode(piece)
        yield decoder.decode(b"", final=True)
        return
    cut = _CUTS.get(name, b">")
    waiting = [first]
    for piece in source:
        if (at := piece.rfind(cut)) >= 0:
            yield decode(b"".join([*waiting, piece[:at]]), name)
            waiting = [piece[at:]]
        else:
            waiting.append(piece)
    yield decode(b"".join(waiting), name)


def _encoding(first: bytes, content_type: str | None) -> tuple[str, int]:
    """The encoding of what begins with ``first``, and how many bytes its mark takes."""
    if (mark := mark_of(first)) is not None:
        return mark
    start = first.lstrip(b"\t\n\r ")[:2].ljust(2, b"a")
    if start[1] == 0 or start[0] == 0:  # ASCII in UTF-16 (XML 1.0, appendix F); after a blank it may be its other half
        return ("utf-16be" if first[:1] == b"\0" else "utf-16le"), 0
    declared = xml_encoding(first[max(first.find(b"<?xml"), 0) :])
    name = charset_of(content_type) or declared or UTF_8
    if name == UTF_8 and declared is not None and not _is_utf8(first):
        name = declared  # a server's default says nothing of this file
    # What was read as ASCII so far is not UTF-16 (HTML 13.2.3.2).
    return (UTF_8 if name in _UTF_16 else name), 0


def _is_utf8(start: bytes) -> bool:
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _within(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    run = _BEYOND_ASCII.match(error.object, error.start)
    end = run.end() if run is not None else error.end
    return error.object[error.start : end].decode("cp1252", "replace"), end


codecs.register_error("windows-1252-within", _within)
