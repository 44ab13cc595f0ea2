"""What style sheets ask for."""

from __future__ import annotations

import pytest

from crawlerproject.rules.page.style_sheets import MAX_CSS_BYTES, addresses_in, asks, is_quick, sheet_text
from tests.spending import bounded

SIZE = 64_000
#: CPU seconds for SIZE bytes: the slowest takes 0.2, a square minutes.
MOST_SECONDS = 3.0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('@import "a.css" screen;', ["a.css"]),
        ("@import url(a.css) layer(base) supports(display: grid);", ["a.css"]),
        ("@IMPORT URL('a.css');", ["a.css"]),
        ('@import "a.css"; @import "b.css"; p { content: "no.css" }', ["a.css", "b.css"]),
        ("@namespace svg url(http://www.w3.org/2000/svg); a { background: url(a.png) }", ["a.png"]),
        ('@charset "utf-8"; a { background: URL( a.png ) }', ["a.png"]),
        ('@font-face { src: local("F"), url("f.woff2") format("woff2"), url(f.woff) }', ["f.woff2", "f.woff"]),
        ('a { background: image-set("a.png" 1x, url(b.png) 2x) }', ["a.png", "b.png"]),
        ('a { background: -webkit-image-set(url("a.png") 1x) }', ["a.png"]),
        ('a { src: src("a.woff2") }', ["a.woff2"]),
        ("@media print { @supports (x: y) { a { background: url(a.png) } } }", ["a.png"]),
        ("a { background: u\\72l(a.png) }", ["a.png"]),
        ("/* url(no.png) */ a { color: red; background: url(a.png) }", ["a.png"]),
        ("a { background: url(a.png", ["a.png"]),
        ('a { content: "url(no.png)" }', []),
        ("color: red", []),
        ("background: url(data:image/png;base64,AAAA), url(DATA:,x), url(a.png)", ["a.png"]),
    ],
)
def test_addresses(text: str, found: list[str]) -> None:
    """As CSS Syntax 3 reads them."""
    assert list(addresses_in(text)) == found


def test_what_was_read_is_known() -> None:
    """The same text is not read again; one that would take room is, each time."""
    text, long = "a { background: url(known.png) }", "a { background: url(" + "k" * 5000 + ".png) }"
    assert not is_quick(text)

    before = addresses_in(text)

    assert is_quick(text)
    assert addresses_in(text) == before == ("known.png",)
    assert len(addresses_in(long)) == 1
    assert not is_quick(long)


def test_a_sheet_without_any_is_not_read() -> None:
    """Most are."""
    assert not asks("a { color: red } @media print { b { margin: 0 } }")
    assert asks("a{background:URL(x)}")


def test_the_charset_of_a_sheet() -> None:
    """The Content-Type's, or its own @charset; a longer one is cut."""
    assert sheet_text("a{content:'ä'}".encode("latin-1"), "text/css; charset=iso-8859-1") == "a{content:'ä'}"
    assert sheet_text(b'@charset "windows-1252"; \xe4', None).endswith("ä")
    assert len(sheet_text(b"a" * (MAX_CSS_BYTES + 5), None)) == MAX_CSS_BYTES


@pytest.mark.parametrize(
    "unit",
    [
        "{", "(", "[", "url(", "url(a ", '"', "'", "\\", "/*", "*/", "@import ", '@import "', "@import url(", "a:b;",
        "-", '"\n', "U+?", "<!--", "-->", ")", "}", "#", "a{b:url(c)}", "src(", "image-set(", "\\72",
    ],
)  # fmt: skip
def test_time_grows_with_the_sheet(unit: str) -> None:
    """What is broken, nested or repeated costs in proportion to its length, and ends without an error."""
    with bounded(MOST_SECONDS):
        for _ in addresses_in("url(" + unit * (SIZE // len(unit))):
            pass
        for _ in addresses_in(unit * (SIZE // len(unit)) + " url(a)"):
            pass
