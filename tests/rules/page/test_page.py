"""Pages: one in, its facts out; which elements lead somewhere, and when a page says enough."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.page.page import (
    MAX_HTML_BYTES,
    PageFacts,
    is_html,
    link_target,
    looks_whole,
    read_html,
    refresh_target,
)
from crawlerproject.rules.url.urls import Base

URL = "http://example.org/dir/page"


def _read(body: str | bytes, url: str = URL, x_robots: tuple[str, ...] = ()) -> PageFacts:
    raw = body.encode() if isinstance(body, str) else body
    return read_html(raw, url=url, content_type="text/html; charset=utf-8", x_robots=x_robots, token="OurBot")


def _links(facts: PageFacts) -> list[str]:
    return [link.url for link in facts.links]


def test_every_kind_of_link() -> None:
    """Anchors, areas, frames, link elements and meta refresh are followed; the rest is not."""
    facts = _read(
        "<title> A \n page </title><link rel=canonical href=/canon><link rel=stylesheet href=/s.css>"
        "<link rel=next href=/2><meta http-equiv=Refresh content='9; url=/fresh'><meta name=x content=y>"
        "<a href='one#f'>1</a><a href=./one>1</a><map><area href=/area></map><iframe src=/frame></iframe>"
        "<a href=mailto:x@example.org>m</a><a href='#top'>t</a><a href=/no rel='external NoFollow'>n</a>"
        "<img src=/i.png>"
    )
    urls = ["canon", "2", "fresh", "dir/one", "area", "frame"]
    assert sorted(_links(facts)) == sorted(f"http://example.org/{path}" for path in urls)
    assert facts.canonical is not None
    assert facts.canonical.url == "http://example.org/canon"
    assert facts.title == "A page"
    assert facts.nofollow_links == 1
    assert (facts.encoding, facts.nofollow, facts.unparsed) == ("utf-8", False, False)


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("<base href='/other/'>", "http://example.org/other/x"),
        ("<base target=_top><base href='//cdn.example/a/'><base href=/late/>", "http://cdn.example/a/x"),
        ("<base href='javascript:1'>", "http://example.org/dir/x"),
        ("<base href='http://['>", "http://example.org/dir/x"),
        ("", "http://example.org/dir/x"),
    ],
)
def test_base(base: str, expected: str) -> None:
    """The first base href counts, relative ones too, and for links before it; a useless one does not."""
    assert _links(_read("<a href=x>x</a>" + base)) == [expected]


def test_links_in_svg() -> None:
    """Foreign elements whose attribute has a prefix are followed or passed over, never an error."""
    assert _links(_read("<svg><a xlink:href=/x>x</a><base xlink:href=/b/><meta xlink:content=y></svg>")) == [
        "http://example.org/x"
    ]


def test_nofollow_pages() -> None:
    """Meta robots and X-Robots-Tag stop all links; noindex alone stops none; canonical is still known."""
    page = "<link rel=canonical href=/c><a href=/x>x</a>"
    for facts in (_read(f"<meta name=robots content=nofollow>{page}"), _read(page, x_robots=("ourbot: none",))):
        assert (facts.links, facts.nofollow, facts.nofollow_links) == ([], True, 2)
        assert facts.canonical is not None
    assert _links(_read(f"<meta name=OURBOT content=noindex>{page}")) == [
        "http://example.org/c",
        "http://example.org/x",
    ]
    assert not _read(page, x_robots=("otherbot: nofollow",)).nofollow


def test_links_in_the_pages_encoding() -> None:
    """A query on an old page is asked for in that page's bytes."""
    body = "<meta charset=windows-1251><a href='/?q=ж'>x</a>".encode("cp1251")
    facts = read_html(body, url=URL, content_type="text/html", x_robots=(), token="OurBot")
    assert facts.encoding == "windows-1251"
    assert _links(facts) == ["http://example.org/?q=%E6"]


def test_bombs_are_not_parsed() -> None:
    """A parser bomb says only what its headers say."""
    facts = _read(b"<a href=/x>x</a>" + b"<div>" * 20_000, x_robots=("noindex",))
    assert (facts.unparsed, facts.noindex, facts.links) == (True, True, [])
    wide = ("<div>" * 20_000).encode("utf-16-le")
    assert read_html(wide, url=URL, content_type="text/html;charset=utf-16", x_robots=(), token="x").unparsed


def test_only_the_start_of_a_huge_page_is_read() -> None:
    """Past the cap nothing is read."""
    assert _links(_read(b"<a href=/a>x</a>" + b" " * MAX_HTML_BYTES + b"<a href=/b>x</a>")) == ["http://example.org/a"]


def test_words_and_text() -> None:
    """Words are what is seen; text leaves links out."""
    facts = _read("<p>one two <a href=/x>three</a><script>four</script>")
    assert facts.words == 3
    assert facts.text.split() == [b"one", b"two"]


@given(
    st.binary(max_size=300), st.sampled_from([None, "text/html", "text/html; charset=iso-2022-jp", "a;charset=utf-16"])
)
def test_any_bytes_are_a_page(noise: bytes, content_type: str | None) -> None:
    """Nothing is raised, whatever is served."""
    body = b"<base href=x><a href='?" + noise + b"'>x</a>" + noise
    facts = read_html(body, url=URL, content_type=content_type, x_robots=("\x00: ,",), token="")

    assert facts.words >= 0


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("text/html", b"", True),
        ("Text/HTML; charset=x", b"", True),
        ("application/xhtml+xml", b"", True),
        ("text/plain", b"<html>", False),
        (None, b"\xef\xbb\xbf \n<!DOCTYPE html>", True),
        ("", b"<?xml version='1.0'?><html xmlns=x>", True),
        (None, b"<?xml version='1.0'?><rss>", False),
        (None, b"%PDF-1.7", False),
    ],
)
def test_is_html(content_type: str | None, body: bytes, expected: bool) -> None:
    """The type decides; only without one the first bytes do."""
    assert is_html(content_type, body) == expected


@pytest.mark.parametrize(("words", "links", "whole"), [(200, 3, True), (199, 3, False), (200, 2, False)])
def test_words_and_links_suffice(words: int, links: int, whole: bool) -> None:
    """Nothing else is looked at when a page has enough of both."""
    assert looks_whole(words, links) is whole


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0; url=/next", "/next"),
        ("5;URL='/next'", "/next"),
        ('0, url="/a b" junk', "/a b"),
        ("3 /next", "/next"),
        ("0.5; /next", "/next"),
        ("30", None),
        ("0;", None),
        ("url=/next", None),
        ("\t.5\x0c;\nurl = '/a b", "/a b"),
        ("0\x0burl=/next", None),  # no blank of HTML's, nor is this:
        ("0;\xa0/next", "\xa0/next"),
        ("0;url\xa0=/next", "url\xa0=/next"),
        ("\u0663; /next", None),
    ],
)
def test_meta_refresh(content: str, expected: str | None) -> None:
    """The refresh steps of the HTML standard."""
    assert refresh_target(content) == expected


@pytest.mark.parametrize(
    ("tag", "attributes", "followed"),
    [
        ("a", {"href": "/x"}, True),
        ("a", {"href": "#x"}, False),
        ("a", {"href": "javascript:void(0)"}, False),
        ("a", {"href": None}, False),
        ("area", {"href": "/x"}, True),
        ("iframe", {"src": "/x"}, True),
        ("link", {"href": "/x", "rel": "stylesheet"}, False),
        ("link", {"href": "/x", "rel": "Canonical"}, True),
        ("link", {"href": "/x", "rel": "next"}, True),
        ("link", {"href": "/x", "rel": "alternate stylesheet"}, False),
        ("link", {"href": "/x", "rel": "alternate", "hreflang": "de"}, True),
        ("link", {"href": "/x", "rel": "alternate", "type": "application/atom+xml; charset=utf-8"}, True),
        ("link", {"href": "/x", "rel": "alternate", "type": "application/json+oembed"}, False),
    ],
)
def test_which_elements_are_links(tag: str, attributes: dict[str, str | None], followed: bool) -> None:
    """Pages and lists of pages are followed; parts of a page are not."""
    assert (link_target(tag, attributes) is not None) == followed


def test_addresses_keep_each_page_once_in_order() -> None:
    """Spellings of one page are one link, the page itself is none."""
    base = Base("http://example.org/a/")
    links = base.addresses(["b?y&x", "/a/b?x&y", "", "http://other.example/"], base.own_key())
    assert [link.url for link in links] == ["http://example.org/a/b?y&x", "http://other.example/"]
