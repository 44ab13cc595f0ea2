"""``python -m crawlerproject.batch.pdf_reader DOCUMENT_FD``: reads PDFs for pdf_texts.py, one after the other.

A process of its own, since PDFium is a large library in C++ that reads what strangers wrote: it may crash, hang, or
take all memory. It can write no file and open few, has none of our environment, and ends with its caller.
For each line on standard input (bytes of the document, which stands in the descriptor given) it answers with the
length of some JSON in four bytes, and the JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pypdfium2 as pdfium
from pypdfium2 import raw

#: What is read of one document (ours): a book has 500 pages and a million letters; a link every line is no text.
MAX_PAGES = 500
MAX_CHARACTERS = 1_000_000
MAX_LINKS = 10_000
#: Wall clock for one document. A book of 500 pages takes one second.
SECONDS = 20
#: Address space: PDFium needs 100 MB for itself, a scanned page some tens.
MAX_MEMORY_BYTES = 1 << 30
_MAX_FILES = 32
_MAX_TITLE = 1000
_MAX_URI_BYTES = 8192
_MAX_WORDS = 200
_LENGTH_BYTES = 4
# PDFium writes U+FFFE for a hyphen that only parts a word at the end of its line.
_PARTED = re.compile("[\ufffe\x02]\r?\n?")

BROKEN, LOCKED, TOO_LARGE = "broken", "locked", "too large"
_OUTCOMES = {raw.FPDF_ERR_PASSWORD: LOCKED, raw.FPDF_ERR_SECURITY: LOCKED}


def main() -> None:
    """Answer until standard input ends."""
    for what, most in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _MAX_FILES),
    ):
        resource.setrlimit(what, (most, most))
    document, answers = int(sys.argv[1]), os.dup(1)
    os.dup2(2, 1)  # whatever the library prints is no answer
    for line in sys.stdin.buffer:
        signal.alarm(SECONDS + 5)  # the caller has given up by then, or is dead
        answer = json.dumps(read(os.pread(document, int(line), 0))).encode()
        _write(answers, len(answer).to_bytes(_LENGTH_BYTES, "big") + answer)
        signal.alarm(0)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def read(body: bytes) -> dict[str, Any]:
    """``title``, ``text`` and ``links`` (address, words); or ``failed`` with one of the words above."""
    try:
        document = pdfium.PdfDocument(body)
        try:
            return _read(document)
        finally:
            document.close()
    except pdfium.PdfiumError as error:
        return {"failed": _OUTCOMES.get(getattr(error, "err_code", None), BROKEN)}
    except MemoryError:
        return {"failed": TOO_LARGE}


def _read(document: pdfium.PdfDocument) -> dict[str, Any]:
    pages: list[str] = []
    links: dict[str, str] = {}
    left = MAX_CHARACTERS
    for number in range(min(len(document), MAX_PAGES)):
        try:
            page = document[number]
            text = page.get_textpage()
        except pdfium.PdfiumError:  # one page that is broken costs itself
            continue
        found = text.get_text_range(0, min(text.count_chars(), left)) if left else ""
        left -= len(found)
        pages.append(found)
        for address, words in _links(document, page, text):
            if len(links) < MAX_LINKS:
                links.setdefault(address, words)
        text.close()
        page.close()
        if not left:
            break
    lines = _PARTED.sub("", "\n".join(pages)).splitlines()
    return {
        "title": " ".join(document.get_metadata_value("Title").split())[:_MAX_TITLE],
        "text": "\n".join([line for one in lines if (line := " ".join(one.split()))]),
        "links": list(links.items()),
    }


def _links(document: Any, page: Any, text: Any) -> Iterator[tuple[str, str]]:
    """Those that can be clicked, with the words below them; then addresses that stand in the text."""
    start, link, rect = ctypes.c_int(0), raw.FPDF_LINK(), raw.FS_RECTF()
    for _ in range(MAX_LINKS):
        if not raw.FPDFLink_Enumerate(page.raw, start, link):
            break
        action = raw.FPDFLink_GetAction(link)
        if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
            continue
        size = raw.FPDFAction_GetURIPath(document.raw, action, None, 0)
        if not 1 < size <= _MAX_URI_BYTES:
            continue
        address = ctypes.create_string_buffer(size)
        raw.FPDFAction_GetURIPath(document.raw, action, address, size)
        words = ""
        if raw.FPDFLink_GetAnnotRect(link, rect):
            words = text.get_text_bounded(rect.left, rect.bottom, rect.right, rect.top)
        yield address.value.decode("utf-8", "replace"), " ".join(words.split())[:_MAX_WORDS]
    written = raw.FPDFLink_LoadWebLinks(text.raw)
    try:
        for number in range(min(raw.FPDFLink_CountWebLinks(written), MAX_LINKS)):
            size = raw.FPDFLink_GetURL(written, number, None, 0)  # UTF-16 units, the last one 0
            if 1 < size <= _MAX_URI_BYTES:
                units = (ctypes.c_ushort * size)()
                raw.FPDFLink_GetURL(written, number, units, size)
                yield bytes(units).decode("utf-16-le", "replace").rstrip("\0"), ""
    finally:
        raw.FPDFLink_CloseWebLinks(written)


if __name__ == "__main__":
    main()
