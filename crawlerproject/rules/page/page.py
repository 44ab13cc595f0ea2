"""Decides what a fetched page says and asks: the one entry, one parse a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crawlerproject.rules.page.ai_use import stated_by_page
from crawlerproject.rules.page.document import Shell
from crawlerproject.rules.page.encoding import in_utf8
from crawlerproject.rules.page.links import Link, gather
from crawlerproject.rules.page.meta_robots import page_robots
from crawlerproject.rules.page.parser_bombs import Weight, is_bomb, weight
from crawlerproject.rules.page.parser_faults import may_break_the_parser
from crawlerproject.rules.page.reader import read_document
from crawlerproject.rules.url.urls import Address, Base, UrlRefused, parse

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


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What one page says."""

    encoding: str = ""  # the Encoding Standard's name, in small letters
    base: str = ""  # what links are resolved against
    links: list[Link] = field(default_factory=list)  # to follow, each key once; empty when nofollow
    canonical: Address | None = None  # the first rel=canonical
    nofollow: bool = False  # meta robots or X-Robots-Tag: follow no link of this page
    noindex: bool = False
    words: int = 0  # visible; a CJK character is one
    title: str = ""
    text: bytes = b""  # visible, without links and frame, in UTF-8: what SimHash compares
    ai_use: list[tuple[str, str]] = field(default_factory=list)  # lines of the metadata record, rules/page/ai_use.py
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
    """As ``read_html``, for where other work waits; None when the page may take over 0.1 s, or end the process."""
    if len(body) > LIGHT_BYTES:
        return None
    source, encoding = in_utf8(body, content_type)
    if weight(source) is not Weight.LIGHT or may_break_the_parser(source):
        return None
    return _read(source, encoding, url, x_robots, token)


def _read(source: bytes, encoding: str, url: str, x_robots: Sequence[str], token: str) -> PageFacts:
    found = read_document(source)
    robots = page_robots(found.metas, x_robots, token)
    base = _base(found.base, url, encoding)
    if robots.nofollow:
        links, nofollow_links = list[Link](), len(found.targets) + found.nofollow
    else:
        links, nofollow_links = gather(base, found.targets, _own_key(url)), found.nofollow
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
        ai_use=stated_by_page(found.metas, robots.ai),
        nofollow_links=nofollow_links,
        fingerprint=found.fingerprint,
        shell=found.shell,
    )


def _base(href: str | None, url: str, encoding: str) -> Base:
    document = Base(url, encoding)
    address = document.join(href) if href is not None else None
    return document if address is None else Base(address.url, encoding)


def _own_key(url: str) -> bytes:
    try:
        return parse(url).key
    except UrlRefused:
        return b""
