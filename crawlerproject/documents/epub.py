"""Text, title, language and links of a book: EPUB 2 and 3, whose chapters are pages of XHTML."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from crawlerproject.documents.bounds import BROKEN, Lines, Links, Unreadable, read_as
from crawlerproject.documents.package import Package, text_in
from crawlerproject.rules.page.extract import read_page

_DC = "{http://purl.org/dc/elements/1.1/}"
_OPF = "{http://www.idpf.org/2007/opf}"
_CONTAINER, _ROOTFILE = "META-INF/container.xml", "{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
_CHAPTER = "application/xhtml+xml"
_UTF8 = "text/html; charset=utf-8"  # EPUB 3.3, 3.1: UTF-8 or UTF-16, of which the latter has a mark of its own
# What a chapter's links to the book itself are resolved against (RFC 6761: no such host can be).
_WITHIN = "http://book.invalid/"


def read(kind: str, body: bytes) -> dict[str, Any]:
    """What a book says. Raises Unreadable, MemoryError."""
    package = Package(body)
    container = package.xml(_CONTAINER)
    root = container.find(f".//{_ROOTFILE}") if container is not None else None
    place = "" if root is None else root.get("full-path", "")
    book = package.xml(place) if place else None
    if book is None:
        raise Unreadable(BROKEN)
    lines, links = Lines(), Links()
    for name in _chapters(book, posixpath.dirname(place)):
        if lines.full:
            break
        if (data := package.read(name)) is None:
            continue
        page = read_page(data, url=_WITHIN + name, content_type=_UTF8)
        lines.add(page.text)
        for link in page.links:
            if not link.target.startswith(_WITHIN):
                links.add(link.target, link.text)
    return read_as(text_in(book, f"{_DC}title"), str(lines), links, text_in(book, f"{_DC}language"))


def _chapters(book: Any, folder: str) -> Iterator[str]:
    """The names of the chapters in the order in which they are read."""
    named = {
        item.get("id", ""): posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        for item in book.iterfind(f"{_OPF}manifest/{_OPF}item")
        if item.get("media-type") == _CHAPTER
    }
    for item in book.iterfind(f"{_OPF}spine/{_OPF}itemref"):
        if (name := named.pop(item.get("idref", ""), None)) is not None:
            yield name
