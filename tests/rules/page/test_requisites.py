"""What pages and style sheets need to be seen."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.page.requisites import (
    MAX_CSS_BYTES,
    addresses_in,
    asks,
    candidates,
    is_quick,
    requisites_of_page,
    requisites_of_sheet,
    sheet_text,
)
from crawlerproject.rules.url.urls import Base
from tests.spending import bounded

BASE = Base("http://a.test/d/page.html")
ICON = "http://a.test/favicon.ico"
MOST_CSS = 10_000


def of(html: str, most: int = 100) -> list[str]:
    """The addresses, the icon of the host left out."""
    found = requisites_of_page(html.encode(), BASE, most, MOST_CSS)
    assert found is not None
    return [address.url.removeprefix("http://a.test/d/") for address, _ in found if address.url != ICON]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<link rel="stylesheet" href="a.css">', ["a.css"]),
        ('<link rel="Alternate StyleSheet" href="a.css">', ["a.css"]),
        ('<link rel="shortcut icon" href="a.ico">', ["a.ico"]),
        ('<link rel="preload" as="font" href="a.woff2"><link rel="modulepreload" href="a.js">', ["a.woff2", "a.js"]),
        ('<link rel="preload" as="image" imagesrcset="a.png 1x, b.png 2x">', ["a.png", "b.png"]),
        ('<link rel="canonical" href="no"><link rel="next" href="no"><link rel="alternate" href="no">', []),
        ('<script src="a.js"></script><script>url(no)</script>', ["a.js"]),
        ('<img src="a.png" srcset="b.png 1x,c.png 2x">', ["a.png", "b.png", "c.png"]),
        ('<img src="data:image/gif;base64,R0" data-src="a.png" data-srcset="b.png 2x">', ["a.png", "b.png"]),
        ('<img data-lazy-src="a.png"><img data-original="b.png">', ["a.png", "b.png"]),
        ('<picture><source srcset="a.webp"><img src="a.png"></picture>', ["a.webp", "a.png"]),
        ('<video src="a.mp4" poster="a.jpg"><source src="b.webm"><track src="a.vtt"></video>',
         ["a.mp4", "a.jpg", "b.webm", "a.vtt"]),
        ('<audio src="a.mp3"></audio><embed src="a.swf"><object data="b.swf"></object>', ["a.mp3", "a.swf", "b.swf"]),
        ('<input type="image" src="a.png"><table background="b.png"></table>', ["a.png", "b.png"]),
        ('<svg><image href="a.png"/><use xlink:href="b.svg#x"/></svg>', ["a.png", "b.svg"]),
        ('<style>@import "a.css"; b { background: url(b.png) }</style>', ["a.css", "b.png"]),
        ("<p style=\"background: url('a.png')\">", ["a.png"]),
        ('<noscript><img src="a.png"></noscript>', ["a.png"]),
        ('<a href="no"><form action="no"></form></a><img><img src=""><source>', []),
        ('<img src="ftp://a.test/a.png"><img src="javascript:x"><img src="blob:x"><img src="about:blank">', []),
        ('<img src="https://www.google-analytics.com/pixel.gif">', []),
        ('<img src=" a.png "><img src="a.png"><img src="./a.png"><img src="a.png#x">', ["a.png"]),
    ],
)  # fmt: skip
def test_elements(html: str, found: list[str]) -> None:
    """Which attributes of which elements hold one, each address once, in the order of the page."""
    assert of(html) == found


def test_frames_are_marked() -> None:
    """They are documents: what they need is fetched as well."""
    found = requisites_of_page(b'<iframe src="f.html"></iframe><img src="a.png">', BASE, 9, MOST_CSS)

    assert found is not None
    assert [(address.url[-6:], frame) for address, frame in found][:2] == [("f.html", True), ("/a.png", False)]


def test_the_icon_of_a_host() -> None:
    """A browser asks for it where a page names none, unless the page is framed."""

    def asked(html: bytes, *, framed: bool = False) -> bool:
        found = requisites_of_page(html, BASE, 9, MOST_CSS, framed=framed)
        return ICON in [address.url for address, _ in found or ()]

    assert asked(b"<p>x")
    assert not asked(b"<p>x", framed=True)
    assert not asked(b'<link rel="icon" href="i.png">')


def test_no_more_than_asked_for() -> None:
    """The first ones, and what repeats does not count; with very many the rest of the page is not looked at."""
    assert of("".join(f'<img src="{number // 2}.png">' for number in range(100)), most=10) == [
        f"{number}.png" for number in range(10)
    ]
    with bounded(5.0):
        assert len(of('<img src="ftp://x/a">' + "".join(f'<img src="{n}.png">' for n in range(100_000)), 500)) == 500
        assert of("".join(f'<img src="ftp://x/{number}.png">' for number in range(100_000))) == []


def test_long_styles_are_left_to_another_process() -> None:
    """None says so; what asks for nothing does not count."""
    style = "b { background: url(b.png) }" * 1000

    assert requisites_of_page(f"<style>{style}</style>".encode(), BASE, 9, MOST_CSS) is None
    assert of(f"<style>{style.replace('url', 'no')}</style>") == []


def test_of_a_sheet() -> None:
    """Relative to the sheet; itself and data: URLs among them cost nothing."""
    text = '@import "b.css"; a { background: url(../i.png), url(data:x), url("b.css") }'

    assert [address.url for address, _ in requisites_of_sheet(text, BASE, 9)] == [
        "http://a.test/d/b.css",
        "http://a.test/i.png",
    ]


@pytest.mark.parametrize(
    ("srcset", "found"),
    [
        ("a.png", ["a.png"]),
        ("a.png 1x, b.png 2x", ["a.png", "b.png"]),
        ("a.png,b.png 2x", ["a.png,b.png"]),
        ("a.png, b.png", ["a.png", "b.png"]),
        (" ,, a.png 100w,, b.png", ["a.png", "b.png"]),
        ("data:image/png;base64,AA= 1x, b.png 2x", ["data:image/png;base64,AA=", "b.png"]),
        ("a.png (x, y) 2x, b.png", ["a.png", "b.png"]),
        ("a.png (x, b.png", ["a.png"]),
        ("a.png,", ["a.png"]),
        ("", []),
        (",", []),
        (" ", []),
    ],
)
def test_candidates(srcset: str, found: list[str]) -> None:
    """HTML 4.8.4.2.2, parse a srcset attribute."""
    assert list(candidates(srcset)) == found


def by_the_letter(text: str) -> Iterable[str]:
    """The standard's steps, a character at a time."""
    spaces, place = " \t\n\f\r", 0
    while True:
        while place < len(text) and text[place] in spaces + ",":
            place += 1
        if place >= len(text):
            return
        start = place
        while place < len(text) and text[place] not in spaces:
            place += 1
        url = text[start:place]
        if url.endswith(","):
            yield url.rstrip(",")
            continue
        yield url
        parens = False
        while place < len(text) and (parens or text[place] != ","):
            parens = text[place] == "(" or (parens and text[place] != ")")
            place += 1


@given(st.text(alphabet="ab, ()\t", max_size=30))
def test_candidates_are_those_of_the_standard(srcset: str) -> None:
    """Whatever is written."""
    assert list(candidates(srcset)) == [url for url in by_the_letter(srcset) if url]


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
