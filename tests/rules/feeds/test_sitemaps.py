"""Sitemaps of every form, whole and hostile."""

import gzip

import pytest

from crawlerproject.rules.feeds.sitemaps import MAX_ENTRIES, may_list, read_sitemap
from crawlerproject.rules.feeds.xml_entries import Entry

ONE, TWO = "http://a.test/1", "http://a.test/2"
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
NEWS = 'xmlns:n="http://www.google.com/schemas/sitemap-news/0.9"'
DAY = 1_714_521_600.0  # 2024-05-01


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
def test_every_form_is_read(body: bytes, kind: str, urls: list[str]) -> None:
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
    assert sitemap.entries == [Entry("http://a.test/1.xml.gz", DAY, True)]


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
        pytest.param(urlset(*[ONE] * 50_005), "more than 50,000 entries", MAX_ENTRIES, id="too many"),
        pytest.param(b"http://a.test/\n" * 50_005, "more than 50,000 entries", MAX_ENTRIES, id="too many lines"),
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
