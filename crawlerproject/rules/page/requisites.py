"""Decides what a page needs to be seen: style sheets, images, scripts, frames, and what its styles request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from xxhash import xxh3_128_digest

from crawlerproject.rules.page.page import has_rel
from crawlerproject.rules.rendering.browser_limits import is_tracker
from crawlerproject.rules.url.urls import Address, Base, host_name
from crawlerproject.rules.web_encodings import declared_encoding, text_of

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


MAX_CSS_BYTES = 1024 * 1024
"""What is read of a style sheet: two seconds of tinycss2. Real ones have 10 to 300 KB."""
LIGHT_CSS_CHARACTERS = 16 * 1024
"""What is read where other work waits for it: some 20 ms."""

_CHARSET = re.compile(rb'@charset "([^"]{0,100}+)";')  # exactly so, and so near (CSS Syntax 3, 3.2: 1,024 bytes)
# A sheet without any of these asks for nothing, and is not read. An escape may spell one of them otherwise.
_ASKS = re.compile(r"url\(|@import|image-set\(|src\(|\\", re.IGNORECASE)
# What was read is kept: the pages of a site repeat their style elements, which cost ten times the rest of a page's
# requisites (628 real pages). 2 KB each at most.
_read: dict[bytes, tuple[str, ...]] = {}
_MOST_KEPT, _MOST_KEPT_CHARACTERS = 4096, 2000
# Their strings are addresses (CSS Images 4, 2.2; CSS Values 4, 4.5).
_WITH_ADDRESSES = frozenset({"url", "src", "image-set", "-webkit-image-set"})
_NOT_ADDRESSES = frozenset({"namespace"})  # at-rules whose url() only names something


class Requisite(NamedTuple):
    """One thing that a page needs to be seen."""

    address: Address
    frame: bool = False  # a document of its own


def requisites_of_page(
    source: bytes, base: Base, most: int, most_css_characters: int, *, framed: bool = False
) -> list[Requisite] | None:
    """What a page in UTF-8 needs, in its order, each address once, ``most`` at most.

    None when its own styles have more than ``most_css_characters`` to be read. It may not be a parser bomb.
    ``framed``: it is shown within another, so that no browser requests its icon.
    """
    from selectolax.lexbor import LexborHTMLParser  # only where requisites are wanted

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


def asks(text: str) -> bool:
    """Whether a style sheet, or the value of a style attribute, may ask for anything."""
    return _ASKS.search(text) is not None


def sheet_text(body: bytes, content_type: str | None) -> str:
    """The sheet as text (CSS Syntax 3, 3.2): by its mark, the HTTP header, its @charset, and else as UTF-8."""
    found = _CHARSET.match(body)
    return text_of(body[:MAX_CSS_BYTES], content_type, declared_encoding(found[1]) if found else None)


def addresses_in(text: str) -> Sequence[str]:
    """The addresses in a sheet, or in the value of a style attribute, as written and in order; no data: URLs."""
    if not asks(text):
        return ()
    key = _key(text)
    found = _read.get(key)
    if found is None:
        import tinycss2

        values = tinycss2.parse_component_value_list(text, skip_comments=True)
        found = tuple(address for address in _in_values(values) if address[:5].lower() != "data:")
        if sum(map(len, found)) <= _MOST_KEPT_CHARACTERS:
            if len(_read) >= _MOST_KEPT:
                _read.clear()
            _read[key] = found
    return found


def is_quick(text: str) -> bool:
    """Whether the addresses are known without reading the text."""
    return not asks(text) or _key(text) in _read


def _key(text: str) -> bytes:
    return xxh3_128_digest(text.encode("utf-8", "surrogatepass"))


def _in_values(values: Iterable[Any]) -> Iterator[str]:
    """Not by recursion: what is nested is as deep as the sheet is long."""
    open_lists: list[tuple[Iterator[Any], bool]] = [(iter(values), False)]  # whether their strings are addresses
    rule = ""  # the at-rule whose prelude is being read
    while open_lists:
        rest, strings_count = open_lists[-1]
        value = next(rest, None)
        if value is None:
            open_lists.pop()
            continue
        kind = value.type
        if kind == "at-keyword":
            rule = value.lower_value
        elif kind in ("url", "string"):
            if rule not in _NOT_ADDRESSES and (kind == "url" or strings_count or rule == "import"):
                yield value.value
            rule = "" if rule == "import" else rule
        elif kind == "function":
            open_lists.append((iter(value.arguments), value.lower_name in _WITH_ADDRESSES))
        elif kind in ("{} block", "() block", "[] block"):
            rule = ""
            open_lists.append((iter(value.content), False))
        elif kind == "literal" and value.value == ";":
            rule = ""
