"""Decides what of a page is structured data: JSON-LD, OpenGraph and its likes, and microdata, as one JSON text.

``{"json-ld": […], "opengraph": {"og:title": […]}, "microdata": [{"type": …, "properties": {…}}]}``; a kind that a page
does not have is left out. Sources: JSON-LD 1.1, 7; https://ogp.me/; HTML, 5.2 (microdata; without ``itemref``).
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import orjson
from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_BYTES = 256 * 1024
"""Of the whole text; a page with more has its first kinds only. Of 737 real pages the largest has 37 KB (measured)."""
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
            if len(packed) <= MAX_BYTES:
                found[kind] = value
                text = packed
    return text.decode()


def _json_ld(tree: LexborHTMLParser) -> list[Any]:
    values: list[Any] = []
    left = MAX_BYTES
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
    left = MAX_BYTES
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
