"""rules/links: which elements lead somewhere."""

import pytest

from crawlerproject.rules.page.links import gather, link_target, refresh_target
from crawlerproject.rules.url.urls import Base, parse


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


def test_gather_keeps_each_page_once_in_order() -> None:
    """Spellings of one page are one link, the page itself is none."""
    base = Base("http://example.org/a/")
    links = gather(base, ["b?y&x", "/a/b?x&y", "", "http://other.example/"], parse(base.url).key)
    assert [link.address.url for link in links] == ["http://example.org/a/b?y&x", "http://other.example/"]
    assert {link.kind for link in links} == {"L"}
