"""Decides what of a page is its text, its title and its links with their words: what a search index wants."""

from __future__ import annotations

from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser

from crawlerproject.rules.page.encoding import decode
from crawlerproject.rules.page.links import link_target
from crawlerproject.rules.page.page import MAX_HTML_BYTES
from crawlerproject.rules.page.parser_bombs import is_bomb
from crawlerproject.rules.page.structured import structured_data
from crawlerproject.rules.page.visible_text import UNSEEN_TAGS
from crawlerproject.rules.url.urls import Base

# The frame around the content. Links stay: their words belong to the sentences that they stand in.
_FRAME = ["nav", "footer", "aside", "form", "button", "select", "iframe", "object"]
# Elements that do not end a line.
_INLINE = (  # noqa: SIM905 - a list literal of this would be forty lines
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span strike "
    "strong sub sup time tt u var wbr"
).split()
_LINKS = "a[href],area[href],link[href],iframe[src],frame[src]"
MAX_LINKS = 10_000
"""Of one page; generated lists that are longer link to nothing that another page would not."""
MAX_ANCHOR = 200
"""Characters of a link's words that are kept."""

# Links within objects within links hold all that is in them: beyond so much text, read again and again, they have no
# words. Twice the most that is read of a page.
_MOST_READ_CHARACTERS = 2 * MAX_HTML_BYTES


class LinkText(NamedTuple):
    """One link of a page, in the page's order."""

    target: str  # absolute, without fragment
    text: str
    rel: str
    position: int  # the how-manyth of the page, from 0


class PageText(NamedTuple):
    """What one page says to a reader."""

    title: str
    text: str  # a line a block
    links: list[LinkText]
    canonical: str
    structured: str = ""  # JSON, as rules/page/structured.py has it; "" where it was not asked for, or there is none
    language: str = ""  # of a document: as it names it itself


_NOTHING = PageText("", "", [], "")


def read_page(body: bytes, *, url: str, content_type: str | None, structured: bool = False) -> PageText:
    """Read an HTML page (content coding undone)."""
    text, encoding = decode(body[:MAX_HTML_BYTES], content_type)
    source = text.encode()
    if is_bomb(source):
        return _NOTHING
    tree = LexborHTMLParser(source)
    title = _title(tree)
    links, canonical = _links(tree, url, encoding)
    data = structured_data(tree) if structured else ""
    return PageText(title, _text(tree), links, canonical, data)


def _title(tree: LexborHTMLParser) -> str:
    node = tree.head.css_first("title") if tree.head is not None else None
    return "" if node is None else " ".join(node.text().split())


def _links(tree: LexborHTMLParser, url: str, encoding: str) -> tuple[list[LinkText], str]:
    base = _base(tree, url, encoding)
    links: list[LinkText] = []
    canonical = ""
    left = _MOST_READ_CHARACTERS
    for node in tree.css(_LINKS)[:MAX_LINKS]:
        attributes = node.attributes
        target = link_target(node.tag, attributes)
        address = base.join(target) if target is not None else None
        if address is None:
            continue
        rel = " ".join((attributes.get("rel") or "").lower().split())
        if node.tag == "link" and "canonical" in rel.split():
            canonical = canonical or address.url
        read = node.text() if left > 0 else ""
        left -= len(read)
        words = " ".join(read.split())[:MAX_ANCHOR]
        links.append(LinkText(address.url, words, rel, len(links)))
    return links, canonical


def _base(tree: LexborHTMLParser, url: str, encoding: str) -> Base:
    document = Base(url, encoding)
    node = tree.css_first("base[href]")
    address = document.join(node.attributes.get("href") or "") if node is not None else None
    return document if address is None else Base(address.url, encoding)


def _text(tree: LexborHTMLParser) -> str:
    tree.strip_tags([*UNSEEN_TAGS, *_FRAME], recursive=True)
    tree.unwrap_tags(_INLINE)
    tree.merge_text_nodes()
    if tree.body is None:
        return ""
    lines = tree.body.text(separator="\n", skip_empty=True).split("\n")
    return "\n".join([line for raw in lines if (line := " ".join(raw.split()))])
