"""The native reader and the Python one read the same of every page."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject import native
from crawlerproject.rules import text_likeness
from crawlerproject.rules.page import extract, text_fingerprint
from crawlerproject.rules.page import page as reader
from crawlerproject.rules.page.body import Weight, in_utf8, weight, weight_in_python
from crawlerproject.rules.page.page import read_document
from crawlerproject.rules.page.tree import read_tree
from tests.hostile.test_big_pages import SHAPES
from tests.native.pages import HANDBOOK, differences, generated, mutated
from tests.web.answers import page_html
from tests.web.shells import shells

pytestmark = pytest.mark.skipif(native.reader is None, reason=f"one reader only: {native.choice.why}")

SHELLS = shells()
SHAPE_BYTES = 60_000
"""Of a hostile shape: enough for most of the bounds, at a fraction of its cost."""

ODD = {
    "empty": b"",
    "a frameset in place of a body": b"<div>lost words<script>x</script></div><frameset><frame src=/f></frameset>",
    "two bodies": b"<body class=a>one<body id=app>two",
    "links of svg": b"<svg><a xlink:href=/x>a</a><a href='' xlink:href=/y>b</a><a href=/h xlink:href=/z>c</a></svg>",
    "xlink outside svg": b"<a href='' xlink:href=/y>b</a><a xlink:href=/z>c</a>",
    "attributes twice": b"<a href=/first href=/second rel=x rel=nofollow>a</a>",
    "a title of svg": b"<svg><title>no</title></svg><title>late</title>",
    "titles": b"<head><title> one \x0b two\xc2\xa0</title><title>three</title></head>",
    "templates": b"<template><a href=/t>t</a><meta name=a content=b></template><p id=app><template>t</template>",
    "scripts in svg": b"<svg><script>a<script>b</script></script></svg><script type=x>c</script><p>d</p>",
    "noscript in noscript": b"<script></script><noscript>a<noscript>b</noscript> c</noscript><noscript></noscript>",
    "roots in roots": b"<script></script>" + b"<div id=app ng-app>" * 30 + b"word " * 19,
    "a root that is full": b"<script></script><div id=APP>" + b"word " * 20 + b"</div>",
    "a root in quirks": b"<script></script><div id=ROOT>word</div>",
    "a root without quirks": b"<!doctype html><script></script><div id=ROOT>word</div>",
    "the root is the page": b"<html ng-app><script></script><title>t</title>words",
    "selected content": b"<script></script><select><button><selectedcontent></button><option selected>a<svg>b</svg>",
    "an address for urlsplit": b"<script></script><a href='http://[x'>a</a><a href=b>b</a><a href=c>c</a>",
    "three addresses": b"<script></script><a href=' a#x'>a</a><a href=b>b</a><a href=HTTP:c>c</a>" + b"word " * 200,
    "one address thrice": b"<script></script><a href='a#x'>a</a><a href=a>b</a><a href=' a'>c</a>" + b"word " * 200,
    "refresh": b"<meta http-equiv=' Refresh' content='0;url=/r'><a href=/a>a</a><meta http-equiv=refresh content=5>",
    "no-break spaces": "one\xa0two \xa0three\u3000four".encode(),
    "an ideographic space": "one\u3000two 中\u3000文x".encode(),
    "CJK in the frame only": "<p>one\u3000two</p><nav>中文</nav>".encode(),
    "beside CJK's last block": "<p>one\u3000two\ud7b0</p>".encode(),
    "fifty words": b"word " * 49 + b"last",
    "forty-nine words": b"word " * 48 + b"last",
    "ten thousand words and more": b" ".join(b"w%d" % (n % 3_000) for n in range(12_000)),
    "words of every length": b" ".join(b"Abcdefghijklmnopqrstuvwxyz"[: n % 26 + 1] * (n % 3 + 1) for n in range(300)),
    "zeros": b"a\x00b<p\x00>c<a href='x\x00y'>d</a><script>\x00</script>",
    "no UTF-8": b"<a href='\xff\xfe'>\xe4</a><title>\xc3</title>\xed\xa0\x80 \xf4\x90\x80\x80<script>\xff</script>",
    "an element with nothing left": b"<p>a<span></span>b<b><i></i>c</b>d<em><script>x</script></em>e<u><!-- c --></u>f",
    "what is left out within lines": b"<p>a<button>x</button>b <svg>y</svg> c<br>d\ne\xc2\xa0 f<a>g<div>h</div>i</a>j",
    "links around links": b"<a href=/1>a<object><a href=/2>b\nc<object><a href=/3>d</object></object></a>e" * 3,
    "a long link": b"<a href=/1 rel='A\n b'>" + "ä \u2003 ".encode() * 300 + b"</a><link rel=Canonical href=/c>",
    "data": b"<html lang=de><script type='Application/LD+JSON'>{\"a\": 1}</script><meta name=' OG:title' content=t>",
    "items": b"<p itemscope itemtype=t><b itemprop=n>v</b><base href=/x/><a itemprop=u href=y>z</a>",
    "font and what is no end of it": b"<font></fontx>" * 1_000,
}


@pytest.mark.parametrize("page", ODD.values(), ids=ODD.keys())
def test_odd_pages(page: bytes) -> None:
    """What the two could take apart, one thing each."""
    assert differences(page) == []


def test_bytes_that_are_not_utf8_are_left_to_python() -> None:
    """The one reason to leave a page whole to it; bodies are turned into UTF-8 before."""
    page = native.reader
    assert page is not None

    assert [name for name, source in ODD.items() if page.read(source) is None] == ["no UTF-8"]


def test_addresses_that_need_pythons_reader_of_urls_are_left_to_it() -> None:
    """The only other reason, for the count of links alone, where a page has few of them and a script."""
    page = native.reader
    assert page is not None

    unclear = [name for name, source in ODD.items() if (read := page.read(source)) is not None and read[-1] is False]

    assert unclear == ["an address for urlsplit", "zeros"]


def handbook() -> Iterator[bytes]:
    """Some of its pages."""
    return (path.read_bytes() for path in sorted(HANDBOOK.glob("*.html"))[::12])


def test_pages_of_the_synthetic_web_and_shells() -> None:
    """The pages that crawls of these tests meet; most shells are read as such."""
    pages = [*(shell.encode() for shell in SHELLS.values()), page_html("t", ["/a", "/b"])]

    assert [found for page in pages if (found := differences(page))] == []
    assert sum(read_document(page).shell is not None for page in pages) >= len(SHELLS) / 2


@pytest.mark.skipif(not HANDBOOK.is_dir(), reason="the Debian package debian-handbook is not installed")
def test_the_handbook() -> None:
    """A book, and what becomes of it when it is damaged."""
    chance = random.Random(17)
    pages = [in_utf8(page, None)[0] for page in handbook()]
    damaged = [mutated(chance, page[start : start + 10_000]) for page in pages for start in (0, 5_000)]

    assert [found for page in pages + damaged if (found := differences(page))] == []


@pytest.mark.parametrize("path", SHAPES)
def test_hostile_shapes(path: str) -> None:
    """Weighed alike, and read alike if they are read."""
    source = SHAPES[path]()[:SHAPE_BYTES]

    assert weight(source) is weight_in_python(source)
    if weight(source) is Weight.LIGHT:
        assert differences(source) == []


def test_made_up_pages() -> None:
    """Tags, attributes and texts in any order; shells, fingerprints and what cannot be counted are among them."""
    chance = random.Random(17)
    pages = [generated(chance) for _ in range(700)]

    assert [(found, page) for page in pages if (found := differences(page))] == []
    read = [read_document(page) for page in pages]
    assert sum(page.shell is not None for page in read) > 30
    assert sum(page.fingerprint is not None for page in read) > 30
    assert any(page.base for page in read)
    assert any(page.canonical for page in read)


@given(st.text("<>/=\"' abAiIpPtThHrReEfF0;:#&!-\x00\x1c\xa0\u3000中\u0130\u212a\n", max_size=80))
def test_any_characters(characters: str) -> None:
    """And those that mean something to a parser more often than others."""
    assert differences(f"<a href='{characters}' rel='{characters}'>x</a>{characters}".encode()) == []


@given(st.binary(max_size=120))
def test_any_bytes(noise: bytes) -> None:
    """UTF-8 or not."""
    assert read_document(noise) == read_tree(noise)


def _decodes(source: bytes) -> bool:
    try:
        source.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(
    st.lists(st.sampled_from(b"a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xe0\xed\xef\xf0\xf4\xf5\xff")), st.integers(0, 40)
)
def test_utf8_is_told_alike(noise: list[int], before: int) -> None:
    """At the edges of what is a character, at any place of a step of eight or thirty-two."""
    page = native.reader
    assert page is not None
    source = b"x" * before + bytes(noise)

    for tail in (b"", b"x" * 50):
        assert page.is_utf8(source + tail) is _decodes(source + tail)


@given(
    st.lists(st.sampled_from([*"<>/ \t\v=\"'", "</", "b", "B", "font", "x", "op", "OPTION", "tt", "a", "<b", "</b"])),
    st.sampled_from([1, 3, 40, 451, 3_000]),
)
def test_the_weight_of_anything(pieces: list[str], times: int) -> None:
    """Of few and of many of the same."""
    source = "".join(pieces).encode() * times

    assert weight(source) is weight_in_python(source)


@pytest.mark.parametrize("count", [999, 1_000, 1_001, 1_002])
@pytest.mark.parametrize("attribute", [b" a", b" a=b", b' a=">"', b" ='x'", b"/a = 'b'", b"\v=a"])
def test_a_crowded_tag_is_counted_alike(attribute: bytes, count: int) -> None:
    """Around the most attributes that a tag may have."""
    source = b"<p" + attribute * count + b" " * 4_000 + b">x"

    assert weight(source) is weight_in_python(source)


@pytest.mark.parametrize("open_tags", [14_000, 14_001, 15_000])
@pytest.mark.parametrize("name", [b"<div>", b"<P>", b"<x%d>", b"<b a=%d></B>", b"<x<y></x<y>"])
def test_depth_is_counted_alike(name: bytes, open_tags: int) -> None:
    """Of pages with many tags every element counts, whatever it is called."""
    source = b"".join(name % n if b"%d" in name else name for n in range(open_tags))

    assert weight(source) is weight_in_python(source)


def test_both_readers_share_their_numbers() -> None:
    """What page.h repeats of the rules."""
    page = native.reader
    assert page is not None
    limits = dict(page.LIMITS)

    assert limits.pop("MIN_WORDS") == text_fingerprint.MIN_WORDS
    assert limits.pop("MAX_WORDS") == text_fingerprint.MAX_WORDS
    assert limits.pop("MOST_LINKS") == extract.MAX_LINKS
    assert limits.pop("MOST_ANCHOR") == extract.MAX_ANCHOR
    assert limits.pop("MOST_READ") == extract._MOST_READ_CHARACTERS
    assert limits == {name: getattr(reader, name) for name in limits}
    assert len(limits) == 5


def test_only_bytes_are_read() -> None:
    """Anything else is a fault of ours."""
    page = native.reader
    assert page is not None

    wrong: Any
    for wrong in ("<p>", bytearray(b"<p>"), None):
        with pytest.raises(TypeError):
            page.read(wrong)
        with pytest.raises(TypeError):
            page.weight(wrong)


@given(
    st.lists(st.sampled_from([b"a", b"word", b"7", b" ", b"\t", b"\0", b"/", b":", b"\x80", b"\xff", b"123"])).map(
        b"".join
    )
)
def test_digits_and_blanks_are_left_out_alike(text: bytes) -> None:
    """Of texts of any length, wherever in a step of eight bytes they stand."""
    page = native.reader
    assert page is not None
    assert page.said(text) == text.translate(None, text_likeness._UNSAID)
