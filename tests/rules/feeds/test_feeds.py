"""Sitemaps, feeds and their text: every form is read, hostile and broken ones to a bound."""

import gzip
import json
from collections.abc import Iterator

import pytest

from crawlerproject.rules.feeds.feeds import (
    MAX_SITEMAP_ENTRIES,
    is_feed,
    link_header,
    may_list,
    read_feed,
    read_sitemap,
    text_pieces,
)
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


ONE, TWO = "http://a.test/1", "http://a.test/2"
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
NEWS = 'xmlns:n="http://www.google.com/schemas/sitemap-news/0.9"'
FIRST_DAY = 1_714_521_600.0  # 2024-05-01


def urlset(*urls: str, head: str = '<?xml version="1.0" encoding="UTF-8"?>') -> bytes:
    """A list of pages."""
    rows = "".join(f"<url><loc>{url}</loc><lastmod>2024-05-01</lastmod></url>" for url in urls)
    return f"{head}<urlset {NS}>{rows}</urlset>".encode()


def bomb() -> bytes:
    """Entities within entities: three gigabytes if anybody expanded them."""
    lines = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return f'<!DOCTYPE urlset [<!ENTITY l0 "lol">{lines}]><urlset><url><loc>&l9;</loc></url></urlset>'.encode()


@pytest.mark.parametrize(
    ("body", "kind", "urls"),
    [
        pytest.param(urlset(ONE, TWO), "urlset", [ONE, TWO], id="xml"),
        pytest.param(gzip.compress(urlset("http://a.test/1")), "urlset", ["http://a.test/1"], id="gzip"),
        pytest.param(b"\xef\xbb\xbf" + urlset("http://a.test/1"), "urlset", ["http://a.test/1"], id="byte order mark"),
        pytest.param(urlset(ONE + "?a=1&amp;b=2"), "urlset", [ONE + "?a=1&b=2"], id="escaped ampersand"),
        pytest.param(urlset("\n  http://a.test/1\n"), "urlset", ["http://a.test/1"], id="blanks around"),
        pytest.param(gzip.compress(urlset(ONE)[:-9]) + gzip.compress(b"<url><loc>http://a.test/2</loc></url></urlset>")
                     + b"\0\0", "urlset", [ONE, TWO], id="gzip of two members and padding"),
        pytest.param(b"\xef\xbb\xbf\n \n" + urlset(ONE), "urlset", [ONE], id="byte order mark and blank lines"),
        pytest.param(b"<!-- made by hand -->\n" + urlset(ONE), "urlset", [ONE], id="comment before the declaration"),
        pytest.param(f"{ONE}\r\n{TWO}\n\nnot one\n".encode(), "text", [ONE, TWO], id="text"),
        pytest.param(b"\xef\xbb\xbfhttp://a.test/1", "text", ["http://a.test/1"], id="text, no line end"),
        pytest.param(f"\n{ONE}\r{TWO}".encode("utf-16"), "text", [ONE, TWO], id="text in UTF-16, old line ends"),
        pytest.param(
            f'<urlset {NS} {NEWS}><url><loc>http://a.test/n</loc><n:news><n:publication_date>2024-05-01</n:publication_date>'
            "<n:title>t</n:title><n:loc>no</n:loc></n:news></url></urlset>".encode(),
            "urlset", ["http://a.test/n"], id="news",
        ),
        pytest.param(
            b"<rss><channel><link>http://a.test/</link><item><title>x</title><link>http://a.test/r</link>"
            b"<pubDate>Wed, 01 May 2024 00:00:00 GMT</pubDate></item></channel></rss>",
            "rss", ["http://a.test/r"], id="RSS",
        ),
        pytest.param(
            b'<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://a.test/"/><entry>'
            b'<link rel="edit" href="/no"/><link href="http://a.test/e"/><updated>2024-05-01T00:00:00Z</updated></entry></feed>',
            "feed", ["http://a.test/e"], id="Atom",
        ),
        pytest.param('<urlset><url><loc>http://a.test/ü</loc></url></urlset>'.encode("windows-1252"),
                     "urlset", ["http://a.test/ü"], id="not UTF-8 though it says nothing"),
        pytest.param('<?xml version="1.0" encoding="windows-1251"?><urlset><url><loc>http://a.test/я</loc></url></urlset>'
                     .encode("windows-1251"), "urlset", ["http://a.test/я"], id="declared encoding"),
    ],
)  # fmt: skip
def test_every_form_of_a_sitemap_is_read(body: bytes, kind: str, urls: list[str]) -> None:
    """XML, gzip, text, RSS and Atom: the same addresses."""
    sitemap = read_sitemap(body)

    assert [entry.url for entry in sitemap.entries] == urls
    assert sitemap.kind == kind


def test_an_index_lists_sitemaps() -> None:
    """Its entries are sitemaps, with their dates; a page within it is not believed."""
    body = (
        f"<sitemapindex {NS}><sitemap><loc>http://a.test/1.xml.gz</loc><lastmod>2024-05-01T00:00:00+00:00</lastmod></sitemap>"
        "<url><loc>http://a.test/page</loc></url></sitemapindex>"
    )

    sitemap = read_sitemap(body.encode())

    assert sitemap.index
    assert sitemap.entries == [Entry("http://a.test/1.xml.gz", FIRST_DAY, True)]


@pytest.mark.parametrize(
    ("body", "flaw", "found"),
    [
        pytest.param(bomb(), "declares entities", 0, id="billion laughs"),
        pytest.param(
            b'<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url></urlset>',
            "declares entities", 0, id="external entity",
        ),
        pytest.param(urlset("http://a.test/1")[:-9] + b"<url><loc>http", "breaks off before", 1, id="breaks off"),
        pytest.param(b"<html><body>no sitemap</body></html>", "not a sitemap but <html>", 0, id="HTML"),
        pytest.param(b"", "not well-formed", 0, id="empty"),
        pytest.param(b"<b>Warning</b>", "not well-formed", 0, id="nothing but a warning"),
        pytest.param(b"\x1f\x8b broken", "broken gzip", 0, id="broken gzip"),
        pytest.param(gzip.compress(urlset("http://a.test/1"))[:-9], "gzip that ends early", 1, id="torn gzip"),
        pytest.param(b"<a>" * 1000, "not a sitemap but <a>", 0, id="nested for ever"),
        pytest.param(urlset(*[ONE] * 50_005), "more than 50,000 entries", MAX_SITEMAP_ENTRIES, id="too many"),
        pytest.param(b"http://a.test/\n" * 50_005, "more than 50,000 entries", MAX_SITEMAP_ENTRIES, id="many lines"),
        pytest.param(urlset("http://a.test/" + "a" * 5000, "http://a.test/1"), "", 1, id="an endless address"),
        pytest.param(b"<urlset>" + b"<a>" * 1000 + b"<url><loc>http://a.test/", "breaks off", 0, id="nested, then cut"),
        pytest.param(b'<?xml version="1.0" encoding="klingon"?><urlset/>', "", 0, id="unknown encoding"),
    ],
)  # fmt: skip
def test_hostile_ones_are_refused_with_a_reason(body: bytes, flaw: str, found: int) -> None:
    """What stood before the flaw counts, nothing is expanded or loaded, and the flaw has a word."""
    sitemap = read_sitemap(body)

    assert flaw in sitemap.flaw
    assert len(sitemap.entries) == found


def test_a_gzip_bomb_stops_at_fifty_megabytes() -> None:
    """A gigabyte of blanks in a megabyte: cut, not held."""
    import tracemalloc

    body = gzip.compress(b"<urlset>" + b" " * (200 * 1024 * 1024), 9)
    tracemalloc.start()
    sitemap = read_sitemap(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert "50 MB" in sitemap.flaw
    assert peak < 4 * 1024 * 1024


def test_a_site_speaks_for_itself_or_for_who_names_it() -> None:
    """sitemaps.org: cross submits only through the robots.txt of the host that is listed."""
    assert may_list("a.test", "a.test", "")
    assert not may_list("b.test", "a.test", "")
    assert may_list("b.test", "a.test", "b.test")
    assert not may_list("a.test", "a.test", "b.test")


WORD = "<a>Größe ①</a>"


def text(body: bytes, content_type: str | None = None, piece_bytes: int = 7) -> str:
    """The text of a body that comes in small pieces, which end within characters."""

    def pieces() -> Iterator[bytes]:
        yield body[:64]
        for at in range(64, len(body), piece_bytes):
            yield body[at : at + piece_bytes]

    return "".join(text_pieces(pieces(), content_type))


@pytest.mark.parametrize(
    ("codec", "label"),
    [
        ("utf-8", "utf8"),
        ("utf-8", "UTF-8"),
        ("gb18030", "gb2312"),
        ("gb18030", "GBK"),
        ("big5", "big5"),
        ("cp932", "windows-31j"),
        ("euc_jp", "x-euc-jp"),
        ("iso2022_jp", "ISO-2022-JP"),
        ("cp949", "euc-kr"),
        ("cp874", "windows-874"),
        ("cp1251", "x-cp1251"),
    ],
)
def test_each_encoding_by_its_label(codec: str, label: str) -> None:
    """In the declaration or in Content-Type, whole though its pieces are cut anywhere."""
    letters = {"cp949": "한글", "cp874": "กข", "cp1251": "яжы", "gb18030": "中文", "big5": "中文"}.get(codec, "日本")
    declared = f'<?xml version="1.0" encoding="{label}"?><a>{letters * 40}</a><b>{letters}</b>'
    silent = f"<a>{letters * 40}</a>"

    assert text(declared.encode(codec)) == declared
    assert text(silent.encode(codec), f"text/xml; charset={label}") == silent


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        pytest.param("\ufeffä".encode(), "text/xml; charset=windows-1251", "ä", id="the mark before the header"),
        pytest.param("ä".encode("cp1252"), None, "ä", id="no UTF-8: windows-1252"),
        pytest.param("ö ".encode() + b"\xe4", "text/xml; charset=utf-8", "ö ä", id="a letter of another encoding"),
        pytest.param(
            '<?xml version="1.0" encoding="windows-1251"?>я'.encode("cp1251"), "text/xml; charset=utf-8",
            '<?xml version="1.0" encoding="windows-1251"?>я', id="a server's default that is not true",
        ),
        pytest.param(
            '<?xml version="1.0" encoding="windows-1252"?>я'.encode("cp1251"), "text/xml; charset=windows-1251",
            '<?xml version="1.0" encoding="windows-1252"?>я', id="the header before the declaration (RFC 7303 3.2)",
        ),
        pytest.param(b'<?xml encoding="utf-16"?>a', None, '<?xml encoding="utf-16"?>a', id="ASCII that says UTF-16"),
        pytest.param("\n<a>".encode("utf-16-le"), None, "\n<a>", id="UTF-16 without a mark, after a blank"),
        pytest.param(b"<?xml encoding='klingon'?>" + "ä".encode(), None, "<?xml encoding='klingon'?>ä", id="no label"),
        pytest.param("ä".encode()[:1], None, "Ã", id="half a letter at the end"),
        pytest.param(b"", None, "", id="nothing"),
    ],
)  # fmt: skip
def test_the_order_of_labels(body: bytes, content_type: str | None, expected: str) -> None:
    """What is in the bytes outweighs what is said of them."""
    assert text(body, content_type) == expected
