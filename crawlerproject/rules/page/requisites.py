"""Decides what a page needs to be seen: style sheets, images, scripts, frames, and what its styles ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from selectolax.lexbor import LexborHTMLParser

from crawlerproject.rules.page.links import Requisite, has_rel
from crawlerproject.rules.page.style_sheets import addresses_in, is_quick
from crawlerproject.rules.rendering.trackers import is_tracker
from crawlerproject.rules.url.urls import Base, host_name

_SELECTOR = (
    "link[href],link[imagesrcset],script[src],img,source,video[src],video[poster],audio[src],track[src],embed[src],"
    "object[data],input[src],iframe[src],frame[src],image,use,style,[style],[background]"
)
# Attributes with one address. Those that begin with data- are where scripts that load images late look for them.
_ADDRESS = {
    "script": ("src",),
    "img": ("src", "data-src", "data-lazy-src", "data-original", "data-lazy"),
    "source": ("src", "data-src"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "input": ("src",),
    "iframe": ("src",),
    "frame": ("src",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
# Attributes with several (HTML 4.8.4.2.1).
_SETS = ("srcset", "imagesrcset", "data-srcset", "data-lazy-srcset")
_FRAMES = frozenset({"iframe", "frame"})
_LINK_RELS = (
    "stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "preload", "modulepreload",
    "manifest",
)  # fmt: skip
_ICONS = ("icon", "apple-touch-icon")
_FAVICON = "/favicon.ico"  # what a browser asks for where a page names none (HTML 4.6.7.8)
# Never an address that is asked for; refused before the parser, since a data URL may have megabytes.
_NOT_ASKED = ("data:", "#", "javascript:", "about:", "blob:", "mailto:")
# Written addresses that one page has resolved: most of a page's that repeat cost nothing (ours).
_MOST_LOOKED_AT = 10_000
_SPACES = " \t\n\f\r"  # HTML's own
# HTML 4.8.4.2.2, "parse a srcset attribute". Possessive: each character is read once.
_CANDIDATE = re.compile(r"[ \t\n\f\r,]*+([^ \t\n\f\r]++)")
_DESCRIPTORS = re.compile(r"(?:[^(,]++|\([^)]*+\)?+)*+")


def requisites_of_page(
    source: bytes, base: Base, most: int, most_css_characters: int, *, framed: bool = False
) -> list[Requisite] | None:
    """What a page in UTF-8 needs, in its order, each address once, ``most`` at most.

    None when its own styles have more than ``most_css_characters`` to be read. It may be no parser bomb. ``framed``:
    it is shown within another, so that no browser asks for its icon.
    """
    css_characters = 0
    found = _Found(base, most)
    tree = LexborHTMLParser(source)
    icon = framed
    for node in tree.css(_SELECTOR):
        if found.full:
            break
        tag, attributes = node.tag or "", node.attributes
        if tag == "link":
            icon = icon or any(has_rel(attributes, rel) for rel in _ICONS)
        style = node.text(deep=True) if tag == "style" else attributes.get("style") or ""
        if style and not is_quick(style):
            css_characters += len(style)
            if css_characters > most_css_characters:
                return None
        if style:
            found.take(addresses_in(style))
        found.take(_written(tag, attributes), frame=tag in _FRAMES)
    if not icon:
        found.take((_FAVICON,))
    return found.requisites


def requisites_of_sheet(text: str, base: Base, most: int) -> list[Requisite]:
    """What a style sheet asks for, in its order, each address once, ``most`` at most."""
    found = _Found(base, most)
    found.take(addresses_in(text))
    return found.requisites


def candidates(srcset: str) -> Iterator[str]:
    """The addresses of a ``srcset``, by HTML's own steps."""
    place = 0
    while (found := _CANDIDATE.match(srcset, place)) is not None:
        written, place = found[1], found.end()
        if address := written.rstrip(","):
            yield address
        if not written.endswith(","):
            place = _DESCRIPTORS.match(srcset, place).end()  # type: ignore[union-attr]  # it may be empty


class _Found:
    """The requisites of one page on their way."""

    def __init__(self, base: Base, most: int) -> None:
        self.requisites: list[Requisite] = []
        self._base = base
        self._most = most
        self._written: set[str] = set()
        self._keys: set[bytes] = set()

    @property
    def full(self) -> bool:
        """Whether nothing more is taken."""
        return len(self.requisites) >= self._most or len(self._written) >= _MOST_LOOKED_AT

    def take(self, written: Iterable[str], *, frame: bool = False) -> None:
        """Resolve addresses as written."""
        for text in written:
            text = text.strip(_SPACES)
            if self.full:
                return
            if not text or text in self._written or text[:11].lower().startswith(_NOT_ASKED):
                continue
            self._written.add(text)
            address = self._base.join(text)
            if address is None or address.key in self._keys or is_tracker(host_name(address.host)):
                continue
            self._keys.add(address.key)
            self.requisites.append(Requisite(address, frame))


def _written(tag: str, attributes: dict[str, str | None]) -> Iterator[str]:
    """The addresses in an element's attributes."""
    if tag == "link":
        if any(has_rel(attributes, rel) for rel in _LINK_RELS):
            yield attributes.get("href") or ""
    else:
        for name in _ADDRESS.get(tag, ()):
            yield attributes.get(name) or ""
    for name in _SETS:
        if written := attributes.get(name):
            yield from candidates(written)
    if background := attributes.get("background"):
        yield background
