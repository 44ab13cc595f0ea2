"""What the reader of documents makes of a folder of real ones: how many give text, in what time and memory.

``python -m benchmarks.pdf_corpus FOLDER``, for example of Debian's documentation: ``apt-get download
texlive-latex-base-doc texlive-humanities-doc``, ``dpkg-deb -x FILE FOLDER``. PDF, docx, odt and epub are read, and
counted by kind. Exit status 1 when a document took more
than its bound of time or memory, or the reader did not outlive it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from crawlerproject.documents.document_process import MAX_MEMORY_BYTES, SECONDS
from crawlerproject.documents.document_texts import CRASHED, TOO_SLOW, DocumentTexts
from crawlerproject.documents.kinds import kind_of
from crawlerproject.rules.page.extract import PageText
from crawlerproject.rules.page.languages import language_of

_MEBIBYTE = 1 << 20
_SUFFIXES = (".pdf", ".docx", ".odt", ".epub")
_LEAST_LETTERS = 100  # of a document that gives text: less may be a stamp on a scan


class Read(NamedTuple):
    """One document."""

    path: Path
    kind: str
    page: PageText | None
    seconds: float
    peak_bytes: int  # of the reader, for this document


def read(pdfs: DocumentTexts, number: int, path: Path) -> Read:
    """Read a document; each is of a site of its own, so that none is left out for another's sake."""
    process = pdfs._process
    if process is not None:
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # proc(5): the peak begins anew
    began = time.monotonic()
    body = path.read_bytes()
    kind = kind_of("", body) or path.suffix[1:].lower()
    page = pdfs.read(kind, body, f"http://host{number}.test/{path.name}")
    seconds = time.monotonic() - began
    return Read(path, kind, page, seconds, _peak(pdfs))


def _peak(pdfs: DocumentTexts) -> int:
    if pdfs._process is None:  # this document cost it
        return 0
    for line in Path(f"/proc/{pdfs._process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> int:
    """Read all, and say what came of it."""
    paths = sorted(path for path in Path(sys.argv[1]).rglob("*") if path.suffix.lower() in _SUFFIXES and _is_file(path))
    documents = DocumentTexts()
    try:
        done = [read(documents, number, path) for number, path in enumerate(paths)]
    finally:
        documents.close()
    for kind in sorted({one.kind for one in done}):
        say(kind, [one for one in done if one.kind == kind])
    print(*documents.notes(), sep="\n")
    slow = any(one.seconds > SECONDS or one.peak_bytes > MAX_MEMORY_BYTES for one in done)
    return 1 if slow or documents.failed[TOO_SLOW] or documents.failed[CRASHED] else 0


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def say(kind: str, done: list[Read]) -> None:
    """What came of the documents of one kind."""
    pages = [one.page for one in done if one.page is not None]
    texts = [page for page in pages if len(page.text) >= _LEAST_LETTERS]
    total = sum(one.path.stat().st_size for one in done)
    seconds, peaks = [one.seconds for one in done], [one.peak_bytes for one in done]
    print(f"{kind}: {len(done)} documents, {total / _MEBIBYTE:.0f} MiB")
    print(f"{len(texts)} give text, {len(done) - len(pages)} could not be read")
    print(f"{sum(bool(page.title) for page in pages)} have a title")
    print(f"{sum(bool(page.links) for page in pages)} have links, {sum(len(page.links) for page in pages)} in all")
    print(f"{sum(bool(language_of(page.text) or page.language) for page in texts)} have a language")
    print(f"seconds: median {median(seconds):.3f}, most {max(seconds):.2f} of {SECONDS}, in all {sum(seconds):.0f}")
    middle, most = median(peaks) / _MEBIBYTE, max(peaks) / _MEBIBYTE
    print(f"MiB of the reader: median {middle:.0f}, most {most:.0f} of {MAX_MEMORY_BYTES / _MEBIBYTE:.0f}")


if __name__ == "__main__":
    sys.exit(main())
