"""Encodings: mark, header, declaration, valid UTF-8, windows-1252, in that order."""

from __future__ import annotations

import pytest
from webencodings import LABELS

from crawlerproject.rules.page.body import decode, in_utf8
from crawlerproject.rules.page.page import read_html
from crawlerproject.rules.web_encodings import written

NEVER_DECLARED = {"replacement", "utf-16le", "utf-16be", "x-user-defined"}
WORDS = ("тест", "テスト", "測試", "테스트", "δοκιμή", "בדיקה", "ทดสอบ", "اختبار", "őť", "é")
KOI8 = b"<meta charset=koi8-r>"


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"\xef\xbb\xbf\xc3\xa9", "text/html; charset=koi8-r", ("é", "utf-8")),
        ("\ufeffé".encode("utf-16-le"), None, ("é", "utf-16le")),
        ("é".encode("utf-16-be"), "text/html; charset=utf-16be", ("é", "utf-16be")),
        (
            b'<meta charset="koi8-r">\xd6',
            "text/html; charset=windows-1251",
            ('<meta charset="koi8-r">Ц', "windows-1251"),
        ),
        (b"<meta charset=koi8-r>\xd6", "text/html", ("<meta charset=koi8-r>ж", "koi8-r")),
        (b"<meta charset=utf-16>\xc3\xa9", None, ("<meta charset=utf-16>é", "utf-8")),
        (b"\xc3\xa9", "text/html; charset=klingon", ("é", "utf-8")),
        (b"\xe9t\xe9", None, ("été", "windows-1252")),
        (b"\xe9\x80", "text/html; charset=iso-8859-1", ("é€", "windows-1252")),
        (b"caf\xc3\xa9 \xe4\xb8", None, ("café \ufffd", "utf-8")),
        (b"\xff\xc3\xa9", "text/html; charset=utf-8", ("\ufffdé", "utf-8")),
        ("<?xml version='1.0'?>ж".encode("utf-16-le"), None, ("<?xml version='1.0'?>ж", "utf-16le")),
        ("<?xml version='1.0'?>ж".encode("utf-16-be"), None, ("<?xml version='1.0'?>ж", "utf-16be")),
    ],
)
def test_order(body: bytes, content_type: str | None, expected: tuple[str, str]) -> None:
    """Each rule is asked only when those before it are silent or name nothing known."""
    assert decode(body, content_type) == expected


@pytest.mark.parametrize("label", ["unicode_escape", "punycode", "idna", "rot13", "zlib", "utf-7", "undefined", "hex"])
def test_python_only_codecs_are_not_web_encodings(label: str) -> None:
    """A page cannot choose a codec no browser has."""
    assert decode(rb"\ud800 caf\xe9 +ADw-", f"text/html; charset={label}")[1] == "utf-8"


@pytest.mark.parametrize(
    "start",
    [
        b"<META CHARSET=' KOI8-R '/>",
        b"<meta/charset=koi8-r>",
        b"<meta charset=klingon>" + KOI8,
        b"<meta charset>" + KOI8,
        b"<meta http-equiv=content-type content='text/html;charset=klingon'>" + KOI8,
        b"<meta content='text/html; charset=koi8-r' http-equiv=Content-Type>",
        b"<meta http-equiv=content-type content='charset charset = \"koi8-r\"'>",
        b"<meta name=a content='>'  charset=koi8-r>",
        b"<meta charset=koi8-r charset=utf-8>",
        b"<script>'<meta charset=windows-1251>'</script>" + KOI8,
        b"<style><meta charset=windows-1251></style ><title>a</titles><meta charset=ibm866></TITLE>" + KOI8,
        b"<!-->" + KOI8,
        b"<!-- a --!>" + KOI8,
        b"<!-- <meta charset=windows-1251> -->" + KOI8,
        b"<p title='<meta charset=windows-1251>'>" + KOI8,
        b"<p title=a'b><!doctype '><?php echo ' ?></ '></><1 <" + KOI8,
        b'<p a=b="c>' + KOI8,
        b"<noscript>" + KOI8,
        b"<?xml version='1.0' encoding='koi8-r'?><p>",
        b"<?xml version='1.0' encoding='windows-1251'?>" + KOI8,
        b"<title>" + b" " * 3_000 + b"</title>" + KOI8,
        b"<p>" + b" " * 9_000 + KOI8,
    ],
)
def test_a_declaration_counts(start: bytes) -> None:
    """Where browsers find one (HTML 13.2.3.2): also behind one that names nothing, and what only looks like one."""
    assert decode(start + b"\xd6.", None)[1] == "koi8-r"


@pytest.mark.parametrize(
    "start",
    [
        b"<script>" + KOI8 + b"</script>",
        b"<script/>" + KOI8,
        b"<style>" + KOI8,
        b"<textarea>" + KOI8 + b"</textarea>",
        b"<!-- " + KOI8 + b" -->",
        b"<!-- " + KOI8,
        b"<p title='" + KOI8 + b"'>",
        b"<meta name=a content='text/html; charset=koi8-r'>",
        b"<meta http-equiv=refresh content='text/html; charset=koi8-r'>",
        b"<meta content='text/html; charset=koi8-r'>",
        b"<meta charset=koi8-r",
        b"<meta charset='koi8-r>",
        b"</meta charset=koi8-r>",
        b"<metas charset=koi8-r>",
        b"< meta charset=koi8-r>",
        b"<meta\x0bcharset=koi8-r>",
        b"<meta charset='\xa0koi8-r'>",
        b"<meta charset=x-user-defined>",
        b" <?xml version='1.0' encoding='koi8-r'?>",
    ],
)
def test_no_declaration(start: bytes) -> None:
    """What no browser takes for one: the page is in the fallback."""
    assert decode(start + b"\xd6.", None)[1] == "windows-1252"


@pytest.mark.parametrize("name", sorted(set(LABELS.values()) - NEVER_DECLARED))
def test_text_words_and_links_of_a_page(name: str) -> None:
    """By its meta element a page is read in each encoding: its title, its words, its links' paths and queries."""
    letters = next(text for text in WORDS if b"%26" not in written(text, name))
    octets = written(letters, name)
    query = "".join(
        f"%{octet:02X}" if not 0x20 < octet < 0x7F or octet in b"\"#<>'" else chr(octet) for octet in octets
    )
    body = b"<meta charset=%s><title>%s</title><p>a %s <a href='/%s?q=%s'>x</a>" % (name.encode(), *[octets] * 4)

    facts = read_html(body, url="http://a.test/", content_type="text/html", x_robots=(), token="x")

    path = "".join(f"%{octet:02X}" for octet in letters.encode())
    assert (facts.encoding, facts.title) == (name, letters)
    assert facts.words == 2 + (1 if letters.isascii() or letters < "\u1100" else len(letters))
    assert [link.url for link in facts.links] == [f"http://a.test/{path}?q={query}"]


def test_utf_8_is_not_copied() -> None:
    """What is UTF-8 already is the page's own octets."""
    body = "<meta charset=utf-8>é".encode()
    assert in_utf8(body, None)[0] is body
