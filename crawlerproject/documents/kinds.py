"""Decides which document an answer is: by its type, or by its mark when a server has another word for it."""

from __future__ import annotations

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
