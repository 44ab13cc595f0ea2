"""Decides whether a page would cost an HTML parser far more than its size: such a page is kept, not parsed.

Three shapes are quadratic in lexbor (and in libxml2): many attributes on one tag (each is compared
with all before it), deep nesting (each block looks up the whole stack), and open formatting elements
(each new block repeats them all). The checks are linear and look at the raw bytes.
"""

from __future__ import annotations

import re

import numpy as np

MAX_ATTRIBUTES = 1_000  # on one tag: 2 ms; 20,000 cost 0.7 s; the most on 740 real pages is below 400
# The exact count of attributes costs a third of a parse, so a page first has to look like it: a tag this long
# (1,000 different attributes need it) without ">". Values may hold a quoted ">" to hide behind, and what can
# be hidden grows with the square of the size: pages above the second bound are always counted.
LONG_TAG_BYTES = 3_000
ALWAYS_COUNT_BYTES = 131_072  # the worst a page below can hide costs about 0.7 s; a third of real pages are larger
FEW_TAGS = 1_600  # "<" signs: the worst a page below can do by formatting is 800 x 800 repeats, 0.2 s
MAX_REPEATS = 1_000_000  # open formatting elements x tags: 0.4 to 0.7 s and 400 MB
SHALLOW_TAGS = 14_000  # "<" signs: this many nested elements cost 0.25 to 0.4 s
MAX_STEPS = 200_000_000  # open elements x tags: about 0.3 s

# HTML 13.2.5 in short. Every quantifier is possessive and a quote that never closes runs to the end,
# as in the standard, so that no input makes this scan more than linear.
_ATTRIBUTE = rb"""[\s/]*+(?:[^\s=>/]++|=[^\s=>/]*+)(?:\s*+=\s*+(?>"[^"]*+"?+|'[^']*+'?+|[^\s>]*+))?+"""
_EXCESS = re.compile(rb"<[a-zA-Z][^\s>/]*+(?:%b){0,%d}+(%b)?+" % (_ATTRIBUTE, MAX_ATTRIBUTES, _ATTRIBUTE))
_LONG_TAG = re.compile(rb"<[a-zA-Z][^>]{%d}" % LONG_TAG_BYTES)
_TAG = re.compile(rb"<(/?[a-zA-Z][^\s/>]*+)")

_FORMATTING = frozenset(b"b big code em font i s small strike strong tt u".split())  # HTML 13.2.4.3, but a and nobr
_FORMATTING_TAG = re.compile(rb"<(/?(?:[bisu]|em|tt|big|code|font|small|strong|strike))(?=[\s/>])", re.IGNORECASE)
_OPENS, _CLOSES = b"</"
_MAY_FORMAT = np.zeros(65_536, np.bool_)  # by two characters after "<": one of these names, or the beginning of one
for _name in _FORMATTING:
    for _end in b" \t\n\v\f\r/>":
        _MAY_FORMAT[int.from_bytes((_name + bytes([_end]))[:2], "big")] = True
# Void elements, and those whose end tag may be left out because the next one closes them (HTML 13.1.2).
_NO_DEPTH = frozenset(
    b"area base br col embed hr img input link meta param source track wbr"
    b" p li dt dd option optgroup tr td th thead tbody tfoot colgroup caption rp rt".split()
)


def is_bomb(body: bytes) -> bool:
    """Whether parsing ``body`` could take more than about 0.7 s."""
    if (len(body) > ALWAYS_COUNT_BYTES or _has_long_tag(body)) and any(_EXCESS.findall(body)):
        return True
    tags = body.count(b"<")
    if tags <= FEW_TAGS:
        return False
    if tags <= SHALLOW_TAGS:  # then depth alone is no harm
        if _formatting_at_most(body) * tags <= MAX_REPEATS:
            return False
        formatting_tags = _FORMATTING_TAG.findall(body)
        return len(formatting_tags) * tags > MAX_REPEATS and _deepest(formatting_tags)[1] * tags > MAX_REPEATS
    depth, formatting = _deepest(_TAG.findall(body))
    return depth * tags > MAX_STEPS or formatting * tags > MAX_REPEATS


def _formatting_at_most(body: bytes) -> int:
    # By the two characters that follow "<" or "</": a tenth of the expression's cost, and a few tags too many.
    text = np.frombuffer(body.lower() + b"  ", np.uint8)
    names = np.flatnonzero(text == _OPENS) + 1
    names += text[names] == _CLOSES
    return int(np.count_nonzero(_MAY_FORMAT[text[names] * np.uint16(256) + text[names + 1]]))


def _has_long_tag(body: bytes) -> bool:
    # From ">" to the farthest ">" within reach: most pages are passed in a few steps, none of them by the expression.
    at, end = 0, len(body) - LONG_TAG_BYTES
    while at < end:
        at = body.rfind(b">", at, at + LONG_TAG_BYTES) + 1
        if not at:
            return _LONG_TAG.search(body) is not None
    return False


def _deepest(tags: list[bytes]) -> tuple[int, int]:
    # An end tag counts only against an open tag of its name: stray ones must not hide depth.
    still_open: dict[bytes, int] = {}
    depth = deepest = formatting = most_formatting = 0
    for name in tags:
        name = name.lower()
        if name[:1] == b"/":
            name = name[1:]
            if still_open.get(name, 0):
                still_open[name] -= 1
                depth -= 1
                formatting -= name in _FORMATTING
        elif name not in _NO_DEPTH:
            still_open[name] = still_open.get(name, 0) + 1
            depth += 1
            formatting += name in _FORMATTING
            deepest = max(deepest, depth)
            most_formatting = max(most_formatting, formatting)
    return deepest, most_formatting
