"""Reads the addresses that an XML list names: sitemaps, sitemap indexes, RSS and Atom, in one pass, hostile or not.

Nothing but what is asked for is built: a 50 MB sitemap is read in pieces and leaves one entry at a time. A document
that declares entities is refused (the "billion laughs" live there); nothing external is ever loaded. A document
that breaks off or breaks the rules gives what stood before the break, and a word on the flaw.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from xml.parsers import expat

MAX_TEXT = 4096
"""Characters of one address or date; sitemaps.org allows 2,048 of an address."""
_MAX_DEPTH = 64  # elements within elements; a feed's content may be XHTML, nothing sensible is deeper
_W3C_PARTIAL = re.compile(r"(\d{4})(?:-(\d\d))?")
_ITEMS = frozenset({"url", "sitemap", "item", "entry"})
_DATES = frozenset({"lastmod", "pubDate", "date", "updated", "published", "modified", "issued"})
_ADDRESSES = frozenset({"loc", "link", "guid"})


class Entry(NamedTuple):
    """One address of a list."""

    url: str  # as written: a feed's may be relative
    modified: float | None = None  # epoch seconds, as the list claims
    is_index: bool = False  # a sitemap within an index


class EntriesReader:
    """Takes pieces of a document, gives entries. ``kind`` is the root's name, ``flaw`` why it stopped early."""

    def __init__(self) -> None:
        self.kind = ""  # "urlset", "sitemapindex", "rss", "feed", "RDF"; "" before the root
        self.flaw = ""
        self.hubs: list[str] = []  # WebSub hubs that the feed names
        self.self_url = ""  # the feed's own address, as a hub knows it
        self._done: list[Entry] = []
        self._path: list[str] = []
        self._item = 0  # depth of the open item, 0 outside
        self._text: list[str] = []
        self._characters = 0
        self._url = ""
        self._guid = ""
        self._modified: float | None = None
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._data
        self._parser.EntityDeclHandler = self._entity

    def read(self, pieces: Iterable[bytes]) -> Iterator[Entry]:
        """The entries in order; never raises for what a document holds."""
        for piece in pieces:
            if not self._feed(piece, last=False):
                break
            yield from self._take()
        else:
            self._feed(b"", last=True)
        yield from self._take()

    def _feed(self, piece: bytes, *, last: bool) -> bool:
        try:
            self._parser.Parse(piece, last)
        except _Refused as refused:
            self.flaw = str(refused)
        except (expat.ExpatError, ValueError, LookupError) as error:  # LookupError: an unknown encoding
            self.flaw = f"not well-formed XML: {error}"
        return not self.flaw

    def _take(self) -> list[Entry]:
        done, self._done = self._done, []
        return done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        path = self._path
        if not path:
            self.kind = name
        path.append(name)
        if len(path) > _MAX_DEPTH:
            raise _Refused(f"more than {_MAX_DEPTH} elements within each other")
        self._text, self._characters = [], 0
        if name in _ITEMS and not self._item:
            self._item = len(path)
            self._url = self._guid = ""
            self._modified = None
        elif name == "link" and "href" in attributes:
            self._link(attributes)

    def _link(self, attributes: dict[str, str]) -> None:
        """Atom's link, which RSS borrows: where it leads is in its attributes."""
        rel, href = attributes.get("rel", "alternate"), attributes["href"][:MAX_TEXT].strip()
        if self._item:
            if rel == "alternate" and len(self._path) == self._item + 1 and not self._url:
                self._url = href
        elif rel == "hub":
            self.hubs.append(href)
        elif rel == "self":
            self.self_url = self.self_url or href

    def _data(self, text: str) -> None:
        if self._item and self._characters <= MAX_TEXT:
            self._text.append(text)
            self._characters += len(text)

    def _end(self, name: str) -> None:
        depth = len(self._path)
        name = self._path.pop()
        if depth == self._item:
            self._item = 0
            url = self._url or self._guid
            if url:
                self._done.append(Entry(url, self._modified, name == "sitemap"))
        elif depth == self._item + 1 and self._item:
            if name in _ADDRESSES:
                self._address(name)
            elif name in _DATES:
                self._modified = self._later(entry_date("".join(self._text)))

    def _address(self, name: str) -> None:
        text = "".join(self._text).strip()
        if not text or len(text) > MAX_TEXT:
            return
        if name == "guid":
            self._guid = text if text.startswith(("http://", "https://")) else ""
        elif not self._url:
            self._url = text

    def _later(self, moment: float | None) -> float | None:
        """Of published and updated, the later."""
        if moment is None or self._modified is None:
            return moment if self._modified is None else self._modified
        return max(moment, self._modified)

    def _entity(self, name: str, *_: object) -> None:
        raise _Refused(f"declares an entity ({name[:40]})")


class _Refused(Exception):
    """The document is not read any further."""


def entry_date(text: str) -> float | None:
    """The epoch seconds of a W3C date (sitemaps, Atom) or an RFC 822 one (RSS); None for anything else."""
    text = text.strip()[:64]
    moment: datetime | None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = _other_date(text)
    if moment is None:
        return None
    try:
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None  # before the web there was none


def _other_date(text: str) -> datetime | None:
    if partial := _W3C_PARTIAL.fullmatch(text):
        try:
            return datetime(int(partial[1]), int(partial[2] or 1), 1, tzinfo=UTC)
        except ValueError:
            return None
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
