"""Two thousand feeds and sitemaps with the flaws that the field's bug trackers report, made from a seed.

Each is a sound list of a few entries to which one flaw, or two, are done. What it lists is known, since it was made:
``FLAWS`` says of each flaw where it was reported.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

LISTS = 2000
SEED = 20_261_124
FEEDS = ("rss", "atom", "rdf")
SITEMAPS = ("urlset", "sitemapindex")
_WORDS = ["harbour", "lamp", "Größe", "señal", "7", "déjà-vu", "river", "¿qué?", "naïve", "oak"]
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


@dataclass(slots=True)
class Draft:
    """A list before its flaws, as they leave it."""

    kind: str
    urls: list[str]
    head: str
    entries: list[str]
    tail: str
    declaration: str = '<?xml version="1.0" encoding="UTF-8"?>\n'
    codec: str = "utf-8"
    content_type: str = "text/xml"
    before: bytes = b""  # the declaration
    octets: list[Callable[[bytes], bytes]] = field(default_factory=list)  # done to the bytes, in order

    def body(self) -> bytes:
        """The bytes that a server sends."""
        text = self.declaration + self.head + "".join(self.entries) + self.tail
        body = self.before + text.encode(self.codec, "xmlcharrefreplace")
        for change in self.octets:
            body = change(body)
        return body


class Made(NamedTuple):
    """One list, and what it lists."""

    name: str  # number, form, flaws
    is_feed: bool
    body: bytes
    content_type: str
    urls: list[str]


class Flaw(NamedTuple):
    """A way to be broken."""

    name: str
    kinds: tuple[str, ...]
    source: str  # where it was reported: a tracker and its number
    do: Callable[[Draft, random.Random], None]


def made(count: int = LISTS, seed: int = SEED) -> Iterator[Made]:
    """The corpus: half of it feeds, every flaw in turn."""
    chance = random.Random(seed)
    for number in range(count):
        is_feed = number % 2 == 0
        flaws = [flaw for flaw in FLAWS if set(flaw.kinds) & set(FEEDS if is_feed else (*SITEMAPS, "text"))]
        first = flaws[number // 2 % len(flaws)]
        kind = chance.choice([kind for kind in first.kinds if (kind in FEEDS) == is_feed])
        draft = _draft(kind, chance)
        first.do(draft, chance)
        names = [first.name]
        if chance.random() < 0.2 and first.name not in _ALONE:
            second = chance.choice(
                [flaw for flaw in flaws if kind in flaw.kinds and flaw.name not in (*_ALONE, *names)]
            )
            second.do(draft, chance)
            names.append(second.name)
        yield Made(f"{number:04}/{kind}/{'+'.join(names)}", is_feed, draft.body(), draft.content_type, draft.urls)


def _draft(kind: str, chance: random.Random) -> Draft:
    folders = chance.choices(("p", "shop/x", "ü"), k=chance.randint(3, 9))
    urls = [f"http://a{chance.randrange(9)}.test/{folder}/{n}?a={n}&b=2" for n, folder in enumerate(folders)]
    title = " ".join(chance.sample(_WORDS, 3))
    days = [f"{chance.randint(1, 28):02}" for _ in urls]
    written = [url.replace("&", "&amp;") for url in urls]
    if kind == "rss":
        head = f'<rss version="2.0"><channel><title>{title}</title><link>http://home.test/</link>\n'
        entries = [
            f"<item>\n<title>{title}</title>\n<link>{url}</link>\n<description>&lt;p&gt;{title}</description>\n"
            f'<guid isPermaLink="false">{day}</guid>\n<pubDate>Wed, {day} May 2024 10:00:00 GMT</pubDate>\n</item>\n'
            for url, day in zip(written, days, strict=True)
        ]
        return Draft(kind, urls, head, entries, "</channel></rss>\n")
    if kind == "atom":
        head = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>{title}</title><link href="http://home.test/"/>\n'
        entries = [
            f'<entry>\n<title>{title}</title>\n<id>urn:x:{day}</id>\n<link href="{url}"/>\n'
            f"<updated>2024-05-{day}T10:00:00Z</updated>\n</entry>\n"
            for url, day in zip(written, days, strict=True)
        ]
        return Draft(kind, urls, head, entries, "</feed>\n", content_type="application/atom+xml")
    if kind == "rdf":
        head = (
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>{title}</title></channel>\n'
        )
        entries = [
            f"<item>\n<title>{title}</title>\n<link>{url}</link>\n<dc:date>2024-05-{day}</dc:date>\n</item>\n"
            for url, day in zip(written, days, strict=True)
        ]
        return Draft(kind, urls, head, entries, "</rdf:RDF>\n")
    if kind == "text":
        return Draft(kind, urls, "", [f"{url}\n" for url in urls], "", "", content_type="text/plain")
    tag = {"urlset": "url", "sitemapindex": "sitemap"}[kind]
    entries = [
        f"<{tag}>\n<loc>{url}</loc>\n<lastmod>2024-05-{day}</lastmod>\n</{tag}>\n"
        for url, day in zip(written, days, strict=True)
    ]
    return Draft(kind, urls, f'<{kind} xmlns="{_NAMESPACE}">\n', entries, f"</{kind}>\n")


def _into(draft: Draft, chance: random.Random, text: str) -> None:
    """``text`` behind the start tag of an entry, or before its end tag."""
    at = chance.randrange(len(draft.entries))
    entry = draft.entries[at]
    inside = entry.index(">") + 1 if chance.random() < 0.5 else entry.rindex("</")
    draft.entries[at] = entry[:inside] + text + entry[inside:]


def _replace(draft: Draft, chance: random.Random, old: str, new: str) -> None:
    at = chance.randrange(len(draft.entries))
    draft.entries[at] = draft.entries[at].replace(old, new)


def _before(*starts: bytes) -> Callable[[Draft, random.Random], None]:
    def do(draft: Draft, chance: random.Random) -> None:
        draft.before = chance.choice(starts)

    return do


def _inside(*texts: str) -> Callable[[Draft, random.Random], None]:
    return lambda draft, chance: _into(draft, chance, chance.choice(texts))


def _instead(*pairs: tuple[str, str]) -> Callable[[Draft, random.Random], None]:
    def do(draft: Draft, chance: random.Random) -> None:
        _replace(draft, chance, *chance.choice([pair for pair in pairs if pair[0] in draft.entries[0]] or list(pairs)))

    return do


def _whole(*pairs: tuple[str, str]) -> Callable[[Draft, random.Random], None]:
    """In the head, all entries and the tail."""

    def do(draft: Draft, chance: random.Random) -> None:
        for old, new in pairs:
            draft.head, draft.tail = draft.head.replace(old, new), draft.tail.replace(old, new)
            draft.entries = [entry.replace(old, new) for entry in draft.entries]

    return do


def _after(*ends: str) -> Callable[[Draft, random.Random], None]:
    def do(draft: Draft, chance: random.Random) -> None:
        draft.tail += chance.choice(ends)

    return do


def _octets(change: Callable[[bytes], bytes]) -> Callable[[Draft, random.Random], None]:
    return lambda draft, _: draft.octets.append(change)


def _encoded(*labels: tuple[str, str, str]) -> Callable[[Draft, random.Random], None]:
    """Label, codec and letters: declared, or in Content-Type where the declaration names none."""

    def do(draft: Draft, chance: random.Random) -> None:
        label, draft.codec, letters = chance.choice(labels)
        draft.declaration = f'<?xml version="1.0" encoding="{label}"?>\n' if draft.declaration else ""
        if not draft.declaration or chance.random() < 0.3:
            draft.content_type += f"; charset={label}"
        if draft.kind != "text":
            _into(draft, chance, f"<title>{letters}</title>")
        plain = [url.replace("ü", "u") for url in draft.urls]
        draft.urls, draft.entries = plain, [entry.replace("/ü/", "/u/") for entry in draft.entries]

    return do


def _declaration(written: str, entities: str = "") -> Callable[[Draft, random.Random], None]:
    def do(draft: Draft, chance: random.Random) -> None:
        draft.declaration = written
        if entities:
            _into(draft, chance, entities)

    return do


def _nothing(draft: Draft, chance: random.Random) -> None:
    """Sound, as most are."""


def _not_utf8(draft: Draft, chance: random.Random) -> None:
    _into(draft, chance, "<title>caf\ue000</title>")
    draft.octets.append(lambda body: body.replace("\ue000".encode(), b"\xe9"))


def _no_end(draft: Draft, chance: random.Random) -> None:
    draft.tail = ""


def _cut(draft: Draft, chance: random.Random) -> None:
    """The server's time is over."""
    keep = chance.randrange(1, len(draft.entries))
    broken = draft.entries[keep]
    address = broken.index("http")
    draft.entries, draft.urls = [*draft.entries[:keep], broken[: chance.randrange(1, address + 5)]], draft.urls[:keep]
    draft.tail = ""


def _pick(draft: Draft, chance: random.Random) -> tuple[int, int, str]:
    """The place of an address and of its entry, and the address as written."""
    found = [
        (at, place, written)
        for at, url in enumerate(draft.urls)
        for place, entry in enumerate(draft.entries)
        if (written := url.replace("&", "&amp;")) in entry
    ]
    return chance.choice(found)


def _base(draft: Draft, chance: random.Random) -> None:
    draft.head = draft.head.replace(" ", ' xml:base="http://base.test/x/" ', 1)
    at, place, written = _pick(draft, chance)
    draft.entries[place] = draft.entries[place].replace(written, "page/1")
    draft.urls[at] = "http://base.test/x/page/1"


def _permalink(draft: Draft, chance: random.Random) -> None:
    at, place, written = _pick(draft, chance)
    entry = draft.entries[place].replace(f"<link>{written}</link>", "")
    kind = chance.choice(("", ' isPermaLink="true"', ' isPermaLink="false"'))
    start, end = entry.index("<guid"), entry.index("</guid>")
    draft.entries[place] = f"{entry[:start]}<guid{kind}>{written}{entry[end:]}"
    if "false" in kind:
        del draft.urls[at]


def _bare_address(draft: Draft, chance: random.Random) -> None:
    _replace(draft, chance, "&amp;b", "&b")


def _in_cdata(draft: Draft, chance: random.Random) -> None:
    at, place, written = _pick(draft, chance)
    draft.entries[place] = draft.entries[place].replace(written, f"<![CDATA[{draft.urls[at]}]]>")


def _two_documents(draft: Draft, chance: random.Random) -> None:
    at = chance.randrange(1, len(draft.entries))
    draft.entries.insert(at, draft.tail + draft.head)


def _second_member(draft: Draft, chance: random.Random) -> None:
    at = chance.randint(20, 60)
    draft.octets.append(lambda body: gzip.compress(body[:at]) + gzip.compress(body[at:]) + b"\0\0")


def _any_date(*dates: str) -> Callable[[Draft, random.Random], None]:
    def do(draft: Draft, chance: random.Random) -> None:
        at = chance.randrange(len(draft.entries))
        for tag in ("pubDate", "updated", "dc:date", "lastmod"):
            head, opened, rest = draft.entries[at].partition(f"<{tag}>")
            if opened:
                draft.entries[at] = f"{head}{opened}{chance.choice(dates)}{rest[rest.index('<') :]}"

    return do


_XML = (*FEEDS, *SITEMAPS)
_ALL = (*_XML, "text")
_ASIAN = (
    ("gb2312", "gb18030", "港口"),
    ("GBK", "gb18030", "港口"),
    ("gb18030", "gb18030", "港口"),
    ("big5", "big5", "港口"),
    ("Shift_JIS", "cp932", "港口"),
    ("windows-31j", "cp932", "港口①"),
    ("euc-jp", "euc_jp", "港口"),
    ("euc-kr", "cp949", "항구"),
)
_EUROPEAN = (
    ("iso-8859-1", "cp1252", "señal"),
    ("windows-1252", "cp1252", "“x”"),
    ("windows-1251", "cp1251", "порт"),
    ("koi8-r", "koi8-r", "порт"),
    ("iso-8859-2", "iso8859-2", "żółw"),
    ("windows-874", "cp874", "ท่าเรือ"),
    ("utf8", "utf-8", "señal"),
)
FLAWS = (
    Flaw("none", _ALL, "", _nothing),
    Flaw(
        "blank lines first",
        _XML,
        "crawler-commons#144, rss2email/rss2email#271, linkchecker#506",
        _before(b"\n", b"\r\n\r\n", b"  \n"),
    ),
    Flaw(
        "mark and blank lines",
        _XML,
        "GateNLP/ultimate-sitemap-parser#10",
        _before(b"\xef\xbb\xbf\n", b"\n\xef\xbb\xbf"),
    ),
    Flaw("mark", _ALL, "GateNLP/ultimate-sitemap-parser#10", _before(b"\xef\xbb\xbf")),
    Flaw(
        "comment first",
        _XML,
        "XML 1.0, 2.8: nothing stands before the declaration",
        _before(b"<!-- cached -->\n", b"<!--" + b"x" * 2000 + b"-->"),
    ),
    Flaw(
        "warnings first",
        _XML,
        "ukwa/ukwa-heritrix#44: content is not allowed in prolog",
        _before(
            b"<br />\n<b>Warning</b>: foo() in <b>/a.php</b> on line <b>3</b><br />\n", b"Notice: undefined index\n"
        ),
    ),
    Flaw(
        "bare ampersand",
        _XML,
        "miniflux#416, feedparser#117, Komodo/komodo-website#28",
        _inside("<title>A & B</title>", "<title>R&D</title>"),
    ),
    Flaw(
        "bare ampersand in an address", _XML, "feedbin/support#590, k9mail.app#214, crawler-commons#169", _bare_address
    ),
    Flaw(
        "HTML's entities",
        _XML,
        "feedparser#121, brief-rss/brief#184, lemon24/reader#270",
        _inside("<title>a&nbsp;b &rsquo;c&rsquo; &eacute;</title>"),
    ),
    Flaw("unknown entity", _XML, "feedparser#121", _inside("<title>&foo; &bar</title>")),
    Flaw(
        "control characters",
        _XML,
        "feedparser#101: invalid token",
        _inside("<title>a\x03b\x0bc\x1f</title>", "<x>\x08</x>"),
    ),
    Flaw("not UTF-8", _XML, "feedparser#101: badly encoded", _not_utf8),
    Flaw(
        "less-than in text",
        _XML,
        "BOINC/boinc#876: an HTML-like tag",
        _inside("<title>a < b</title>", "<title>I <3 it</title>", "<title>1<2</title>"),
    ),
    Flaw(
        "HTML in text",
        FEEDS,
        "BOINC/boinc#876",
        _inside("<description><p>one<br>two<b>x</p></description>", "<summary>a<br>b</summary>"),
    ),
    Flaw("end tag without a start", _XML, "wking/rss2email#36: mismatched tag", _inside("</b>", "</p>", "</x>")),
    Flaw("tag that is not closed", _XML, "wking/rss2email#36: mismatched tag", _inside("<x>", "<b>", "<br>")),
    Flaw("title that is not closed", ("rss", "rdf"), "wking/rss2email#36", _instead(("</title>", ""))),
    Flaw(
        "title closed otherwise",
        FEEDS,
        "wking/rss2email#36",
        _instead(("</title>", "</titel>"), ("</title>", "</Title>")),
    ),
    Flaw(
        "entry that is not closed",
        _XML,
        "wking/rss2email#36",
        _instead(("</item>", ""), ("</entry>", ""), ("</url>", ""), ("</sitemap>", "")),
    ),
    Flaw(
        "address that is not closed",
        ("rss", "rdf", *SITEMAPS),
        "wking/rss2email#36",
        _instead(("</link>", ""), ("</loc>", "")),
    ),
    Flaw(
        "cut off", (*FEEDS, *SITEMAPS), "ultimate-sitemap-parser, fetch_parse.py: servers time out on huge files", _cut
    ),
    Flaw("no end of the root", _XML, "as above", _no_end),
    Flaw(
        "text after the root",
        _XML,
        "XML 1.0, 2.1: one root element",
        _after("cached in 3 s", "<!-- page 3 -->", "<script>a()</script>", "\0\0"),
    ),
    Flaw("two documents", _XML, "XML 1.0, 2.1: one root element", _two_documents),
    Flaw("address in CDATA", ("rss", "rdf", *SITEMAPS), "ekalinin/sitemap.js#445", _in_cdata),
    Flaw(
        "markup in CDATA",
        FEEDS,
        "feedparser, tests/illformed/rss_incomplete_cdata.xml",
        _inside("<description><![CDATA[<p>a & b <link>http://no.test/</link></item>]]></description>"),
    ),
    Flaw("attribute twice", _XML, "XML 1.0, 3.1: unique", _inside('<x a="1" a="2"/>')),
    Flaw(
        "attribute without quotes",
        _XML,
        "XML 1.0, 3.1: quoted",
        _inside("<x a=1/>", "<enclosure url=http://no.test/x.mp3 length=3/>"),
    ),
    Flaw(
        "less-than in an attribute",
        _XML,
        "XML 1.0, 3.1: no < in values",
        _inside('<x a="<b>1</b>"/>', '<x a="1 < 2"/>'),
    ),
    Flaw(
        "prefix not declared",
        _XML,
        "feedparser, tests/illformed/undeclared_namespace.xml",
        _inside("<media:title>x</media:title>", "<xhtml:link rel='alternate' href='http://no.test/'/>"),
    ),
    Flaw(
        "foreign link",
        FEEDS,
        "crawler-commons#173: elements of another namespace",
        _inside(
            '<x:link xmlns:x="http://x.test/">http://no.test/</x:link>',
            '<link xmlns="http://www.w3.org/1999/xhtml" rel="stylesheet" href="http://no.test/"/>',
            '<x:group xmlns:x="http://x.test/"><x:link href="http://no.test/"/></x:group>',
        ),
    ),
    Flaw(
        "link of the source",
        ("rss",),
        "RSS 2.0: source",
        _inside(
            '<source url="http://no.test/">x</source>',
            "<enclosure url='http://no.test/a.mp3' length='1' type='audio/mpeg'/>",
        ),
    ),
    Flaw(
        "alternates",
        ("urlset",),
        "pgilad/gulp-sitemap#18, pingcap/website#213",
        _inside(
            '<xhtml:link xmlns:xhtml="http://www.w3.org/1999/xhtml" rel="alternate" hreflang="de" href="http://no.test/"/>'
        ),
    ),
    Flaw(
        "images",
        ("urlset",),
        "crawler-commons#210: loc of another namespace",
        _inside(
            '<image:image xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><image:loc>http://no.test/x.png</image:loc></image:image>'
        ),
    ),
    Flaw(
        "namespace of old",
        SITEMAPS,
        "crawler-commons#210",
        _whole((_NAMESPACE, "http://www.google.com/schemas/sitemap/0.84")),
    ),
    Flaw(
        "namespace almost right",
        SITEMAPS,
        "crawler-commons#210",
        _whole((_NAMESPACE, "https://www.sitemaps.org/schemas/sitemap/0.9/")),
    ),
    Flaw("namespace of another", SITEMAPS, "crawler-commons#210", _whole((_NAMESPACE, "http://example.test/ns"))),
    Flaw("no namespace", SITEMAPS, "crawler-commons#173", _whole((f' xmlns="{_NAMESPACE}"', ""))),
    Flaw(
        "prefix of its own",
        SITEMAPS,
        "crawler-commons#174",
        _whole(
            ("</", "</s:"),
            ("<loc", "<s:loc"),
            ("<lastmod", "<s:lastmod"),
            ("<url", "<s:url"),
            ("<sitemap", "<s:sitemap"),
            ("xmlns=", "xmlns:s="),
        ),
    ),
    Flaw("base", FEEDS, "feedparser, tests/wellformed/base", _base),
    Flaw("guid in place of a link", ("rss",), "feedparser, tests/wellformed/rss: guidislink", _permalink),
    Flaw(
        "date",
        _XML,
        "feedparser#114, #29, #33, #75, #144, rometools/rome#20",
        _any_date(
            "Wed, 01 May 24 12:00:00 +0200",
            "Wed, 01 May 2024 12:00:00 +05:30",
            "Wed, 01 May, 2024",
            "1 May 2024",
            "2024/5/1 12:00",
            "today",
            "",
        ),
    ),
    Flaw("encoding of Asia", FEEDS, "feedparser, tests/encoding", _encoded(*_ASIAN)),
    Flaw("encoding of Europe", FEEDS, "feedparser, tests/encoding", _encoded(*_EUROPEAN)),
    Flaw("UTF-16", FEEDS, "feedparser, tests/encoding", _encoded(("utf-16", "utf-16", "señal"))),
    Flaw(
        "encoding",
        SITEMAPS,
        "ultimate-sitemap-parser, helpers.py: FIXME other encodings",
        _encoded(*_ASIAN, *_EUROPEAN),
    ),
    Flaw(
        "label without meaning",
        _XML,
        "feedparser, tests/encoding: no such encoding",
        _declaration('<?xml version="1.0" encoding="none"?>'),
    ),
    Flaw(
        "document type",
        FEEDS,
        "feedparser, sanitizer.py: RSS 0.91's",
        _declaration(
            '<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://no.test/rss-0.91.dtd">'
        ),
    ),
    Flaw(
        "entities declared",
        FEEDS,
        "feedparser#599",
        _declaration(
            '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY nbsp "&#160;"><!ENTITY co "A > B">]>',
            "<title>&co;&nbsp;</title>",
        ),
    ),
    Flaw(
        "blanks around an address",
        (*SITEMAPS, "rss"),
        "sitemaps.org, as written by hand",
        _whole(("<loc>", "<loc>\n  "), ("</link>", " \n</link>")),
    ),
    Flaw("gzip", (*SITEMAPS, "text"), "ukwa/ukwa-heritrix#44", _octets(gzip.compress)),
    Flaw("gzip of two members", SITEMAPS, "RFC 1952 2.2", _second_member),
    Flaw("old line ends", ("text",), "sitemaps.org: text files", _octets(lambda body: body.replace(b"\n", b"\r\n"))),
    Flaw(
        "blank lines and notes",
        ("text",),
        "sitemaps.org: text files",
        _octets(lambda body: b"\n" + body.replace(b"\n", b"\n\n# note\n")),
    ),
)
_ALONE = frozenset(
    {
        "UTF-16",
        "cut off",
        "gzip",
        "gzip of two members",
        "not UTF-8",
        "encoding",
        "encoding of Asia",
        "encoding of Europe",
    }
)
