"""Decides what a fetched HTML page says and requests: one entry, one parse a page, in C or in Python alike.

And what it forbids robots (meta robots, X-Robots-Tag), and what of an owner's word on AI is recorded. What owners say
of use becomes lines of the capture's metadata record: the headers and meta elements of one page (Content-Usage, draft-
ietf-aipref-attach; Content-Signal, https://contentsignals.org; TDM-Reservation and TDM-Policy, W3C's TDMRep), the words
of its X-Robots-Tag and meta robots, and what its site says. ``consent.verdict`` judges them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from crawlerproject import native
from crawlerproject.rules.consent.terms import words_within
from crawlerproject.rules.consent.verdict import AI_WORDS, DOUBT, Note, Source
from crawlerproject.rules.page.body import Weight, in_utf8, is_bomb, weight
from crawlerproject.rules.url.urls import Address, Base

# What is read of a page. Ordinary pages are far smaller (median of 1,213 real ones 105 KB); beyond this
# one page would hold up all others for tens of milliseconds.
MAX_HTML_BYTES = 2 * 1024 * 1024

# What is read where other work waits for it: under 20 ms for all 650 of 737 real pages below (12 % are larger).
LIGHT_BYTES = 256 * 1024

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
# mimesniff.spec.whatwg.org 7.1, what an unnamed HTML page starts with; an XML declaration for XHTML.
_HTML_STARTS = tuple(
    b"<!doctype html|<html|<head|<script|<iframe|<h1|<div|<font|<table|<a |<style|<title|<b>|<body|<br|<p>|<p |<!--"
    b"|<meta|<link".split(b"|")
)
_SNIFF_BYTES = 512  # leading blanks included; mimesniff reads up to 1,445

# "Web Crawler" asks for a browser under 200 words or under 3 links; as an alternative that is 28 % of a manual's pages,
# so it is the entrance to triage's score, not the verdict.
ENOUGH_WORDS = 200
ENOUGH_LINKS = 3
EMPTY_ROOT_WORDS = 20  # "Loading …" and the like
# Elements of a kind whose text is looked at: a page has one or two, and what lies within each other is read each time.
MOST_ELEMENTS = 20
# Characters in which a request to enable JavaScript is looked for: fewer than 200 words are all in them.
MOST_NOTICE = 20_000

# Never an http(s) address: refused by a prefix instead of by the parser (6 % of the anchors of 737 real pages).
_NOT_LINKS = ("#", "javascript:", "mailto:", "tel:", "data:")
_LINK_RELS = frozenset({"canonical", "next", "prev", "alternate"})
# Alternates that hold pages or lists of pages. oEmbed and API descriptions hold neither, and each page of a
# common blog software names three of them.
_ALTERNATE_TYPES = frozenset(
    {"", "text/html", "application/xhtml+xml", "application/rss+xml", "application/atom+xml", "application/feed+json"}
)
# HTML 4.2.5.3, "shared declarative refresh steps". Possessive: each character is read once.
# HTML's blanks are these five, no others of ASCII and none of Unicode's (Infra 4.6). A group that may fail behind its
# first character is not: CPython before 3.11.5 (gh-106052).
_REFRESH = re.compile(
    r"BLANK*+[0-9.]++(?:BLANK*+[;,]|BLANK)BLANK*+(?:urlBLANK*+=BLANK*+)?(.*)".replace("BLANK", r"[\t\n\x0c\r ]"),
    re.IGNORECASE | re.DOTALL,
)

Attributes = Mapping[str, str | None]


class Shell(NamedTuple):
    """What a page shows and asks for without its scripts: what ``rules/rendering/thin_pages.py`` judges."""

    source_bytes: int
    words: int
    links: int  # different ones, counted up to ENOUGH_LINKS
    script_characters: int  # of scripts that are executed
    shown_characters: int
    shown: str  # the first MOST_NOTICE of these; empty with ENOUGH_WORDS words
    notice: str  # of noscript elements, as many
    empty_root: bool  # an element that an application fills is empty


class Document(NamedTuple):
    """One page as it is written: nothing is resolved yet."""

    targets: list[str]  # what links ask to be followed, in order, without those of rel=nofollow
    nofollow: int  # how many those are
    metas: list[tuple[str, str]]  # name and content
    base: str | None  # href of the first base element
    canonical: str | None  # href of the first rel=canonical
    title: str
    words: int  # visible; a CJK character is one
    text: bytes  # visible, without links and frame, in UTF-8
    fingerprint: int | None  # SimHash of ``text``
    shell: Shell | None  # of a page with scripts that are executed, and few words or few links


@dataclass(slots=True)  # frozen, it would take three times as long to make: there is one a page
class PageFacts:
    """What one page says."""

    encoding: str = ""  # the Encoding Standard's name, in small letters
    base: str = ""  # what links are resolved against
    links: list[Address] = field(default_factory=list)  # to follow, each key once; empty when nofollow
    canonical: Address | None = None  # the first rel=canonical
    nofollow: bool = False  # meta robots or X-Robots-Tag: follow no link of this page
    noindex: bool = False
    words: int = 0  # visible; a CJK character is one
    title: str = ""
    text: bytes = b""  # visible, without links and frame, in UTF-8: what SimHash compares
    ai_use: Sequence[Note] = ()  # lines of the metadata record
    nofollow_links: int = 0  # links left out for rel=nofollow, or all of them when the page says so
    unparsed: bool = False  # a parser bomb: nothing but the X-Robots-Tag was read
    fingerprint: int | None = None  # SimHash of ``text``
    shell: Shell | None = None  # for triage: of a page with scripts, and few words or few links


def is_html(content_type: str | None, body: bytes) -> bool:
    """Whether to read the body as a page: by its type, and without one by how it starts."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type:
        return media_type in HTML_TYPES
    start = body[:_SNIFF_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\x0c").lower()
    return start.startswith(_HTML_STARTS) or (start.startswith(b"<?xml") and b"<html" in start)


def read_html(body: bytes, *, url: str, content_type: str | None, x_robots: Sequence[str], token: str) -> PageFacts:
    """Read one page: ``url`` it was fetched from, ``x_robots`` header values, ``token`` our product token.

    May take a second, and longer for shapes not yet known: see ``read_light_html``.
    """
    source, encoding = in_utf8(body[:MAX_HTML_BYTES], content_type)
    if is_bomb(source):
        robots = page_robots((), x_robots, token)
        return PageFacts(encoding, url, nofollow=robots.nofollow, noindex=robots.noindex, unparsed=True)
    return _read(source, encoding, url, x_robots, token)


def read_light_html(
    body: bytes, *, url: str, content_type: str | None, x_robots: Sequence[str], token: str
) -> PageFacts | None:
    """``read_html`` where other work waits; None when the page may take over 0.1 s, or end the process."""
    if len(body) > LIGHT_BYTES:
        return None
    source, encoding = in_utf8(body, content_type)
    return _read(source, encoding, url, x_robots, token) if weight(source) is Weight.LIGHT else None


def _read(source: bytes, encoding: str, url: str, x_robots: Sequence[str], token: str) -> PageFacts:
    found = read_document(source)
    robots = page_robots(found.metas, x_robots, token) if found.metas or x_robots else FREE
    licenses = licenses_of_page(source, url) if RSL_TYPE in source else ()
    base = document = Base(url, encoding)
    if found.base is not None and (address := document.join(found.base)) is not None:
        base = Base(address.url, encoding)
    if robots.nofollow:
        links, nofollow_links = list[Address](), len(found.targets) + found.nofollow
    else:
        links, nofollow_links = base.addresses(found.targets, document.own_key()), found.nofollow
    return PageFacts(
        encoding=encoding,
        base=base.url,
        links=links,
        canonical=None if found.canonical is None else base.join(found.canonical),
        nofollow=robots.nofollow,
        noindex=robots.noindex,
        words=found.words,
        title=found.title,
        text=found.text,
        ai_use=(*robots.ai_use, *licenses) if licenses else robots.ai_use,
        nofollow_links=nofollow_links,
        fingerprint=found.fingerprint,
        shell=found.shell,
    )


def looks_whole(words: int, links: int) -> bool:
    """Whether a page has enough of both: then nothing else is looked at."""
    return words >= ENOUGH_WORDS and links >= ENOUGH_LINKS


def read_document(source: bytes) -> Document:
    """Read a page in UTF-8, natively where that is built. It may not be a parser bomb (``parser_bombs.weight``)."""
    page = native.reader
    read = page.read(source) if page is not None else None
    if read is None:  # no native reader, or bytes that are not UTF-8
        from crawlerproject.rules.page.tree import read_tree  # not before it is needed: it loads numpy

        return read_tree(source)
    targets, nofollow, refreshes, metas, base, canonical, title, words, text, fingerprint, shell = read
    for place, content in reversed(refreshes):
        target = refresh_target(content)
        if target is not None:
            targets.insert(place, target)
    if shell:
        shell = Shell(len(source), words, *shell)
    elif shell is not None:  # an address that needs Python's own reader of URLs decides whether there are enough links
        from crawlerproject.rules.page.tree import read_shell

        shell = read_shell(source)
    title = " ".join(title.split())
    return Document(targets, nofollow, metas, base, canonical, title, words, text, fingerprint, shell)


def link_target(tag: str | None, attributes: Attributes) -> str | None:
    """The address an element other than meta asks to be followed, as written; None when it does not."""
    if tag == "a" or tag == "area":
        # In svg, old pages write xlink:href; browsers follow it.
        target = attributes.get("href") or attributes.get("xlink:href")
    elif tag == "link":
        target = attributes.get("href") if _followed_rel(attributes) else None
    else:  # iframe, frame
        target = attributes.get("src")
    if not target or target.startswith(_NOT_LINKS):
        return None
    return target


def refresh_target(content: str) -> str | None:
    """The address of ``<meta http-equiv=refresh content=...>``; None when the page only reloads itself."""
    match = _REFRESH.fullmatch(content)
    if match is None:
        return None
    url: str = match[1]  # blanks at its end are dropped as it is resolved
    if url[:1] in ("'", '"'):
        url = url[1:].partition(url[0])[0]
    return url or None


def has_rel(attributes: Attributes, word: str) -> bool:
    """Whether the element's rel holds ``word``, without case."""
    rel = attributes.get("rel")
    return rel is not None and word in rel.lower().split()


def _followed_rel(attributes: Attributes) -> bool:
    words = set((attributes.get("rel") or "").lower().split())
    if words.isdisjoint(_LINK_RELS) or "stylesheet" in words:
        return False
    if "alternate" not in words:
        return True
    return (attributes.get("type") or "").partition(";")[0].strip().lower() in _ALTERNATE_TYPES


# Directives that take a value after a colon: without this list "max-snippet: 20" would read as an agent's name.
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
HEADERS = ("Content-Usage", "Content-Signal", "TDM-Reservation", "TDM-Policy", "Link")
_AI_METAS = frozenset({"tdm-reservation", "tdm-policy"})
# RSL 1.0: Link: <https://site.example/license.xml>; rel="license"; type="application/rsl+xml".
_LICENSE_LINK = re.compile(r"<([^<>]{1,2000}+)>[^<>]*?application/rsl\+xml")
_LICENSE_TYPE = "application/rsl+xml"  # sought first: most Link headers are about something else
RSL_TYPE, RSL_SPACE = _LICENSE_TYPE.encode(), b"rslstandard.org/rsl"
"""In the bytes of a page or feed that has or names a licence of RSL (1.0, sections 4.3 to 4.6)."""
# <link rel="license" type="application/rsl+xml" href="…">, and the licence itself in a script.
_LICENSE_TAG = re.compile(rb"<(link|script)\b([^<>]{0,2000}+)>", re.IGNORECASE)
_SCRIPT_END = re.compile(rb"</script", re.IGNORECASE)
_HREF = re.compile(rb"""(?<![\w-])href\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""", re.IGNORECASE)
_MOST_LINK_CHARACTERS = 8000
# Values are free text: as much as any honest one needs.
_MOST_CHARACTERS = 500
_MOST_LINES = 20


class PageRobots(NamedTuple):
    """What a page forbids, and what it states."""

    nofollow: bool  # follow no link of this page
    noindex: bool  # recorded, not acted upon: an archive is not a search index
    ai_use: Sequence[Note] = ()  # what it states about use by artificial intelligence


FREE = PageRobots(False, False)


def page_robots(metas: Iterable[tuple[str, str]], x_robots: Iterable[str], token: str) -> PageRobots:
    """Join all that applies to us; the strictest word wins.

    ``metas`` are (name, content) of meta elements, ``x_robots`` the values of X-Robots-Tag headers,
    ``token`` our product token; names match without case.
    """
    token = token.lower()
    words: set[str] = set()
    stated: list[Note] = []
    for name, content in metas:
        name = name.strip().lower()
        if name == "robots" or name == token:
            words.update(_words(content))
        elif name in _AI_METAS:
            stated.append((str(Source.PAGE), f"{name}: {content}"))
    for value in x_robots:
        words.update(_header_words(value, token))
    if not words and not stated:
        return FREE
    none = "none" in words
    notes = [(str(Source.PAGE), word) for word in sorted(words & AI_WORDS)] + stated
    return PageRobots(none or "nofollow" in words, none or "noindex" in words, bounded(notes))


def stated_by_site(site: Iterable[Note], headers: Iterable[Note]) -> list[Note]:
    """What the site states of this page's use, and what this answer's headers do; an RSL licence in ``Link`` is one."""
    answered = list[Note]()
    for name, value in headers:
        if name != "Link":
            answered.append((str(Source.HEADER), f"{name.lower()}: {value}"))
        elif _LICENSE_TYPE in value and (found := _LICENSE_LINK.search(value[:_MOST_LINK_CHARACTERS])):
            answered.append((str(Source.HEADER), f"license: {found[1]}"))
    return bounded(list(site)) + bounded(answered)


def licenses_of_page(source: bytes, url: str) -> list[Note]:
    """The licences of RSL that an HTML page with ``RSL_TYPE`` in it names, as ``stated_by_site`` words them.

    Of those that it has in itself the words.
    """
    found: list[Note] = []
    for tag in islice((tag for tag in _LICENSE_TAG.finditer(source) if RSL_TYPE in tag[2]), _MOST_LINES):
        href = _HREF.search(tag[2]) if tag[1].lower() == b"link" else None
        if href is not None:
            found.append((str(Source.PAGE), f"license: {b''.join(href.groups(b'')).decode('utf-8', 'replace')}"))
        elif tag[1].lower() == b"script":
            end = _SCRIPT_END.search(source, tag.end())
            found += words_within(source[tag.end() : end.start() if end else len(source)].strip(), url)
        else:
            found.append((str(Source.LICENSE), f"{DOUBT}: a licence without an address"))
    return bounded(found)


def license_of_feed(body: bytes, url: str) -> list[Note]:
    """The words of the licences that the entries of a feed have: they are in its text."""
    return words_within(body, url, feed=True) if RSL_SPACE in body else []


def _words(content: str) -> list[str]:
    # Commas by the book; blanks and semicolons in the wild.
    return content.lower().replace(",", " ").replace(";", " ").split()


def _header_words(value: str, token: str) -> list[str]:
    # "otherbot: noindex, nofollow": an agent's name holds for the directives after it, up to the next name.
    ours, words = True, []
    for part in value.lower().split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in _VALUED:
            ours = name.strip() in (token, "*", "robots")
            part = rest
        elif colon:
            continue
        if ours:
            words.extend(_words(part))
    return words


def bounded(notes: Iterable[Note]) -> list[Note]:
    """As many lines as any honest page needs, each of one line's length."""
    return [(name, " ".join(value.split())[:_MOST_CHARACTERS]) for name, value in islice(notes, _MOST_LINES)]
