"""Decides what a feed announces: RSS, Atom and JSON Feed, with the hubs that push it (WebSub)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from crawlerproject.rules.feeds.entry_dates import entry_date
from crawlerproject.rules.feeds.xml_entries import MAX_TEXT, EntriesReader, Entry, root_of
from crawlerproject.rules.feeds.xml_text import text_pieces

MAX_ENTRIES = 1000
"""Of one feed: real ones have 10 to 50; a longer tail is old news."""
MAX_BYTES = 5 * 1024 * 1024
"""Of one feed."""

FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"})
_XML_TYPES = frozenset({"text/xml", "application/xml", ""})
_JSON_TYPES = frozenset({"application/json", "application/feed+json"})
_JSON_MARK = b"https://jsonfeed.org/version/"
_KINDS = frozenset({"rss", "feed", "RDF"})
_SNIFF_BYTES = 1024
# RFC 8288 3: commas and semicolons within <> and quotes belong to what stands there. What does not close ends with it.
_LINK = re.compile(r'<([^<>]*+)>((?:[^",<]++|"(?:[^"\\]|\\.)*+(?:"|\Z))*+)', re.DOTALL)
_LINK_PARAMETER = re.compile(r';\s*+([^\s;=",]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)|([^\s;",]++))', re.DOTALL)
_PIECE_BYTES = 65_536


@dataclass(slots=True)
class Feed:
    """What one feed says."""

    kind: str = ""  # "rss", "feed" (Atom), "RDF", "json"; "" when it is no feed
    entries: list[Entry] = field(default_factory=list)
    hubs: list[str] = field(default_factory=list)  # as written
    self_url: str = ""  # as written: the topic to subscribe to
    flaw: str = ""


def is_feed(content_type: str, body: bytes) -> bool:
    """Whether to read the body as a feed: by its type and by how it starts, since HTML is served as RSS too."""
    media_type = content_type.partition(";")[0].strip().lower()
    start = body[:_SNIFF_BYTES]
    if media_type in _JSON_TYPES:
        return _JSON_MARK in start.replace(b"\\/", b"/")
    if media_type in FEED_TYPES or media_type in _XML_TYPES:
        return root_of(body[:_PIECE_BYTES], content_type) in _KINDS
    return False


def read_feed(body: bytes, content_type: str | None = None, url: str = "") -> Feed:
    """The entries of a feed at ``url``. Never raises for what the body holds."""
    if body[:_SNIFF_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return _read_json(body)
    reader = EntriesReader(url)
    feed = Feed()
    pieces = (body[at : at + _PIECE_BYTES] for at in range(0, min(len(body), MAX_BYTES), _PIECE_BYTES))
    for entry in reader.read(text_pieces(pieces, content_type)):
        if len(feed.entries) == MAX_ENTRIES:
            feed.flaw = f"more than {MAX_ENTRIES:,} entries"
            break
        feed.entries.append(entry)
    if reader.kind not in _KINDS:
        return Feed(flaw=reader.flaw or f"not a feed but <{reader.kind[:40]}>")
    feed.kind, feed.hubs, feed.self_url = reader.kind, reader.hubs, reader.self_url
    feed.flaw = feed.flaw or reader.flaw
    return feed


def link_header(values: Iterable[str]) -> tuple[list[str], str]:
    """Hubs and self of ``Link`` headers (RFC 8288), which WebSub lets stand before those of the document."""
    hubs: list[str] = []
    own = ""
    for target, parameters in _LINK.findall(", ".join(values)):
        said: dict[str, str] = {}
        for name, quoted, bare in _LINK_PARAMETER.findall(parameters):
            said.setdefault(name.lower(), quoted or bare)  # RFC 8288 3.3: of several rel the first counts
        rels = said.get("rel", "").lower().split()
        if "hub" in rels:
            hubs.append(target)
        if "self" in rels:
            own = own or target
    return hubs, own


def _read_json(body: bytes) -> Feed:
    try:
        document = json.loads(body[:MAX_BYTES].decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError) as error:
        return Feed(flaw=f"not well-formed JSON: {str(error)[:80]}")
    if not isinstance(document, dict) or not str(document.get("version", "")).startswith(_JSON_MARK.decode()):
        return Feed(flaw="not a JSON Feed")
    feed = Feed("json", self_url=_text(document.get("feed_url")))
    feed.hubs = [_text(hub.get("url")) for hub in _list(document.get("hubs")) if _text(hub.get("type")) == "WebSub"]
    for item in _list(document.get("items"))[:MAX_ENTRIES]:
        if url := _text(item.get("url")):
            moment = _text(item.get("date_modified")) or _text(item.get("date_published"))
            feed.entries.append(Entry(url, entry_date(moment)))
    return feed


def _list(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) and len(value) <= MAX_TEXT else ""
