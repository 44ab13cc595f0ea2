"""Text, title, language and links of word processors' documents: docx (ECMA-376) and odt (OpenDocument 1.3)."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from crawlerproject.documents.bounds import Lines, Links, read_as
from crawlerproject.documents.kinds import DOCX, ODT
from crawlerproject.documents.package import Package, let_go, steps, text_in

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
    package, form = Package(body), _FORMATS[kind]
    facts = package.xml(form.facts)
    targets = _targets(package.xml(_RELATIONS)) if kind == DOCX else {}
    lines, links = Lines(), Links()
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


def _targets(relations: Any) -> dict[str, str]:
    """The addresses of a docx's links, by the names that its text has for them."""
    return {
        relation.get("Id", ""): relation.get("Target", "")
        for relation in (relations if relations is not None else ())
        if relation.get("TargetMode") == "External" and relation.get("Type", "").endswith(_HYPERLINK)
    }


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
    said: list[str] = []
    _say(element, form, said)
    return "".join(said)


def _say(element: Any, form: _Format, said: list[str]) -> None:
    if element.tag in form.left_out:
        return
    said.append(form.signs.get(element.tag, ""))
    if form.texts is None or element.tag in form.texts:
        said.append(element.text or "")
    for child in element:
        if isinstance(child.tag, str):  # else a comment or an entity
            _say(child, form, said)
        if form.texts is None:
            said.append(child.tail or "")
