"""Text, title and links of a PDF, by PDFium."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pypdfium2 as pdfium
from pypdfium2 import raw

from crawlerproject.documents import kinds

MAX_PAGES = 500
"""Of one document that are read (ours): a book."""
# PDFium writes U+FFFE for a hyphen that only parts a word at the end of its line.
_PARTED = re.compile("[\ufffe\x02]\r?\n?")
_OUTCOMES = {raw.FPDF_ERR_PASSWORD: kinds.LOCKED, raw.FPDF_ERR_SECURITY: kinds.LOCKED}


def read(kind: str, body: bytes) -> dict[str, Any]:
    """What a document says. Raises Unreadable, MemoryError."""
    try:
        with closing(pdfium.PdfDocument(body)) as document:
            return _read(document)
    except pdfium.PdfiumError as error:
        raise kinds.Unreadable(_OUTCOMES.get(getattr(error, "err_code", None), kinds.BROKEN)) from None


def _read(document: pdfium.PdfDocument) -> dict[str, Any]:
    pages: list[str] = []
    links, lines = kinds.Links(), kinds.Lines()
    left = kinds.MAX_CHARACTERS
    for number in range(min(len(document), MAX_PAGES)):
        try:
            page = document[number]
            text = page.get_textpage()
        except pdfium.PdfiumError:  # one page that is broken costs itself
            continue
        found = text.get_text_range(0, min(text.count_chars(), left)) if left else ""
        left -= min(left, len(found))  # PDFium may put letters in that it did not count
        pages.append(found)
        for address, words in _links(document, page, text):
            links.add(address, words)
        text.close()
        page.close()
        if not left:
            break
    lines.add(_PARTED.sub("", "\n".join(pages)))
    title = ""
    with suppress(UnicodeDecodeError):  # half a character of UTF-16
        title = str(document.get_metadata_value("Title"))
    return kinds.read_as(title, str(lines), links)


def _links(document: Any, page: Any, text: Any) -> Iterator[tuple[str, str]]:
    """Those that can be clicked, with the words below them; then addresses that stand in the text."""
    start, link, rect = ctypes.c_int(0), raw.FPDF_LINK(), raw.FS_RECTF()
    for _ in range(kinds.MAX_LINKS):
        if not raw.FPDFLink_Enumerate(page.raw, start, link):
            break
        action = raw.FPDFLink_GetAction(link)
        if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
            continue
        size = raw.FPDFAction_GetURIPath(document.raw, action, None, 0)
        if not 1 < size <= kinds.MAX_ADDRESS:
            continue
        address = ctypes.create_string_buffer(size)
        raw.FPDFAction_GetURIPath(document.raw, action, address, size)
        words = ""
        if raw.FPDFLink_GetAnnotRect(link, rect):
            words = text.get_text_bounded(rect.left, rect.bottom, rect.right, rect.top)
        yield address.value.decode("utf-8", "replace"), words
    written = raw.FPDFLink_LoadWebLinks(text.raw)
    try:
        for number in range(min(raw.FPDFLink_CountWebLinks(written), kinds.MAX_LINKS)):
            size = raw.FPDFLink_GetURL(written, number, None, 0)  # UTF-16 units, the last one 0
            if 1 < size <= kinds.MAX_ADDRESS:
                units = (ctypes.c_ushort * size)()
                raw.FPDFLink_GetURL(written, number, units, size)
                yield bytes(units).decode("utf-16-le", "replace").rstrip("\0"), ""
    finally:
        raw.FPDFLink_CloseWebLinks(written)
