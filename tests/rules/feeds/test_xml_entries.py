"""Lists that break XML's rules: what is read on after the flaw, and what is no address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.feeds.xml_entries import EntriesReader
from tests.spending import bounded

ONE, TWO = "http://a.test/1", "http://a.test/2"
XHTML = 'xmlns:xhtml="http://www.w3.org/1999/xhtml"'


def urls(text: str, *, url: str = "", piece: int = 1 << 16) -> list[str]:
    """The addresses of a list."""
    return [entry.url for entry in EntriesReader(url).read(text[at : at + piece] for at in range(0, len(text), piece))]


def rss(*items: str) -> str:
    """A feed of such items, and a good one after them."""
    entries = "".join(f"<item>{item}</item>" for item in (*items, f"<link>{TWO}</link>"))
    return f"<rss><channel>{entries}</channel></rss>"


@pytest.mark.parametrize(
    "item",
    [
        f"<title>a & b &nbsp; &undefined; \x03</title><link>{ONE}</link>",
        f"<title>a < b <3 <c</title><link>{ONE}</link>",
        f"<title>never closed<link>{ONE}</link>",
        f"<title>closed otherwise</titel><link>{ONE}</link>",
        f"<description><p>one<br>two<p></description><link>{ONE}</link>",
        f"<p>one<br><link>{ONE}</link>",
        f"</p><link>{ONE}</link></b>",
        f"<media:content url='x'><link>{ONE}</link>",
        f"<link>{ONE}<pubDate>Wed, 01 May 2024</pubDate>",
        f"<link>{ONE}</LINK><title>x</title>",
        f"<LINK>{ONE}</LINK>",
        f"<link>{ONE}<description>never closed</description>",
        f"<link><b>{ONE}</b></link>",
        f"<link>{ONE}</link<title>x</title>",
        f"<link><![CDATA[{ONE}]]></link>",
        f"<link><![CDATA[{ONE}]]</link>",
        "<link>http://a.<!-- not this -->test/1</link>",
        f"<link>\n {ONE}\t</link>",
        f"<title><![CDATA[</title><link>http://no.test/</link>]]></title><link>{ONE}</link>",
        f"<enclosure a=1 a=2 url='x length='3'/><link>{ONE}</link>",
        f'<enclosure title="<b>x</b>"/><link>{ONE}</link>',
        f'<atom:link title="<b>x</b>" href="{ONE}"/>',
        f"<atom:link rel=alternate href={ONE}>",
        f"<source><link>http://no.test/</link><title>x</title></source><link>{ONE}</link>",
        f'<foo:link xmlns:foo="http://foo.test/">http://no.test/</foo:link><link>{ONE}</link>',
        f'<link xmlns="http://www.w3.org/1999/xhtml" href="http://no.test/"/><link>{ONE}</link>',
        f'<media:group><media:link href="http://no.test/"/></media:group><link>{ONE}</link>',
        f'<atom:link rel="enclosure" href="http://no.test/"/><link>{ONE}</link>',
        f'<atom:link rel="alternate" type="application/json" href="http://no.test/"/><link>{ONE}</link>',
        f'<guid isPermaLink="false">http://no.test/</guid><link>{ONE}</link>',
        f"<guid>{ONE}</guid>",
        f"<guid isPermaLink='TRUE'>{ONE}</guid><link/>",
        f"<id>{ONE}</id>",
        "<link>&#104;ttp://a.test/&#x31;</link>",
        f"<dc:date>2024-05-01</dc:date><link>{ONE}</link><date>x</date>",
    ],
)  # fmt: skip
def test_what_is_read_of_a_broken_entry(item: str) -> None:
    """Its own address, and the next entry whole."""
    assert urls(rss(item)) == [ONE, TWO]


@pytest.mark.parametrize(
    "item",
    [
        '<guid isPermaLink="false">http://no.test/</guid>',
        "<guid>17</guid>",
        "<id>urn:uuid:1</id>",
        "<link> </link>",
        "<title>x</title>",
        "<source><link>http://no.test/</link></source>",
        "<link>http://a.test/" + "x" * 5000 + "</link>",
        "<!-- <link>http://no.test/</link> -->",
    ],
)
def test_what_is_no_address(item: str) -> None:
    """An entry without one is left out."""
    assert urls(rss(item)) == [TWO]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"<urlset {XHTML}><url><xhtml:link href='http://no.test/'/><loc>{ONE}</loc></url></urlset>", [ONE],
                     id="an alternate before the address"),
        pytest.param(f"<urlset><url><xhtml:link href='x'/><loc>{ONE}</loc></url></urlset>", [ONE],
                     id="a prefix that nothing declares"),
        pytest.param(f"<s:urlset xmlns:s='http://wrong.test/'><s:url><s:loc>{ONE}</s:loc></s:url></s:urlset>", [ONE],
                     id="another prefix and namespace"),
        pytest.param(f"<urlset xmlns='https://www.sitemaps.org/schemas/sitemap/0.84/'><url><image:image><image:loc>x"
                     f"</image:loc></image:image><image:loc>y</image:loc><loc>{ONE}</loc></url></urlset>", [ONE],
                     id="an image's address"),
        pytest.param(f"<urlset><url><loc>{ONE}</loc><url><loc>{TWO}</loc></urlset>", [ONE, TWO], id="no ends"),
        pytest.param(f"<urlset><url><loc>{ONE}</url><url><loc>{TWO}</url>", [ONE, TWO], id="no end of addresses"),
        pytest.param(f"<urlset><url><loc>{ONE}</loc></url></urlset><!-- {TWO} --><b>x</b>", [ONE], id="after the root"),
        pytest.param(f"<urlset><url><loc>{ONE}</loc></url></urlset>\n<?xml version='1.0'?><urlset><url><loc>{TWO}</loc>"
                     "</url></urlset>", [ONE, TWO], id="two documents"),
        pytest.param(f"<urlset><url><loc>{ONE}</loc></url><url><loc>http://a.test/cut", [ONE], id="cut in an address"),
        pytest.param(f"<urlset><url><loc>{ONE}</loc><lastm", [ONE], id="cut after it"),
        pytest.param(f"<urlset><url><loc>{ONE}?a=1&b=2&copy=3&amp;lt=4</loc></url></urlset>",
                     [f"{ONE}?a=1&b=2&copy=3&lt=4"], id="bare ampersands"),
        pytest.param(f"<!DOCTYPE urlset [<!ENTITY x 'y'> <!ELEMENT a (#PCDATA)>]><urlset><url><loc>{ONE}&x;</loc></url>"
                     f"<url><loc>{TWO}</loc></url></urlset>", [TWO], id="an entity within an address"),
        pytest.param(f"<!DOCTYPE urlset SYSTEM 'a'><urlset><url><loc>{ONE}</loc></url></urlset>", [ONE], id="a DTD"),
        pytest.param(f"<urlset><!-- x <url><loc>{ONE}</loc></url></urlset>", [], id="a comment without its end"),
    ],
)  # fmt: skip
def test_sitemaps(text: str, expected: list[str]) -> None:
    """Namespaces as people write them, and documents without their ends."""
    assert urls(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<feed xml:base="http://b.test/x/"><entry><link href="y"/></entry></feed>', ["http://b.test/x/y"]),
        ('<feed xml:base="x/"><entry xml:base="y/"><link href="z"/></entry><entry><link href="z"/></entry></feed>',
         ["http://a.test/f/x/y/z", "http://a.test/f/x/z"]),
        ('<rss><item><link xml:base="//b.test">y</link></item><item><link>z</link></item></rss>',
         ["http://b.test/y", "z"]),
        ('<rss xml:base="/x/"><item><guid>http://c.test/</guid></item></rss>', ["http://c.test/"]),
        ('<feed xml:base="http://b.test/x/"><entry xml:base="y/"><entry><link href="z"/></entry></feed>',
         ["http://b.test/x/z"]),
    ],
)  # fmt: skip
def test_addresses_are_resolved_by_their_base(text: str, expected: list[str]) -> None:
    """XML Base: of the element, of what is around it, of the document; without any they stay as written."""
    assert urls(text, url="http://a.test/f/feed") == expected


def test_hubs_are_the_feeds_own() -> None:
    """Not those of an entry, nor of other namespaces; without a type or with any."""
    reader = EntriesReader()
    text = (
        '<feed><link rel="hub" href="http://hub.test/?a=1&amp;b=2"/><x:link rel="hub" href="http://no.test/"/>'
        '<link rel="self" type="application/atom+xml" href="/f"/><entry><link rel="hub" href="http://no.test/"/></entry></feed>'
    )

    assert list(reader.read([text])) == []
    assert (reader.hubs, reader.self_url, reader.flaw) == (["http://hub.test/?a=1&b=2"], "/f", "")


@pytest.mark.parametrize("unit", ["<a>", " <a> ", "<", "</a", "<!--", "<![CDATA[", '<a b="<', "<a xmlns:b='c'>", "&a;"])
def test_an_address_without_end_costs_in_proportion(unit: str) -> None:
    """Whatever stands in it: half a megabyte takes no square of its time."""
    with bounded(3.0):
        assert urls("<urlset><url><loc>" + unit * (500_000 // len(unit))) == []


FRAGMENTS = (
    *("<rss>", "<urlset>", "<feed xml:base='/x/'>", "<item>", "</item>", "<url>", "</url>", "<entry>", "</entry>"),
    *("<loc>", "</loc>", "<link>", "</link>", "<link href='/y'/>", "<title>", "</title>", "http://a.test/", "&amp;"),
    *("&", "<", ">", "'", '"', "<!--", "-->", "<![CDATA[", "]]>", "<?x", "?>", "<!DOCTYPE x [", "]>", " ", "<a b='"),
    *(
        "<x:y xmlns:x='u'>",
        "</x:y>",
        "</rss>",
        "<pubDate>2024-05-01</pubDate>",
        "<guid isPermaLink='false'>",
        "</guid>",
    ),
)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join), st.integers(1, 30))
def test_pieces_make_no_difference(text: str, piece: int) -> None:
    """A list that comes in pieces of any size is the same list; nothing raises."""
    whole, cut = EntriesReader(), EntriesReader()

    assert list(whole.read([text])) == list(cut.read(text[at : at + piece] for at in range(0, len(text), piece)))
    assert (whole.kind, whole.flaw, whole.hubs) == (cut.kind, cut.flaw, cut.hubs)
