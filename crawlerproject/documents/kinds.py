"""Which document an answer is, by its type or by its mark; and the bounds of what is read of it, whatever it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

PDF, DOCX, ODT, EPUB = "pdf", "docx", "odt", "epub"

_BY_TYPE = {
    "application/pdf": PDF,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": DOCX,
    "application/vnd.oasis.opendocument.text": ODT,
    "application/epub+zip": EPUB,
}
_PDF_MARK, _MARK_WITHIN = b"%PDF-", 1024  # where readers look for it (PDF 1.7, Annex H 3.4.1)
# A zip whose first entry is "mimetype", as it is (OpenDocument 1.3 part 2, 3.3; EPUB OCF 3.3, 4.3): the name begins
# behind the head of 30 bytes, and the type behind the name.
_ZIP, _NAME, _NAME_AT = b"PK\x03\x04", b"mimetype", 30
_TYPE_AT = _NAME_AT + len(_NAME)
_MARKED = tuple((mime.encode(), kind) for mime, kind in _BY_TYPE.items() if kind in (ODT, EPUB))
MAX_CHARACTERS = 1_000_000
"""Of text (ours): a book has 500 pages and a million letters."""
MAX_LINKS = 10_000
"""Of one document (ours): a link every line is no text."""
MAX_ADDRESS = 8192
"""Characters of a link's address."""
MAX_TITLE = 1000
MAX_WORDS = 200
"""Characters of a link's words."""
_MAX_LANGUAGE = 35  # of a tag that any software has to take (RFC 5646 4.4.1)
BROKEN, LOCKED, TOO_LARGE = "broken", "locked", "too large"


def kind_of(mime: str, body: bytes) -> str | None:
    """One of the words above; None for anything else, or for nothing."""
    if not body:
        return None
    if (kind := _BY_TYPE.get(mime)) is not None:
        return kind
    if _PDF_MARK in body[:_MARK_WITHIN]:
        return PDF
    if body.startswith(_ZIP) and body.startswith(_NAME, _NAME_AT):
        return next((kind for mark, kind in _MARKED if body.startswith(mark, _TYPE_AT)), None)
    return None


class Unreadable(Exception):
    """A document cannot be read; the message is one of the words above."""


class Links:
    """The links of one document, each address once, with its first words."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def add(self, address: str, words: str) -> None:
        """Take one in, as far as there is room."""
        if address and len(self._found) < MAX_LINKS and len(address) <= MAX_ADDRESS:
            self._found.setdefault(address, " ".join(words.split())[:MAX_WORDS])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._found.items())


class Lines:
    """The text of one document, line by line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._left = MAX_CHARACTERS

    @property
    def full(self) -> bool:
        """Whether nothing more is taken."""
        return self._left <= 0

    def add(self, text: str) -> None:
        """Take in the lines of a text, without blanks at their ends and empty ones."""
        for line in text[: max(0, self._left)].splitlines():
            if line := " ".join(line.split()):
                self._lines.append(line)
                self._left -= len(line) + 1

    def __str__(self) -> str:
        return "\n".join(self._lines)


def read_as(title: str, text: str, links: Iterable[tuple[str, str]], language: str = "") -> dict[str, Any]:
    """What a document says; ``language`` as it names it itself."""
    return {
        "title": " ".join(title.split())[:MAX_TITLE],
        "text": text,
        "links": list(links),
        "language": language.strip()[:_MAX_LANGUAGE],
    }
