"""Feeds of every form, the hubs they name, and what only pretends to be one."""

import json

import pytest

from crawlerproject.rules.feeds.feeds import is_feed, link_header, read_feed
from crawlerproject.rules.feeds.xml_entries import Entry

DAY = 1_714_521_600.0  # 2024-05-01
RSS = (
    b'<?xml version="1.0"?><rss xmlns:atom="http://www.w3.org/2005/Atom"><channel><link>http://a.test/</link>'
    b'<atom:link rel="hub" href="http://hub.test/"/><atom:link rel="self" href="http://a.test/feed"/>'
    b"<item><guid>http://a.test/guid</guid><pubDate>Wed, 01 May 2024 00:00:00 GMT</pubDate></item>"
    b'<item><guid isPermaLink="false">17</guid><link>/two</link></item><item><title>no address</title></item>'
    b"</channel></rss>"
)
ATOM = (
    b'<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="http://hub.test/"/><link rel="self" href="/f"/>'
    b"<entry><published>2024-04-01T00:00:00Z</published><updated>2024-05-01T00:00:00Z</updated>"
    b'<link href="/one"/><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><link href="/no"/></div>'
    b"</content></entry></feed>"
)
RDF = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
    b"<channel><link>http://a.test/</link></channel><item><link>http://a.test/1</link></item></rdf:RDF>"
)
JSON = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "feed_url": "http://a.test/feed.json",
        "hubs": [{"type": "WebSub", "url": "http://hub.test/"}, {"type": "rssCloud", "url": "http://no.test/"}],
        "items": [{"id": "1", "url": "/one", "date_modified": "2024-05-01T00:00:00Z"}, {"id": "2"}, 3],
    }
).encode()


@pytest.mark.parametrize(
    ("content_type", "body", "kind", "entries", "hubs", "own"),
    [
        pytest.param("application/rss+xml", RSS, "rss", [Entry("http://a.test/guid", DAY), Entry("/two")],
                     ["http://hub.test/"], "http://a.test/feed", id="RSS 2.0"),
        pytest.param("application/atom+xml", ATOM, "feed", [Entry("/one", DAY)], ["http://hub.test/"], "/f", id="Atom"),
        pytest.param("text/xml; charset=utf-8", RDF, "RDF", [Entry("http://a.test/1")], [], "", id="RSS 1.0"),
        pytest.param("application/json", JSON, "json", [Entry("/one", DAY)], ["http://hub.test/"],
                     "http://a.test/feed.json", id="JSON Feed"),
    ],
)  # fmt: skip
def test_every_form_is_read(
    content_type: str, body: bytes, kind: str, entries: list[Entry], hubs: list[str], own: str
) -> None:
    """Entries with the later of their dates, hubs, and the feed's own address."""
    feed = read_feed(body)

    assert is_feed(content_type, body)
    assert (feed.kind, feed.entries, feed.hubs, feed.self_url, feed.flaw) == (kind, entries, hubs, own, "")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param("application/rss+xml", b"<!DOCTYPE html><html><body>sorry</body></html>", id="HTML called RSS"),
        pytest.param("application/json", b'{"items": []}', id="other JSON"),
        pytest.param("text/html", RSS, id="RSS called HTML is read as a page"),
        pytest.param("application/xml", b"<urlset/>", id="other XML"),
        pytest.param("application/xml", b"<opml><feed/></opml>", id="other XML that holds one"),
    ],
)
def test_what_is_no_feed(content_type: str, body: bytes) -> None:
    """Both the type and the beginning must say so."""
    assert not is_feed(content_type, body)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\n\n" + RSS, id="blank lines before the declaration"),
        pytest.param(b"\xef\xbb\xbf\r\n" + RSS, id="a mark and a blank line"),
        pytest.param(b"<!--" + b"-" * 3000 + b"-->" + RSS, id="three thousand bytes of comment"),
        pytest.param(b"<br />\n<b>Warning</b>: in <b>a.php</b><br />\n" + RSS, id="a program's warnings"),
        pytest.param(RSS.decode().encode("utf-16"), id="UTF-16"),
        pytest.param(RSS.decode().encode("utf-16-be"), id="UTF-16 without a mark"),
        pytest.param(RSS.replace(b'"1.0"', b'"1.0" encoding="x-sjis"'), id="Shift_JIS"),
    ],
)
def test_feeds_are_known_by_their_root(body: bytes) -> None:
    """Whatever stands before it, and in whatever encoding."""
    feed = read_feed(body, "text/xml")

    assert is_feed("text/xml", body)
    assert [entry.url for entry in feed.entries] == ["http://a.test/guid", "/two"]


@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>a page</body></html>",
        b'{"version": "https://jsonfeed.org/version/1", "items": 5',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'<!DOCTYPE rss [<!ENTITY a "b">]><rss><channel><item><link>&a;</link></item></channel></rss>',
        b"\x00\x00\x00",
    ],
)
def test_broken_ones_have_a_flaw_and_no_entries(body: bytes) -> None:
    """Nothing raises."""
    feed = read_feed(body)

    assert feed.flaw
    assert feed.entries == []


def test_hubs_of_link_headers() -> None:
    """RFC 8288, several in one header or in several."""
    values = [
        '<http://hub.test/>; rel="hub", <http://a.test/feed>; rel=self',
        "<http://two.test/>; rel=hub",
        "nonsense",
    ]

    assert link_header(values) == (["http://hub.test/", "http://two.test/"], "http://a.test/feed")


@pytest.mark.parametrize(
    ("value", "hubs"),
    [
        ("<http://h/?a,b>; rel=hub", ["http://h/?a,b"]),
        ('<http://h/>; title="a, <http://no/>; rel=hub"; rel = "self hub"', ["http://h/"]),
        ('<http://h/>; title="a \\" >; rel=no"; REL=HUB , <http://i/;x>;rel=hub', ["http://h/", "http://i/;x"]),
        ("<http://h/>; rel=next; rel=hub, <http://i/>; title=hub; rel", []),
        ("http://h/; rel=hub, <http://i/> ; rel=hub", ["http://i/"]),
        ('<http://h/; rel=hub, <http://i/>; rel="hub', ["http://i/"]),
    ],
)
def test_commas_and_quotes_of_link_headers(value: str, hubs: list[str]) -> None:
    """RFC 8288: what stands in <> or in quotes ends nothing; of several rel the first counts."""
    assert link_header([value])[0] == hubs
