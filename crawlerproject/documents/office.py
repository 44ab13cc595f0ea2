"""Text, title, language and links of documents that are zips of XML: docx (ECMA-376), odt (OpenDocument 1.3), EPUB.

What is unpacked of one is bounded, and no entity is expanded.
"""

from __future__ import annotations

import posixpath
import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import unquote
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from lxml import etree

from crawlerproject.documents.kinds import BROKEN, DOCX, EPUB, LOCKED, ODT, TOO_LARGE, Lines, Links, Unreadable, read_as
from crawlerproject.rules.page.extract import read_page

_DC = "{http://purl.org/dc/elements/1.1/}"
# Of the transitional and of the strict conformance class (ECMA-376 part 1, annex A; part 4).
_WORDS = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",
)
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_IDS = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id",
    "{http://purl.oclc.org/ooxml/officeDocument/relationships}id",
)
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_RELATIONS, _HYPERLINK = "word/_rels/document.xml.rels", "/hyperlink"
# A link as a field of the text (ECMA-376 part 1, 17.16.5.25).
_LINK_FIELD = re.compile(r'\s*HYPERLINK\s+"([^"]*)"')
_OPF = "{http://www.idpf.org/2007/opf}"
_CONTAINER, _ROOTFILE = "META-INF/container.xml", "{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
_CHAPTER = "application/xhtml+xml"
_UTF8 = "text/html; charset=utf-8"  # EPUB 3.3, 3.1: UTF-8 or UTF-16, of which the latter has a mark of its own
# What a chapter's links to the book itself are resolved against (RFC 6761: no such host can be).
_WITHIN = "http://book.invalid/"
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


class _Format(NamedTuple):
    """Where one format has what is read."""

    content: str
    facts: str  # with the title and the language
    paragraphs: frozenset[str]
    left_out: frozenset[str]  # what no reader sees: comments, what was deleted, what stands for what is understood
    signs: dict[str, str]  # elements that stand for letters
    texts: frozenset[str] | None = None  # the only ones that have letters; None: what stands in a paragraph is its text


def _words(*names: str) -> frozenset[str]:
    return frozenset(space + name for space in _WORDS for name in names)


_FORMATS = {
    DOCX: _Format(
        "word/document.xml", "docProps/core.xml", _words("p"),
        _words("delText", "instrText") | {f"{_MC}Fallback"},
        dict.fromkeys(_words("tab"), " ") | dict.fromkeys(_words("br", "cr"), "\n")
        | dict.fromkeys(_words("noBreakHyphen"), "-"),
        _words("t"),
    ),
    ODT: _Format(
        "content.xml", "meta.xml", frozenset({f"{_TEXT}p", f"{_TEXT}h"}),
        frozenset({f"{_TEXT}tracked-changes", f"{_OFFICE}annotation"}),
        {f"{_TEXT}s": " ", f"{_TEXT}tab": " ", f"{_TEXT}line-break": "\n"},
    ),
}  # fmt: skip


_LINKS, _FIELDS = _words("hyperlink"), _words("instrText")


def read(kind: str, body: bytes) -> dict[str, Any]:
    """What a document says. Raises Unreadable, MemoryError."""
    package, lines, links = Package(body), Lines(), Links()
    if kind == EPUB:
        return _read_book(package, lines, links)
    form = _FORMATS[kind]
    facts = package.xml(form.facts)
    relations = package.xml(_RELATIONS) if kind == DOCX else None
    targets = {  # the addresses of a docx's links, by the names that its text has for them
        relation.get("Id", ""): relation.get("Target", "")
        for relation in (relations if relations is not None else ())
        if relation.get("TargetMode") == "External" and relation.get("Type", "").endswith(_HYPERLINK)
    }
    hidden = 0  # elements around this one that are left out
    for event, element in steps(package.needed(form.content)):
        tag = element.tag
        if tag in form.left_out:
            hidden += 1 if event == "start" else -1
        if event == "start" or hidden:
            continue
        address = _address(element, targets)
        if address:
            links.add(address, _shown(element, form))
        if tag in form.paragraphs:
            lines.add(_shown(element, form))
            let_go(element)
            if lines.full:
                break
    return read_as(text_in(facts, f"{_DC}title"), str(lines), links, text_in(facts, f"{_DC}language"))


def _address(element: Any, targets: dict[str, str]) -> str:
    """Where an element links to; "" for one that is no link."""
    if element.tag == f"{_TEXT}a":
        return str(element.get(f"{_XLINK}href", ""))
    if element.tag in _LINKS:
        return next((targets[name] for place in _IDS if (name := element.get(place)) in targets), "")
    if element.tag in _FIELDS and (field := _LINK_FIELD.match(element.text or "")) is not None:
        return field[1]
    return ""


def _shown(element: Any, form: _Format) -> str:
    """The text of an element as one reads it; a paragraph within it has been let go by then."""
    pieces: list[str] = []
    _say(element, form, pieces)
    return "".join(pieces)


def _say(element: Any, form: _Format, pieces: list[str]) -> None:
    if element.tag in form.left_out:
        return
    pieces.append(form.signs.get(element.tag, ""))
    if form.texts is None or element.tag in form.texts:
        pieces.append(element.text or "")
    for child in element:
        if isinstance(child.tag, str):  # else a comment or an entity
            _say(child, form, pieces)
        if form.texts is None:
            pieces.append(child.tail or "")


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
        """A file's content; None when no file has that name."""
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
        """A file that the document must have."""
        data = self.read(name)
        if data is None:
            raise Unreadable(BROKEN)
        return data

    def xml(self, name: str) -> Any:
        """The root of a small XML file; None when it is missing or not XML."""
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


def _read_book(package: Package, lines: Lines, links: Links) -> dict[str, Any]:
    """EPUB 2 and 3, whose chapters are pages of XHTML."""
    container = package.xml(_CONTAINER)
    root = container.find(f".//{_ROOTFILE}") if container is not None else None
    place = "" if root is None else root.get("full-path", "")
    book = package.xml(place) if place else None
    if book is None:
        raise Unreadable(BROKEN)
    chapters = {
        item.get("id", ""): posixpath.normpath(posixpath.join(posixpath.dirname(place), unquote(item.get("href", ""))))
        for item in book.iterfind(f"{_OPF}manifest/{_OPF}item")
        if item.get("media-type") == _CHAPTER
    }
    for item in book.iterfind(f"{_OPF}spine/{_OPF}itemref"):  # in the order in which they are read
        if lines.full:
            break
        name = chapters.pop(item.get("idref", ""), None)
        if name is None or (data := package.read(name)) is None:
            continue
        page = read_page(data, url=_WITHIN + name, content_type=_UTF8)
        lines.add(page.text)
        for link in page.links:
            if not link.target.startswith(_WITHIN):
                links.add(link.target, link.text)
    return read_as(text_in(book, f"{_DC}title"), str(lines), links, text_in(book, f"{_DC}language"))
