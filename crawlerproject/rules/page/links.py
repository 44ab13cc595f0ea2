"""Decides which elements of a page are links to follow, and which attribute holds the address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from crawlerproject.rules.url.urls import Address, Base

HOP_LINK = "L"  # Heritrix' letter; frames too, since we fetch them as pages of their own


HOP_EMBED = "E"  # what a page needs to be seen: rules/page/requisites.py
MAX_EMBED_HOPS = 5
"""A page, its style sheet, what that imports, and again, its font: real sites need four; Heritrix' default is two."""


class Link(NamedTuple):
    """One link of a page."""

    address: Address
    kind: str  # Heritrix hop letter


class Requisite(NamedTuple):
    """One thing that a page needs to be seen."""

    address: Address
    frame: bool = False  # a document of its own


# Never an http(s) address: refused by a prefix instead of by the parser (6 % of the anchors of 737 real pages).
_NOT_LINKS = ("#", "javascript:", "mailto:", "tel:", "data:")
_LINK_RELS = frozenset({"canonical", "next", "prev", "alternate"})
# Alternates that hold pages or lists of pages. oEmbed and API descriptions hold neither, and each page of a
# common blog software names three of them.
_ALTERNATE_TYPES = frozenset(
    {"", "text/html", "application/xhtml+xml", "application/rss+xml", "application/atom+xml", "application/feed+json"}
)
# HTML 4.2.5.3, "shared declarative refresh steps". Possessive: each character is read once.
# HTML's blanks are these five, no others of ASCII and none of Unicode's (Infra 4.6).
_REFRESH = re.compile(
    r"BLANK*+[0-9.]++(?:BLANK*+[;,]|BLANK)BLANK*+(?:urlBLANK*+=BLANK*+)?+(.*)".replace("BLANK", r"[\t\n\x0c\r ]"),
    re.IGNORECASE | re.DOTALL,
)

Attributes = Mapping[str, str | None]


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


def gather(base: Base, targets: list[str], own_key: bytes) -> list[Link]:
    """Resolve addresses as written, in order of the page: each page once, by key; the page itself is left out."""
    addresses: dict[bytes, Link] = {}
    join = base.join
    for target in targets:
        address = join(target)
        if address is not None and address.key not in addresses:
            addresses[address.key] = Link(address, HOP_LINK)
    addresses.pop(own_key, None)
    return list(addresses.values())


def _followed_rel(attributes: Attributes) -> bool:
    words = set((attributes.get("rel") or "").lower().split())
    if words.isdisjoint(_LINK_RELS) or "stylesheet" in words:
        return False
    if "alternate" not in words:
        return True
    return (attributes.get("type") or "").partition(";")[0].strip().lower() in _ALTERNATE_TYPES
