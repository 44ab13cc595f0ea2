"""Decides what a style sheet asks for: what it imports, its images and its fonts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xxhash import xxh3_128_digest

from crawlerproject.rules.web_encodings import declared_encoding, text_of

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
