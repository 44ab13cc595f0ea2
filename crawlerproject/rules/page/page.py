"""Decides what a fetched page says and asks: the one entry, one parse a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser

from crawlerproject.rules.page.ai_use import stated_by_page
from crawlerproject.rules.page.encoding import in_utf8
from crawlerproject.rules.page.links import Link, gather, has_rel, link_target, refresh_target
from crawlerproject.rules.page.meta_robots import page_robots
from crawlerproject.rules.page.parser_bombs import Weight, is_bomb, weight
from crawlerproject.rules.page.visible_text import words_and_text
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

_SELECTOR = "a[href],area[href],iframe[src],frame[src],link[href],meta[content],base[href]"


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What one page says."""

    encoding: str = ""  # Python codec name
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


@dataclass(slots=True)
class _Elements:
    """What one walk over the tree collects, before the base is known."""

    targets: list[tuple[str, bool]] = field(default_factory=list)
    metas: list[tuple[str, str]] = field(default_factory=list)
    base: str | None = None
    canonical: str | None = None


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
    """As ``read_html``, for where other work waits; None when the page's size or shape may take over 0.1 s."""
    if len(body) > LIGHT_BYTES:
        return None
    source, encoding = in_utf8(body, content_type)
    if weight(source) is not Weight.LIGHT:
        return None
    return _read(source, encoding, url, x_robots, token)


def _read(source: bytes, encoding: str, url: str, x_robots: Sequence[str], token: str) -> PageFacts:
    tree = LexborHTMLParser(source)
    found = _collect(tree)
    robots = page_robots(found.metas, x_robots, token)
    base = _base(found.base, url, encoding)
    if robots.nofollow:
        links, nofollow_links = list[Link](), len(found.targets)
    else:
        links, nofollow_links = gather(base, found.targets, _own_key(url))
    title = _title(tree)
    words, plain = words_and_text(tree)
    return PageFacts(
        encoding=encoding,
        base=base.url,
        links=links,
        canonical=None if found.canonical is None else base.join(found.canonical),
        nofollow=robots.nofollow,
        noindex=robots.noindex,
        words=words,
        title=title,
        text=plain,
        ai_use=stated_by_page(found.metas, robots.ai),
        nofollow_links=nofollow_links,
    )


def _collect(tree: LexborHTMLParser) -> _Elements:
    found = _Elements()
    targets = found.targets
    for node in tree.css(_SELECTOR):
        tag, attributes = node.tag, node.attributes
        if tag == "meta":
            _read_meta(attributes, found)
            continue
        if tag == "base":
            if found.base is None:  # the first one wins, also for links before it
                found.base = attributes.get("href") or ""
            continue
        target = link_target(tag, attributes)
        if target is None:
            continue
        targets.append((target, "rel" in attributes and has_rel(attributes, "nofollow")))
        if tag == "link" and found.canonical is None and has_rel(attributes, "canonical"):
            found.canonical = target
    return found


def _read_meta(attributes: dict[str, str | None], found: _Elements) -> None:
    content = attributes.get("content") or ""
    if name := attributes.get("name"):
        found.metas.append((name, content))
    elif (attributes.get("http-equiv") or "").strip().lower() == "refresh":
        target = refresh_target(content)
        if target is not None:
            found.targets.append((target, False))


def _base(href: str | None, url: str, encoding: str) -> Base:
    document = Base(url, encoding)
    address = document.join(href) if href is not None else None
    return document if address is None else Base(address.url, encoding)


def _own_key(url: str) -> bytes:
    try:
        return parse(url).key
    except UrlRefused:
        return b""


def _title(tree: LexborHTMLParser) -> str:
    # In the head: an svg has titles of its own.
    node = tree.head.css_first("title") if tree.head is not None else None
    return "" if node is None else " ".join(node.text().split())
