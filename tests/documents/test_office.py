"""docx, odt and epub: what they say to a reader; bombs, entities and what is no zip at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlerproject.documents.document_process import read
from crawlerproject.documents.kinds import BROKEN, DOCX, EPUB, LOCKED, MAX_CHARACTERS, ODT, TOO_LARGE
from crawlerproject.documents.office import MAX_ENTRIES, MAX_UNPACKED_BYTES
from tests.documents.packages import CONTAINER, docx, epub, link, odt, packed


def test_a_letter_of_a_word_processor() -> None:
    """Runs join, tabs part; tables and boxes are lines; what was deleted, fields and fallbacks are none."""
    body = (
        "<w:p><w:r><w:t>Dear </w:t></w:r><w:r><w:t>Sir,</w:t><w:tab/><w:t>hello</w:t></w:r>"
        "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
        '<w:p><w:hyperlink r:id="r1"><w:r><w:t>our </w:t></w:r><w:r><w:t>site</w:t></w:r></w:hyperlink> '
        '<w:r><w:instrText> HYPERLINK "http://field.test/x" </w:instrText></w:r><w:hyperlink r:id="r2"/></w:p>'
        "<w:p><mc:AlternateContent><mc:Choice><w:p><w:r><w:t>a box</w:t></w:r></w:p></mc:Choice>"
        "<mc:Fallback><w:p><w:r><w:t>a box</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent>"
        "<w:r><w:t>after it</w:t><w:br/><w:t>be</w:t>\n  <w:noBreakHyphen/>\n  <w:t>low</w:t></w:r></w:p>"
    )
    relations = link("r1", "http://linked.test/") + link("r2", "media/inside.png", "Internal")

    assert read(DOCX, docx(body, relations)) == {
        "title": "A letter",
        "text": "Dear Sir, hello\na cell\nour site\na box\nafter it\nbe-low",
        "links": [("http://linked.test/", "our site"), ("http://field.test/x", "")],
        "language": "en-GB",
    }


def test_a_letter_of_the_strict_kind() -> None:
    """Other names for the same; a link's too."""
    body = '<w:p><w:hyperlink r:id="r1"><w:r><w:t>Strictly</w:t></w:r></w:hyperlink></w:p>'
    found = read(DOCX, docx(body, link("r1", "http://linked.test/"), strict=True))

    assert (found["text"], found["links"]) == ("Strictly", [("http://linked.test/", "Strictly")])


def test_an_open_document() -> None:
    """Headings and paragraphs are lines; spans, blanks and notes belong to them; comments and what was deleted not."""
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:h>A heading</text:h>"
        '<text:p>Words<text:s/><text:span>in spans</text:span> and <text:a xlink:href="http://linked.test/">a link'
        "</text:a>.<office:annotation><text:p>a comment</text:p></office:annotation><text:line-break/>Next</text:p>"
    )

    assert read(ODT, odt(body)) == {
        "title": "Ein Brief",
        "text": "A heading\nWords in spans and a link.\nNext",
        "links": [("http://linked.test/", "a link")],
        "language": "de-DE",
    }


def test_a_book() -> None:
    """Chapters in the order of the spine, each once; links within the book are none."""
    chapters = {
        "one": '<h1>One</h1><p>First <a href="http://linked.test/a">there</a> <a href="two.xhtml">next</a></p>',
        "two": "<p>Second</p>",
    }
    found = read(EPUB, epub(chapters, ("two", "one", "two", "none")))

    assert found == {
        "title": "A book",
        "text": "Second\nOne\nFirst there next",
        "links": [("http://linked.test/a", "there")],
        "language": "fr",
    }


def _bomb() -> bytes:
    """Much of nothing."""
    return docx("<w:p/>" + " " * (MAX_UNPACKED_BYTES + 1))


def _many() -> bytes:
    """Files."""
    return packed({str(number): b"" for number in range(MAX_ENTRIES + 1)})


def _laughs() -> bytes:
    """Entities within entities."""
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    return odt("<text:p>&e9;</text:p>", f'<!DOCTYPE d [<!ENTITY e0 "ha">{levels}]>')


def _outside() -> bytes:
    """An entity that is a file of the reader's machine."""
    return odt("<text:p>before &x; after</text:p>", '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>')


def _deep() -> bytes:
    """Elements within elements."""
    return odt("<text:span>" * 100_000)


def _flagged(flag: int) -> bytes:
    """With a flag of its compression on every entry (APPNOTE.TXT 4.4.4)."""
    body = bytearray(docx("<w:p/>"))
    for mark, flags_at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = body.find(mark)
        while place >= 0:
            body[place + flags_at] |= flag
            place = body.find(mark, place + 4)
    return bytes(body)


@pytest.mark.parametrize(
    ("kind", "make", "why"),
    [
        (DOCX, _bomb, TOO_LARGE), (DOCX, _many, TOO_LARGE), (ODT, _deep, BROKEN), (DOCX, lambda: _flagged(1), LOCKED),
        (DOCX, lambda: _flagged(1 << 5), BROKEN), (DOCX, lambda: _flagged(1 << 6), BROKEN),
        (DOCX, lambda: b"PK\x03\x04 no zip", BROKEN), (DOCX, lambda: docx("<w:p/>")[:-30], BROKEN),
        (ODT, lambda: packed({}), BROKEN), (EPUB, lambda: packed({"META-INF/container.xml": CONTAINER}), BROKEN),
        (EPUB, lambda: packed({"META-INF/container.xml": "<no"}), BROKEN),
    ],
)  # fmt: skip
def test_a_hostile_one_has_a_word_for_it(kind: str, make: Callable[[], bytes], why: str) -> None:
    """And costs no more than its bounds."""
    assert read(kind, make()) == {"failed": why}


def test_entities_stay_as_they_are() -> None:
    """Neither multiplied nor looked up anywhere."""
    assert read(ODT, _laughs()).get("text", "") == ""
    assert "root:" not in str(read(ODT, _outside()))


def test_what_is_read_of_one_is_bounded() -> None:
    """Characters; what follows is left."""
    long = docx(f"<w:p><w:r><w:t>{'word ' * 10_000}</w:t></w:r></w:p>" * 30)

    assert 0.9 * MAX_CHARACTERS < len(read(DOCX, long)["text"]) <= MAX_CHARACTERS
