"""Decides what is to be known of a page's bytes before they are parsed: their encoding, and what a parser would pay.

The encoding is that of the mark, the HTTP header, the declaration, UTF-8 where it is valid, or windows-1252.

A page that would cost an HTML parser far more than its size is kept, not parsed. Four shapes are quadratic in lexbor
(three of them in libxml2 too): many attributes on one tag (each is compared with all before it), deep nesting (each
block looks up the whole stack), open formatting elements (each new block repeats them all), and the options of one
select (each new one looks at all before it: 150,000 take four minutes). The checks are linear and look at the raw
bytes. The native reader decides the same (native/weight.c), where it is in use.
"""

from __future__ import annotations

import re
from enum import IntEnum

from crawlerproject import native
from crawlerproject.rules import web_encodings
from crawlerproject.rules.web_encodings import UTF_8, charset_of, declared_encoding, mark_of, xml_encoding

FALLBACK = "windows-1252"  # HTML 13.2.3.2: the default of most locales; it decodes any byte
# The standard looks at 1,024 bytes and later at what the parser meets; 15 % of 1,213 real pages declare behind those.
_DECLARED_WITHIN_BYTES = 4096
# HTML 13.2.3.2, prescan: XHTML in UTF-16 that forgot its mark.
_UTF_16_STARTS = {b"<\0?\0x\0": "utf-16le", b"\0<\0?\0x": "utf-16be"}

# The next meta element, with all that stands before it, up to the end of its tag (HTML 13.2.3.2, prescan), where
# browsers look: not in a comment, in another tag's attributes, or in elements whose content is text. Possessive:
# nothing is read twice; what is not closed ends the search.
_BLANK = rb"[\t\n\x0c\r ]"
_ENDED = _BLANK.replace(b"[", b"[/>")  # what is behind the name of a tag
_TEXTS = (b"script", b"style", b"title", b"textarea", b"iframe", b"noembed", b"noframes", b"xmp")
_ATTRIBUTES = rb"""(?:[^>=]++|=BLANK*+(?:"[^"]*+"|'[^']*+'|[^\t\n\x0c\r >"'][^\t\n\x0c\r >]*+|(?=>)))*+""".replace(
    b"BLANK", _BLANK
)
_OTHERS = (
    rb"<!--(?:-?>|.*?--!?>)",
    *(rb"<%s(?=%s)%s>.*?</%s(?=%s)" % (name, _ENDED, _ATTRIBUTES, name, _ENDED) for name in _TEXTS),
    rb"<(?!(?:%s|meta)%s)/?[a-z]%s>" % (b"|".join(_TEXTS), _ENDED, _ATTRIBUTES),
    rb"<(?:!(?!--)|\?|/(?![a-z]))[^>]*+>",
    rb"<(?![a-z/!?])",
    # Last, behind a look: CPython before 3.11.5 leaves a possessive group where its last turn failed (gh-106052).
    rb"(?=[^<])[^<]++",
)
_META = re.compile(
    rb"(?:%s)*+<meta(?=%s)(%s)>" % (b"|".join(_OTHERS), _ENDED, _ATTRIBUTES),
    re.IGNORECASE | re.DOTALL,
)
_META_ATTRIBUTE = re.compile(
    rb"""([^\t\n\x0c\r />=]++)(?:%s*+=%s*+(?:"([^"]*+)"|'([^']*+)'|([^\t\n\x0c\r >"'][^\t\n\x0c\r >]*+)?+))?+"""
    % (_BLANK, _BLANK)
)
# HTML 2.4.5, extracting a character encoding from a meta element.
_CONTENT_CHARSET = re.compile(
    rb"""charset%s*+=%s*+(?:"([^"]*+)"|'([^']*+)'|([^\t\n\x0c\r ;"'][^\t\n\x0c\r ;]*+))""" % (_BLANK, _BLANK),
    re.IGNORECASE,
)


def decode(body: bytes, content_type: str | None) -> tuple[str, str]:
    """The text of a page and the standard's name of its encoding; undecodable bytes become U+FFFD."""
    body, name = _encoding(body, content_type)
    return web_encodings.decode(body, name), name


def in_utf8(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """The text of a page in UTF-8, without a mark, and the standard's name of the encoding that it came in.

    What is UTF-8 already is given back as it is: no copy, which costs an eighth of reading a page.
    """
    body, name = _encoding(body, content_type)
    if name == UTF_8:
        if body.isascii():
            return body, name
        page = native.reader
        try:
            if page.is_utf8(body) if page is not None else body.decode("utf-8"):
                return body, name
        except UnicodeDecodeError:
            pass
    return web_encodings.decode(body, name).encode(), name


def _encoding(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """What is left of a page without its mark, and the encoding to read it by."""
    if (mark := mark_of(body)) is not None:
        return body[mark[1] :], mark[0]
    name = charset_of(content_type) or _UTF_16_STARTS.get(body[:6]) or _declared(body[:_DECLARED_WITHIN_BYTES])
    if name is not None:
        return body, name
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A body that was cut may end within one character; that does not make it another encoding.
        if error.reason != "unexpected end of data" or error.start < len(body) - 3:
            return body, _declared(body) or FALLBACK  # browsers act on a late meta element as they parse it
    return body, UTF_8


def _declared(body: bytes) -> str | None:
    """The encoding that a meta element names, or else an XML declaration; names of no encoding do not count."""
    name, at = None, 0
    while name is None and (found := _META.match(body, at)) is not None:
        at = found.end()
        name = _named_by(found[1]) if b"charset" in found[1].lower() else None
    name = name or xml_encoding(body)
    return FALLBACK if name == "x-user-defined" else name  # HTML 13.2.3.2, prescan


def _named_by(attributes: bytes) -> str | None:
    values: dict[bytes, bytes] = {}
    for name, double, single, bare in _META_ATTRIBUTE.findall(attributes):
        values.setdefault(name.lower(), double or single or bare)
    if (label := values.get(b"charset")) is not None:
        return declared_encoding(label)
    if values.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    found = _CONTENT_CHARSET.search(values.get(b"content", b""))
    return declared_encoding(found[1] or found[2] or found[3] or b"") if found else None


MAX_ATTRIBUTES = 1_000  # on one tag: 2 ms; 20,000 cost 0.7 s; the most on 740 real pages is below 400
# The exact count of attributes costs a quarter of a parse, so a page first has to look like it: no tag ends within so
# many bytes (1,000 different attributes need them). A ">" that a quoted value may hide is no end.
LONG_TAG_BYTES = 3_000
_ENDS_TRIED = 8  # ours; in ordinary pages the first is one
FEW_TAGS = 450  # "<" signs: the worst a page below can do by formatting is 225 x 225 repeats, 60 ms
LIGHT_REPEATS = 50_000  # open formatting elements x tags: 60 ms
MAX_REPEATS = 1_000_000  # 0.4 to 0.7 s and 400 MB
LIGHT_OPTIONS = 1_500  # of all selects: 10 ms; the most on 740 real pages is 392
MAX_OPTIONS = 12_000  # 0.6 s
LIGHT_TAGS = 5_000  # "<" signs: this many nested elements cost 40 ms; one real page in a hundred has more
SHALLOW_TAGS = 14_000  # this many nested elements cost 0.25 to 0.4 s
MAX_STEPS = 200_000_000  # open elements x tags: about 0.3 s


class Weight(IntEnum):
    """What parsing would cost beyond what the size costs."""

    LIGHT = 0  # less than about 60 ms for each of the shapes
    HEAVY = 1
    BOMB = 2  # more than about 0.7 s


_WEIGHTS = tuple(Weight)  # by number


# HTML 13.2.5 in short. Every quantifier is possessive and a quote that never closes runs to the end,
# as in the standard, so that no input makes this scan more than linear.
_ATTRIBUTE = rb"""[\s/]*+(?:[^\s=>/]++|=[^\s=>/]*+)(?:\s*+=\s*+(?>"[^"]*+"?+|'[^']*+'?+|[^\s>]*+))?+"""
_EXCESS = re.compile(rb"<[a-zA-Z][^\s>/]*+(?:%b){0,%d}+(%b)?+" % (_ATTRIBUTE, MAX_ATTRIBUTES, _ATTRIBUTE))
_TAG_START = re.compile(rb"<[a-zA-Z]")
_BLANKS = b" \t\n\f\r"
_TAG = re.compile(rb"<(/?[a-zA-Z][^\s/>]*+)")

_FORMATTING = frozenset(b"b big code em font i s small strike strong tt u".split())  # HTML 13.2.4.3, but a and nobr
_FORMATTING_TAG = re.compile(rb"<(/?(?:[bisu]|em|tt|big|code|font|small|strong|strike))(?=[\s/>])", re.IGNORECASE)
_OPTION_TAG = re.compile(rb"</?op", re.IGNORECASE)  # or an optgroup's
# Void elements, and those whose end tag may be left out because the next one closes them (HTML 13.1.2).
_NO_DEPTH = frozenset(
    b"area base br col embed hr img input link meta param source track wbr"
    b" p li dt dd option optgroup tr td th thead tbody tfoot colgroup caption rp rt".split()
)


def is_bomb(body: bytes) -> bool:
    """Whether parsing ``body`` could take more than about 0.7 s."""
    return weight(body) is Weight.BOMB


def weight(body: bytes) -> Weight:
    """What parsing ``body`` could take, as far as its shape is to blame."""
    if (page := native.reader) is not None:
        return _WEIGHTS[page.weight(body)]
    found = weight_in_python(body)
    # What may break the parser that Python has is read in another process, which may end.
    return Weight.HEAVY if found is Weight.LIGHT and has_foreign_option(body) else found


def has_foreign_option(body: bytes) -> bool:
    """Whether there is an option with a ``selected`` behind the start of SVG or MathML.

    Lexbor 3.1.0 (selectolax 1.0.2) writes behind an element of SVG or MathML that is called option and is selected:
    with two hundred of them, 3 KB, memory is broken. In the native reader's lexbor it is corrected. Many pages have
    such options and break nothing: where SVG ends only a parser knows.
    """
    text = body.lower()
    starts = [place for name in (b"<svg", b"<math") if (place := text.find(name)) >= 0]
    if not starts:
        return False
    option = text.find(b"<option", min(starts))
    return option >= 0 and text.find(b"selected", option) >= 0


def weight_in_python(body: bytes) -> Weight:
    """The same, without the native reader."""
    if _has_crowded_tag(body):
        return Weight.BOMB
    tags = body.count(b"<")
    if tags <= FEW_TAGS:
        return Weight.LIGHT
    options = len(_OPTION_TAG.findall(body))
    if options > MAX_OPTIONS:
        return Weight.BOMB
    light = tags <= LIGHT_TAGS and options <= LIGHT_OPTIONS
    if tags <= SHALLOW_TAGS:  # then depth alone is no harm
        repeats = _deepest(_FORMATTING_TAG.findall(body))[1] * tags
        if repeats > MAX_REPEATS:
            return Weight.BOMB
        return Weight.LIGHT if light and repeats <= LIGHT_REPEATS else Weight.HEAVY
    depth, open_formatting = _deepest(_TAG.findall(body))
    bomb = depth * tags > MAX_STEPS or open_formatting * tags > MAX_REPEATS
    return Weight.BOMB if bomb else Weight.HEAVY


def _has_crowded_tag(body: bytes) -> bool:
    """Whether a tag has more than MAX_ATTRIBUTES.

    From one end of a tag to the farthest within reach: most pages are passed in a few steps, none of them by the
    expression. Where no end is in reach, the tag there is read exactly.
    """
    at, length = 0, len(body)
    while at + LONG_TAG_BYTES < length:
        reach = at + LONG_TAG_BYTES
        end = body.rfind(b">", at, reach)
        tries = _ENDS_TRIED
        while end >= 0 and tries and _may_be_quoted(body, at, end):
            end = body.rfind(b">", at, end)
            tries -= 1
        if end >= 0 and tries:
            at = end + 1
            continue
        while at < reach:
            start = _TAG_START.search(body, at)
            if start is None:
                return False
            tag = _EXCESS.match(body, start.start())
            assert tag is not None  # it matches whatever begins a tag
            if tag[1] is not None:
                return True
            at = tag.end()
    return False


def _may_be_quoted(body: bytes, start: int, end: int) -> bool:
    """Whether the ">" at ``end`` may stand in a quoted value; none is open at ``start``.

    Then the last quote of its kind opened that value, and nothing but blanks is between it and its "=".
    """
    for quote in (b'"', b"'"):
        opened = body.rfind(quote, start, end)
        if opened > start and body[max(start, opened - 64) : opened].rstrip(_BLANKS)[-1:] in (b"=", b""):
            return True
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
