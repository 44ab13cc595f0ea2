"""Decides what a search index gets of a page: title, text, links with their words, the article, structured data.

The article is what the page marks as it, or else what Resiliparse finds (Apache-2.0, the quickest of those compared in
docs/batch.md; optional), without what the page says to be beside it.
Structured data is JSON-LD 1.1 (section 7), OpenGraph (https://ogp.me/) and its likes, and microdata (HTML, 5.2, without
``itemref``), as one JSON text without the kinds that a page does not have:
``{"json-ld": […], "opengraph": {"og:title": […]}, "microdata": [{"type": …, "properties": {…}}]}``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import orjson
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawlerproject import native
from crawlerproject.rules.page.body import decode, in_utf8, is_bomb
from crawlerproject.rules.page.page import MAX_HTML_BYTES, has_rel, link_target, read_document
from crawlerproject.rules.page.text_fingerprint import count_words
from crawlerproject.rules.page.tree import UNSEEN_TAGS
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

_TITLE_END = re.compile(rb"(?i)</title[\t\n\f\r ]{0,9}>")
# Links within objects within links hold all that is in them: beyond so much text, read again and again, they have no
# words. Twice the most that is read of a page.
_MOST_READ_CHARACTERS = 2 * MAX_HTML_BYTES

MAX_STRUCTURED_BYTES = 256 * 1024
"""Of structured data; a page with more has its first kinds only. Of 737 real pages the largest has 37 KB (measured)."""
# Ours, each far above what real pages have: scripts, properties of the head and of items, letters of one value.
_MAX_SCRIPTS, _MAX_PROPERTIES, _MAX_LETTERS = 64, 2_000, 2_000
# Elements above a property that are looked at for its item.
_MAX_ABOVE = 64
_JSON_LD = 'script[type="application/ld+json" i]'
# Of OpenGraph and those built like it.
_PREFIXES = ("og:", "article:", "book:", "profile:", "music:", "video:", "product:", "twitter:", "fb:")
# Where a property's value is an address, by element (HTML 5.2.4).
_ADDRESSES = {
    "a": "href", "area": "href", "link": "href", "audio": "src", "embed": "src", "iframe": "src", "img": "src",
    "source": "src", "track": "src", "video": "src", "object": "data",
}  # fmt: skip


# Of the article (each is in docs/batch.md's figures): what generators of manuals put around it (DocBook XSL, Publican,
# Sphinx), and what the web calls the parts that others wrote or that lead away.
_BESIDE = [
    ".navheader", ".navfooter", ".docnav", ".toc", ".contents", ".headerlink", ".sphinxsidebar",
    ".related[role=navigation]", "[class*=comment]", "[id*=comment]", "[class*=teaser]", "[class*=related]",
    "[class*=share]", "[class*=newsletter]", ".sharedaddy",
]  # fmt: skip
# A page with these is article but for them.
_MANUAL = ".navheader, .navfooter, .docnav"
# Where a page says itself what its article is: schema.org, hAtom and h-entry, Sphinx and its theme for Read the Docs.
_MARKED = [
    "[itemprop~=articleBody]", ".entry-content", ".e-content", "div.body[role=main]", ".rst-content [role=main]",
]  # fmt: skip
_MOST_MARKED = 100  # articles of one page (ours): blogs show ten
# Of a page's letters, below which it is no article but the start of one behind a wall, or a wrong guess (ours).
_LEAST_MARKED, _LEAST_FOUND = 0.1, 0.05
# Resiliparse takes long lists for navigation. Where less than this of a page's paragraphs (lines of so many letters,
# thirty words) is left, and hardly any of the page is its frame, all but that is the article (ours, by labelled pages).
_PARAGRAPH_LETTERS, _LEAST_PARAGRAPHS, _HARDLY_FRAMED = 180, 0.9, 0.95


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
    words: int = 0  # of the text
    structured: str = ""  # JSON of ``structured_data``; "" where it was not requested, or the page has no such data
    language: str = ""  # as the page or document names it itself


_NOTHING = PageText("", "", [], "")


def read_page(body: bytes, *, url: str, content_type: str | None, structured: bool = False) -> PageText:
    """Read an HTML page (content coding undone), natively where that is built."""
    source, encoding = in_utf8(body[:MAX_HTML_BYTES], content_type)
    return _NOTHING if is_bomb(source) else read_source(source, url, encoding, structured=structured)


def read_source(source: bytes, url: str, encoding: str, *, structured: bool) -> PageText:
    """Read a page in UTF-8 that is no parser bomb."""
    page = native.reader
    if page is None or (read := page.extract(source)) is None:  # no native reader, or bytes that are not UTF-8
        return read_in_python(source, url, encoding, structured=structured)
    title, text, words, named_base, language, may_have_data, found = read
    data = structured_data(LexborHTMLParser(source)) if structured and may_have_data else ""
    base = _base_of(url, encoding, named_base)
    links, canonical = page.targets(found, base.target, LinkText, *base.beginnings())
    return PageText(" ".join(title.split()), text, links, canonical or "", words, data, language or "")


def read_in_python(source: bytes, url: str, encoding: str, *, structured: bool) -> PageText:
    """The same over selectolax's tree: what the native reader is tested by."""
    tree = LexborHTMLParser(source)
    head = tree.head.css_first("title") if tree.head is not None else None
    title = "" if head is None else " ".join(head.text().split())
    base = tree.css_first("base[href]")
    named_base = None if base is None else base.attributes.get("href") or ""
    links, canonical = _resolved(_links(tree), _base_of(url, encoding, named_base))
    data = structured_data(tree) if structured else ""
    language = "" if tree.root is None else tree.root.attributes.get("lang") or ""
    text = _text(tree)
    return PageText(title, text, links, canonical, count_words(text), data, language)


def read_title(body: bytes, *, content_type: str | None) -> str:
    """The title that ``read_page`` finds, mostly without parsing what stands behind it."""
    text, _ = decode(body[:MAX_HTML_BYTES], content_type)
    source = text.encode()
    if is_bomb(source):
        return ""
    # What a parser has put into the head stays its first title, whatever follows.
    end = _TITLE_END.search(source)
    title = read_document(source[: end.end()]).title if end is not None else ""
    return title or read_document(source).title


_new = tuple.__new__  # what LinkText(...) does, at a third of the cost
_Found = tuple[str, str, str, bool]  # target as written, words, rel as written, whether it is a link rel=canonical


def _base_of(url: str, encoding: str, named_base: str | None) -> Base:
    base = Base(url, encoding)
    address = None if named_base is None else base.join(named_base)
    return base if address is None else Base(address.url, encoding)


def _resolved(found: Iterable[_Found], base: Base) -> tuple[list[LinkText], str]:
    links: list[LinkText] = []
    canonical = ""
    for target, words, rel, is_canonical in found:
        if (meant := base.target(target)) is None:
            continue
        if is_canonical:
            canonical = canonical or meant
        rel = " ".join(rel.lower().split()) if rel else ""
        links.append(_new(LinkText, (meant, words, rel, len(links))))
    return links, canonical


def _links(tree: LexborHTMLParser) -> Iterator[_Found]:
    left = _MOST_READ_CHARACTERS
    for node in tree.css(_LINKS)[:MAX_LINKS]:
        attributes = node.attributes
        if (target := link_target(node.tag, attributes)) is None:
            continue
        read = node.text() if left > 0 else ""
        left -= len(read)
        is_canonical = node.tag == "link" and has_rel(attributes, "canonical")
        yield target, " ".join(read.split())[:MAX_ANCHOR], attributes.get("rel") or "", is_canonical


def _text(tree: LexborHTMLParser) -> str:
    tree.strip_tags([*UNSEEN_TAGS, *_FRAME], recursive=True)
    tree.unwrap_tags(_INLINE)
    tree.merge_text_nodes()
    if tree.body is None:
        return ""
    lines = tree.body.text(separator="\n", skip_empty=True).split("\n")
    return "\n".join([line for raw in lines if (line := " ".join(raw.split()))])


class MainText(NamedTuple):
    """The article, and the share of the page's visible letters that it leaves out: 0 to 1."""

    text: str
    boilerplate: float


def main_text(body: bytes, content_type: str | None) -> MainText | None:
    """The article of an HTML page (content coding undone); None when it is not parsed, or has no text."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    source = decode(body[:MAX_HTML_BYTES], content_type)[0]
    if is_bomb(source.encode()):
        return None
    tree = HTMLTree.parse(source)
    whole = _lines(extract_plain_text(tree, alt_texts=False))
    if not whole or tree.body is None:
        return None
    letters = _letters(whole)
    beside = [*_FRAME, *_BESIDE]
    if tree.body.query_selector(_MANUAL) is not None:
        tries: list[tuple[Any, bool, list[str], float]] = [(tree, False, beside, 0.0)]
    else:
        tries = [(part, False, beside, _LEAST_MARKED) for part in _marked(tree.body)]
    tries += [(tree, True, beside, _LEAST_FOUND), (tree, True, [], 0.0)]
    for part, is_searched, skipped, least in tries:
        found = _lines(extract_plain_text(part, main_content=is_searched, alt_texts=False, skip_elements=skipped))
        if (share := _letters(found) / letters) >= least:
            break
    if is_searched and _lacks_paragraphs(found, whole):
        rest = _lines(extract_plain_text(tree, alt_texts=False, skip_elements=beside))
        if (left := _letters(rest) / letters) >= _HARDLY_FRAMED:
            found, share = rest, left
    return MainText(found, max(0.0, 1.0 - share))


def _marked(body: Any) -> Iterator[str]:
    """The HTML of what a page marks as its article, by one mark after the other."""
    for mark in _MARKED:
        nodes = body.query_selector_all(mark)[:_MOST_MARKED]
        if outermost := [node.html for node in nodes if node.parent.closest(mark) is None]:
            yield f"<body>{''.join(outermost)}"


def _lacks_paragraphs(found: str, whole: str) -> bool:
    wanted = Counter(word for line in whole.split("\n") if len(line) >= _PARAGRAPH_LETTERS for word in line.split())
    return (wanted & Counter(found.split())).total() < _LEAST_PARAGRAPHS * wanted.total()


def _lines(text: str) -> str:
    return "\n".join([line for raw in text.split("\n") if (line := " ".join(raw.split()))])


def _letters(text: str) -> int:
    return sum(map(len, text.split()))


def structured_data(tree: LexborHTMLParser) -> str:
    """The JSON text of a page that is parsed whole; "" where it has none."""
    readers = {"json-ld": _json_ld, "opengraph": _opengraph, "microdata": _microdata}
    found: dict[str, Any] = {}
    text = b""
    for kind, read in readers.items():
        if value := read(tree):
            try:
                packed = orjson.dumps({**found, kind: value})
            except orjson.JSONEncodeError:  # deeper than 254, or letters that no text has
                continue
            if len(packed) <= MAX_STRUCTURED_BYTES:
                found[kind] = value
                text = packed
    return text.decode()


def _json_ld(tree: LexborHTMLParser) -> list[Any]:
    values: list[Any] = []
    left = MAX_STRUCTURED_BYTES
    for node in tree.css(_JSON_LD)[:_MAX_SCRIPTS]:
        source = node.text()
        left -= len(source)
        if left < 0:
            break
        try:
            value = orjson.loads(source)
        except orjson.JSONDecodeError:  # one that is wrong costs itself
            continue
        values += value if isinstance(value, list) else [value]
    return values


def _opengraph(tree: LexborHTMLParser) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for node in tree.css("meta[content]")[:_MAX_PROPERTIES]:
        attributes = node.attributes
        name = (attributes.get("property") or attributes.get("name") or "").strip().lower()[:_MAX_LETTERS]
        if name.startswith(_PREFIXES):
            values.setdefault(name, []).append((attributes.get("content") or "")[:_MAX_LETTERS])
    return values


def _microdata(tree: LexborHTMLParser) -> list[dict[str, Any]]:
    """The items that are no property of another; each property belongs to the item around it."""
    items: dict[int, dict[str, Any]] = {}
    top: list[dict[str, Any]] = []
    left = MAX_STRUCTURED_BYTES
    nodes = {node.mem_id: node for node in tree.css("[itemscope],[itemprop]")}  # one that is both is found twice
    for node in islice(nodes.values(), _MAX_PROPERTIES):
        attributes = node.attributes
        names = (attributes.get("itemprop") or "").split()
        around = items.get(_item_above(node)) if names or "itemscope" in attributes else None
        if "itemscope" in attributes:
            value: Any = {"type": (attributes.get("itemtype") or "")[:_MAX_LETTERS], "properties": {}}
            items[node.mem_id] = value
            if not names or around is None:
                top.append(value)
        elif left > 0:
            value, read = _value(node)
            left -= read
        else:
            break
        if around is not None:
            for name in names:
                around["properties"].setdefault(name, []).append(value)
    return top


def _item_above(node: LexborNode) -> int:
    above = node.parent
    for _ in range(_MAX_ABOVE):
        if above is None:
            break
        if "itemscope" in above.attributes:
            return int(above.mem_id)
        above = above.parent
    return 0


def _value(node: LexborNode) -> tuple[str, int]:
    """A property's value, and how many letters were read for it."""
    attributes = node.attributes
    for name in ("content", _ADDRESSES.get(node.tag or ""), "datetime", "value"):
        if name and attributes.get(name) is not None:
            return str(attributes[name])[:_MAX_LETTERS], 1
    text = node.text()
    return " ".join(text.split())[:_MAX_LETTERS], len(text) + 1
