"""A document that is a zip of files, most of them XML: what is unpacked of it is bounded, and no entity is expanded."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from lxml import etree

from crawlerproject.documents.bounds import BROKEN, LOCKED, TOO_LARGE, Unreadable

MAX_UNPACKED_BYTES = 64 << 20
"""Of all that is read of one document (ours): a book's text without its pictures is a few MB."""
MAX_ENTRIES = 10_000
"""Of its list of files, each of which costs memory before anything is read (ours; a large book has a thousand)."""
_ENCRYPTED = 0x1  # of an entry's flags (APPNOTE.TXT 4.4.4)
_METHODS = (ZIP_STORED, ZIP_DEFLATED)  # ISO/IEC 21320-1, which these formats follow, has no other
# lxml expands none of the document's own entities, opens nothing else, and keeps libxml2's bounds (10 MB a text, 256
# levels).
_SAFE = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}

Step = tuple[str, Any]
"""``start`` or ``end``, and the element."""


class Package:
    """The files of one document. Everything raises Unreadable."""

    def __init__(self, body: bytes) -> None:
        self._left = MAX_UNPACKED_BYTES
        try:
            self._zip = ZipFile(BytesIO(body))
        except (BadZipFile, ValueError, OverflowError, NotImplementedError):
            raise Unreadable(BROKEN) from None
        if len(self._zip.infolist()) > MAX_ENTRIES:
            raise Unreadable(TOO_LARGE)

    def read(self, name: str) -> bytes | None:
        """A file's content; None when there is none of that name."""
        try:
            entry = self._zip.getinfo(name)
        except KeyError:
            return None
        if entry.flag_bits & _ENCRYPTED:
            raise Unreadable(LOCKED)
        if entry.compress_type not in _METHODS:
            raise Unreadable(BROKEN)
        try:
            with self._zip.open(entry) as file:
                data = file.read(self._left + 1)
        except (BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
            raise Unreadable(BROKEN) from None
        if len(data) > self._left:
            raise Unreadable(TOO_LARGE)
        self._left -= len(data)
        return data

    def needed(self, name: str) -> bytes:
        """A file without which the document is none."""
        data = self.read(name)
        if data is None:
            raise Unreadable(BROKEN)
        return data

    def xml(self, name: str) -> Any:
        """The root of a small XML file; None when there is none, or it is no XML."""
        data = self.read(name)
        try:
            return etree.fromstring(data, etree.XMLParser(**_SAFE)) if data else None
        except etree.XMLSyntaxError:
            return None


def steps(data: bytes) -> Iterator[Step]:
    """A large XML file as it is read; the caller gives what it is done with to ``let_go``. Raises Unreadable."""
    try:
        yield from etree.iterparse(BytesIO(data), events=("start", "end"), **_SAFE)
    except etree.XMLSyntaxError:
        raise Unreadable(BROKEN) from None


def let_go(element: Any) -> None:
    """Forget an element's content, and what stood before it: a book is never in memory as a tree."""
    element.clear(keep_tail=True)
    parent = element.getparent()
    while parent is not None and (before := element.getprevious()) is not None and not before.tail:
        parent.remove(before)


def text_in(root: Any, tag: str) -> str:
    """The text of the first element of that name below ``root``; "" without one."""
    found = root.find(f".//{tag}") if root is not None else None
    return "" if found is None else "".join(found.itertext())
