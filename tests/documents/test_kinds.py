"""What is taken for a document."""

import pytest

from crawlerproject.documents.kinds import DOCX, EPUB, ODT, PDF, kind_of

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
HEAD = b"PK\x03\x04" + bytes(26)


@pytest.mark.parametrize(
    ("mime", "body", "kind"),
    [
        ("application/pdf", b"\r\n%PDF-1.4", PDF), ("application/octet-stream", b"junk\n%PDF-1.4", PDF),
        ("application/pdf", b"anything", PDF), ("", b"x" * 1024 + b"%PDF-", None), ("text/plain", b"a %PDF", None),
        ("application/pdf", b"", None), (WORD, HEAD + b"[Content_Types].xml", DOCX),
        ("application/zip", HEAD + b"[Content_Types].xml", None),
        ("application/zip", HEAD + b"mimetypeapplication/epub+zipPK", EPUB),
        ("", HEAD + b"mimetypeapplication/vnd.oasis.opendocument.textPK", ODT),
        ("application/zip", b"mimetypeapplication/epub+zip", None),
    ],
)  # fmt: skip
def test_what_says_so_or_begins_so(mime: str, body: bytes, kind: str | None) -> None:
    """By its type, else by its mark."""
    assert kind_of(mime, body) == kind
