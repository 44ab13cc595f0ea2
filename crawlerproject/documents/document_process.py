"""``python -m crawlerproject.documents.document_process DOCUMENT_FD``: reads one document after the other.

``document_texts`` runs it. A process of its own, since what reads them are large libraries in C and C++ and what they
read are strangers' bytes: it may crash, hang, or take all memory. It can write no file and open few, has none of our
environment, and ends with its caller. For each line on standard input (kind and bytes of the document, which stands in
the descriptor given) it answers with the length of some JSON in four bytes, and the JSON.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from importlib import import_module
from typing import Any

from crawlerproject.documents.kinds import DOCX, EPUB, ODT, PDF, TOO_LARGE, Unreadable

SECONDS = 20
"""Wall clock for one document. A book of 500 pages takes one second."""
MAX_MEMORY_BYTES = 1 << 30
"""Address space: PDFium needs 100 MB for itself, a scanned page some tens."""
LENGTH_BYTES = 4
"""Of the length before an answer."""
_MAX_FILES = 32
_LIMITS = (
    (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_NOFILE, _MAX_FILES),
)
# The module that reads each kind, imported when the first of that kind comes.
_READERS = {PDF: "pdf", DOCX: "office", ODT: "office", EPUB: "office"}


def main() -> None:
    """Answer until standard input ends."""
    for what, most in _LIMITS:
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))  # a reading process has one for its own job
    document, answers = int(sys.argv[1]), os.dup(1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    for line in sys.stdin:
        kind, length = line.split()
        signal.alarm(SECONDS + 5)  # the caller has given up by then, or is dead
        answer = json.dumps(read(kind, os.pread(document, int(length), 0))).encode()
        data = len(answer).to_bytes(LENGTH_BYTES, "big") + answer
        while data:
            data = data[os.write(answers, data) :]
        signal.alarm(0)


def read(kind: str, body: bytes) -> dict[str, Any]:
    """``title``, ``text``, ``links`` (address, words) and ``language``; or ``failed`` with a word of kinds.py."""
    try:
        reader = import_module(f"crawlerproject.documents.{_READERS[kind]}")
        found: dict[str, Any] = reader.read(kind, body)
        return found
    except Unreadable as error:
        return {"failed": str(error)}
    except MemoryError:
        return {"failed": TOO_LARGE}


if __name__ == "__main__":
    main()
