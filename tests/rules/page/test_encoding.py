"""rules/encoding: mark, header, declaration, valid UTF-8, windows-1252, in that order."""

import pytest

from crawlerproject.rules.page.encoding import decode


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"\xef\xbb\xbf\xc3\xa9", "text/html; charset=koi8-r", ("é", "utf-8")),
        ("\ufeffé".encode("utf-16-le"), None, ("é", "utf-16-le")),
        ("é".encode("utf-16-be"), "text/html; charset=utf-16be", ("é", "utf-16-be")),
        (b'<meta charset="koi8-r">\xd6', "text/html; charset=windows-1251", ('<meta charset="koi8-r">Ц', "cp1251")),
        (b"<meta charset=koi8-r>\xd6", "text/html", ("<meta charset=koi8-r>ж", "koi8-r")),
        (b"<meta charset=utf-16>\xc3\xa9", None, ("<meta charset=utf-16>é", "utf-8")),
        (b"\xc3\xa9", "text/html; charset=klingon", ("é", "utf-8")),
        (b"\xe9t\xe9", None, ("été", "cp1252")),
        (b"\xe9\x80", "text/html; charset=iso-8859-1", ("é€", "cp1252")),
        (b"caf\xc3\xa9 \xe4\xb8", None, ("café \ufffd", "utf-8")),
        (b"\xff\xc3\xa9", "text/html; charset=utf-8", ("\ufffdé", "utf-8")),
    ],
)
def test_order(body: bytes, content_type: str | None, expected: tuple[str, str]) -> None:
    """Each rule is asked only when those before it are silent or name nothing known."""
    assert decode(body, content_type) == expected


@pytest.mark.parametrize("label", ["unicode_escape", "punycode", "idna", "rot13", "zlib", "utf-7", "undefined", "hex"])
def test_python_only_codecs_are_not_web_encodings(label: str) -> None:
    """A page cannot choose a codec no browser has."""
    assert decode(rb"\ud800 caf\xe9 +ADw-", f"text/html; charset={label}")[1] == "utf-8"


def test_late_declaration_counts() -> None:
    """A meta element within 4,096 bytes is found, past the standard's 1,024."""
    assert decode(b"<title>" + b" " * 3_000 + b"</title><meta charset=koi8-r>\xd6", None)[1] == "koi8-r"
