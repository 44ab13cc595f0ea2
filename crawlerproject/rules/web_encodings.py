"""The encodings of the web: which one a label names, and its text, exactly as browsers read and write it.

The Encoding Standard (encoding.spec.whatwg.org) has 228 labels for 40 encodings. Python's codecs of the same names
differ from its indexes in some 1,300 places, so text is taken from the nearest codec where that is certain to be the
same, which nearly all pages are, and else looked up unit by unit. The list of encodings is closed: codecs like
unicode_escape, punycode or idna would let a page choose how much CPU and what markup we see.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple
from unicodedata import normalize

from webencodings import LABELS

UTF_8 = "utf-8"
_LOST = "\ufffd"  # what cannot be read
MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
# Encoding 4.2: what is stripped off a label.
_BLANKS = "\t\n\x0c\r "
NEVER_WRITTEN = frozenset({UTF_8, "utf-16le", "utf-16be", "replacement"})
"""What asks to be written in one of these is written in UTF-8 (Encoding 4.3, get an output encoding)."""
_UNICODE = frozenset({UTF_8, "utf-16le", "utf-16be"})
# A header's first charset parameter; what stands in quotes before it does not count (RFC 9110 5.6.6). The turns
# are told apart by their first characters; possessive, CPython before 3.11.5 would lose its place (gh-106052).
_CHARSET = re.compile(
    r"""[^;"]*+(?:"(?:[^"\\]|\\.)*+"[^;"]*+|;(?![ \t]*+charset=)[^;"]*+)*;[ \t]*+charset=(?:"([^"]*+)"|([^;,\s]*+))""",
    re.IGNORECASE,
)
_XML_DECLARATION = re.compile(
    rb"""<\?xml(?=[\x00-\x20])[^>]*?encoding[\x00-\x20]*+=[\x00-\x20]*+(["'])([^\x00-\x20"'>]++)\1""",
)
_REMEMBERED = 256  # characters of a header: those of others are not kept (ours)


def encoding_of(label: str) -> str | None:
    """The standard's name, in small letters, of the encoding that ``label`` names; None for none of the web's."""
    return LABELS.get(label.strip(_BLANKS).lower()) if label.isascii() else None


def mark_of(octets: bytes) -> tuple[str, int] | None:
    """The encoding that a byte order mark names, and the octets of the mark (Encoding 6, BOM sniff)."""
    if not octets.startswith(MARKS):
        return None
    if octets[:3] == b"\xef\xbb\xbf":
        return UTF_8, 3
    return ("utf-16le" if octets[:2] == b"\xff\xfe" else "utf-16be"), 2


def charset_of(content_type: str | None) -> str | None:
    """The encoding that a Content-Type header names; None if it names none of the web's."""
    if not content_type or ";" not in content_type:
        return None
    return _charset(content_type) if len(content_type) <= _REMEMBERED else _charset.__wrapped__(content_type)


@lru_cache(maxsize=1024)  # a crawl meets some hundred
def _charset(content_type: str) -> str | None:
    found = _CHARSET.match(content_type)
    return encoding_of(found[1] or found[2] or "") if found else None


def declared_encoding(label: bytes) -> str | None:
    """The encoding of a label that stands in the document itself; what could be read as ASCII is not UTF-16."""
    name = encoding_of(label.decode("latin-1"))
    return UTF_8 if name in ("utf-16le", "utf-16be") else name


def xml_encoding(octets: bytes) -> str | None:
    """The encoding that an XML declaration names (HTML 13.2.3.2, get an XML encoding); None without one."""
    found = _XML_DECLARATION.match(octets)
    return declared_encoding(found[2]) if found else None


def text_of(octets: bytes, content_type: str | None, declared: str | None = None) -> str:
    """The text of a document: by its mark, its Content-Type header, what it declares itself, and else as UTF-8."""
    if (mark := mark_of(octets)) is not None:
        return decode(octets[mark[1] :], mark[0])
    return decode(octets, charset_of(content_type) or declared or UTF_8)


def decode(octets: bytes, name: str) -> str:
    """The text of ``octets``, without a mark, in the encoding of that name; what cannot be read is U+FFFD."""
    if name in _UNICODE:
        return octets.decode(name, "replace")
    if name in _MULTIPLE:
        return _read_units(octets, name)
    if name == "iso-2022-jp":
        return _read_iso_2022_jp(octets)
    if name == "replacement":
        return _LOST if octets else ""
    return codecs.charmap_decode(octets, "strict", _single(name))[0]


def written(text: str, name: str) -> bytes:
    """``text`` as the query of an address has it, in the encoding of that name.

    What the encoding lacks is ``&#1234;`` in escapes (URL 1.3, percent-encode after encoding).
    """
    if name in NEVER_WRITTEN:
        return text.encode("utf-8", "replace")
    if name == "iso-2022-jp":
        return b"".join(_iso_2022_jp_octets(text))
    known = _octets(name)
    pieces = [char.encode() if char < "\x80" else known.get(char) or _beyond(char, name) for char in text]
    return b"".join(pieces)


# Names of the standard, in small letters, and Python's codec nearest to each.
_CODECS = {
    **{f"windows-125{page}": f"cp125{page}" for page in range(9)},
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    "big5": "big5hkscs", "euc-jp": "euc_jp", "euc-kr": "cp949", "gb18030": "gb18030", "gbk": "gb18030",
    "ibm866": "cp866", "iso-8859-8-i": "iso8859-8", "koi8-r": "koi8-r", "koi8-u": "koi8-u", "macintosh": "mac-roman",
    "shift_jis": "cp932", "windows-874": "cp874", "x-mac-cyrillic": "mac-cyrillic",
}  # fmt: skip


# --- single octets ---

# Octets of single-byte encodings that the codec reads otherwise; those from 0x80 to 0x9F that it lacks stand for
# themselves in the standard.
_SINGLE = {"koi8-u": {0xAE: "ў", 0xBE: "Ў"}, "windows-1255": {0xCA: "\u05ba"}}


@cache
def _single(name: str) -> str:
    """The text of all octets from 0 to 255."""
    if name == "x-user-defined":
        return "".join([chr(octet if octet < 0x80 else 0xF700 + octet) for octet in range(256)])
    text = [bytes([octet]).decode(_CODECS[name], "replace") for octet in range(256)]
    for octet in range(0x80, 0xA0):
        text[octet] = chr(octet) if text[octet] == _LOST else text[octet]
    for octet, char in _SINGLE.get(name, {}).items():
        text[octet] = char
    return "".join(text)


# --- several octets a character ---


class _Units(NamedTuple):
    """How a multi-byte encoding puts octets beyond ASCII together, and where its codec differs from the standard."""

    unit: re.Pattern[str]  # one octet, or one that asks for others with what follows it; octets are read as Latin-1
    renamed: str = ""  # characters of the codec's text, each followed by the standard's, which it has for nothing else
    doubted: str = ""  # characters of the codec's text that may be others in the standard
    differing: str = ""  # octets in hexadecimal digits, and the characters from there on


# Index gb18030 of 2023: what GB 18030-2022 moved out of the private use area; and the lone octet of GBK's euro sign.
_GB18030 = _Units(
    # Four octets, of which the last may be missing at the end only; or two.
    re.compile(r"[\x81-\xfe](?:[0-9](?:[\x81-\xfe](?:[0-9]|\Z)|\Z)|[^0-9])?|[\x80\xff]"),
    "",
    "\ue5e5\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796\ue7c7\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854"
    "\ue864\u1e3f",
    "80:€ a3a0:\u3000 a6d9:︐︒︑︓︔︕︖ a6ec:︗︘ a6f3:︙ a8bc:\u1e3f fe59:龴 fe61:龵 fe66:龶龷 fe6d:龸 "
    "fe7e:龹 fe90:龺 fea0:龻 8135f437:\ue7c7",
)
_PAIRS = re.compile(r"[\x81-\xfe][\x00-\xff]?|[\x80\xff]")
_MULTIPLE = {
    "gbk": _GB18030,
    "gb18030": _GB18030,
    # Hong Kong's characters of 2008, other names in Unicode for some of Big5's signs, pictures of controls.
    "big5": _Units(
        _PAIRS,
        "",
        "•､‾∼♁☉／＼¥¢£",
        "877a:㡵𡵓𣚞𦀡㻬𥣞㫵竼龗𤅡𨤍𣇪𠪊𣉞䌊蒄龖鐯䤰蘓墖靊鈘秐稲晠権袝瑌篅枂稬剏遆㓦珄𥶹瓆鿇垳䤯呌䄱𣚎堘穲𧭥讏䚮"
        "𦺈䆁𥶙箮𢒼鿈𢓁𢓉𢓌鿉蔄𣖻䂴鿊䓡𪷿拁灮鿋 8e69:箸 8e6f:簆 8e7e:糎 8eab:緒 8eb4:縝 8ecd:者 8ed0:耨 8f57:菁 "
        "8f69:蒨 8f6e:萏 8fcb:覦覩 8ffe:起 906d:都 907a:銹 90dc:靜 90f1:響 91bf:鼖 9244:蔃 92af:兙兛兝兞 92c8:鍮 "
        "92d1:瑹 9447:浧 94ca:禛 95d9:邗 9644:靝 96ed:瀞 96fc:嬨 9b76:爁 9b78:矗 9b7b:纇 9bc6:駖 9bde:釔 9bec:惞 "
        "9bf6:澶 9c42:輶 9c53:侻 9c62:營 9c68:鄄 9c6b:鷰 9c77:菏 9cbc:尐秣 9cd0:婧 9d57:輋 9d5a:筑 9dc4:拐 "
        "9ea9:恢 9eef:痹 9efd:汊 9f60:鬮 9f66:鼗 9fcb:僭 9fd8:弌 a063:蠏 a077:拎 a0d5:瑨 a0df:煢 a0e4:牐 a145:‧ "
        "a14e:﹑ a1c2:¯ a1e3:～ a1f2:⊕⊙ a241:∕﹨ a244:￥ a246:￠￡ a3c0:␀␁␂␃␄␅␆␇␈␉␊␋␌␍␎␏␐␑␒␓␔␕␖␗␘␙␚␛␜␝␞␟␡€ "
        "c6cf:廴 c6d3:无 c6d5:癶 c6d7:隶 c6de:〃仝 fa5f:倩 fa66:偽 fabd:包 fac5:卄 fad5:卿 fb48:嘅 fbb8:婷 "
        "fbf3:幵 fbf9:廐 fc4f:彘 fc6c:悤 fcb9:撐 fce2:晴 fcf1:杞 fdb7:沜渝 fdbb:港 fdf1:煮 fe52:猪 fe6f:瑜 "
        "feaa:瓩 fedd:砉",
    ),
    # Its pairs are looked up as those of Shift_JIS, in which the codec has NEC's and IBM's rows.
    "euc-jp": _Units(
        re.compile(r"\x8f[\xa1-\xfe][\x00-\xff]?|[\x8e\x8f\xa1-\xfe][\x00-\xff]?|[\x80-\x8d\x90-\xa0\xff]"),
        "〜～‖∥−－¢￠£￡¬￢",
        differing="8fa2b7:～",
    ),
    "shift_jis": _Units(
        re.compile(r"[\x81-\x9f\xe0-\xfc][\x00-\xff]?|[\x80\xa0-\xdf\xfd-\xff]"),
        "",
        "\uf8f0\uf8f1\uf8f2\uf8f3",  # what the codec takes lone octets for
        f"a0:{_LOST} fd:{_LOST} fe:{_LOST} ff:{_LOST}",
    ),
    "euc-kr": _Units(_PAIRS),
}
_TILDE = b"\x8f\xa2\xb7"  # of JIS X 0212 in EUC-JP, which the codec reads as ASCII's; in others a doubt that costs time


def _read_units(octets: bytes, name: str) -> str:
    units = _MULTIPLE[name]
    try:
        text = octets.decode(_CODECS[name])
        sure = not any(map(text.__contains__, units.doubted)) and _TILDE not in octets
    except UnicodeDecodeError:
        sure = False
    if not sure:
        table = _table(name)
        return units.unit.sub(lambda unit: table[unit[0]], octets.decode("latin-1"))
    for old, new in zip(units.renamed[::2], units.renamed[1::2], strict=True):
        text = text.replace(old, new)
    return text


class _Table(dict[str, str]):
    """The text of each unit of an encoding, as it is asked for: 65,536 of two octets are kept, and none of more."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name, self._codec = name, _CODECS[name]
        for run in _MULTIPLE[name].differing.split(" "):
            start, _, characters = run.partition(":")
            octets = bytearray.fromhex(start)
            for character in characters:
                self[octets.decode("latin-1")] = character
                octets[-1] = 0xA1 if octets[-1] == 0x7E else (octets[-1] + 1) % 256  # as Big5's cells go on

    def __missing__(self, unit: str) -> str:
        octets = unit.encode("latin-1")
        try:
            text = self._read(octets)
        except UnicodeDecodeError:
            # What is lost does not take ASCII with it, which may be markup; the digits in GB 18030's fours are theirs.
            within = self._codec == "gb18030" and b"0" <= octets[1:2] <= b"9"
            text = _LOST + (unit[-1] if unit[-1] < "\x80" and not within else "")
        if len(octets) <= 2:
            self[unit] = text
        return text

    def _read(self, octets: bytes) -> str:
        if self._name != "euc-jp" or len(octets) != 2 or octets[0] == 0x8E:
            return octets.decode(self._codec)
        row, cell = octets[0] - 0xA1, octets[1] - 0xA1
        if not (0 <= row < 94 and 0 <= cell < 94):
            return octets.decode("ascii")  # which fails
        lead = row // 2 + (0x81 if row < 62 else 0xC1)  # JIS X 0208 annex 1
        trail = cell + 0x9F if row % 2 else cell + (0x40 if cell < 63 else 0x41)
        return bytes([lead, trail]).decode("cp932")


@cache
def _table(name: str) -> _Table:
    return _Table(name)


# --- ISO-2022-JP ---

_ESCAPES = re.compile(rb"(\x1b(?:\$[@B]|\([BIJ]))")
_NEVER_ASCII = re.compile(r"[\x0e\x0f\x1b\x80-\xff]")
_NEVER_KATAKANA = re.compile(r"[^!-_]")
_SEVEN_BITS = re.compile(r"[!-~][^\x1b]?|[^!-~]", re.DOTALL)
_ROMAN = {ord("\\"): "¥", ord("~"): "‾"}
_KATAKANA = {octet: chr(0xFF61 - 0x21 + octet) for octet in range(0x21, 0x60)}
_JIS, _ASCII, _ROMAN_SET = b"\x1b$B", b"\x1b(B", b"\x1b(J"


def _read_iso_2022_jp(octets: bytes) -> str:
    first, *rest = _ESCAPES.split(octets)
    pieces = [_of_set(_ASCII, first)]
    empty = False
    for escape, run in zip(rest[::2], rest[1::2], strict=True):
        if empty:  # two escapes without a character between them could hide markup from what looks for it
            pieces.append(_LOST)
        pieces.append(_of_set(escape, run))
        empty = not run
    return "".join(pieces)


def _of_set(escape: bytes, run: bytes) -> str:
    """The text of what follows an escape."""
    text = run.decode("latin-1")
    if escape in (_ASCII, _ROMAN_SET):
        text = _NEVER_ASCII.sub(_LOST, text)
        return text if escape == _ASCII else text.translate(_ROMAN)
    if escape == b"\x1b(I":
        return _NEVER_KATAKANA.sub(_LOST, text).translate(_KATAKANA)
    table = _table("euc-jp")

    def read(unit: re.Match[str]) -> str:
        pair = unit[0]
        if len(pair) < 2 or not "!" <= pair[1] <= "~":
            return _LOST
        return table[chr(ord(pair[0]) | 0x80) + chr(ord(pair[1]) | 0x80)]

    return _SEVEN_BITS.sub(read, text)


def _iso_2022_jp_octets(text: str) -> Iterator[bytes]:
    known = _octets("euc-jp")
    now = _ASCII
    for char in text:
        pair = known.get(_WIDE.get(char, char), b"")
        if char in "\x0e\x0f\x1b":
            wanted, octets = (_ASCII if now == _JIS else now), _reference(_LOST)
        elif char < "\x80":
            wanted, octets = (now if now == _ROMAN_SET and char not in "\\~" else _ASCII), char.encode()
        elif len(pair) == 1:
            wanted, octets = _ROMAN_SET, pair
        elif pair:
            wanted, octets = _JIS, bytes([octet & 0x7F for octet in pair])
        else:
            wanted, octets = (_ASCII if now == _JIS else now), _reference(char)
        if wanted != now:
            yield wanted
            now = wanted
        yield octets
    if now != _ASCII:
        yield _ASCII


# --- writing ---

# JIS X 0201's katakana, which are written wide.
_WIDE = {chr(narrow): normalize("NFKC", chr(narrow)) for narrow in range(0xFF61, 0xFFA0)} | {"ﾞ": "゛", "ﾟ": "゜"}
# Encoding 12.1.1: of these that Big5 has twice, the later is written.
_LATER = "═╞╡╪十卅"


def _reference(char: str) -> bytes:
    return b"%%26%%23%d%%3B" % ord(char)


def _beyond(char: str, name: str) -> bytes:
    """A character that no one or two octets of the index stand for."""
    if name not in ("gb18030", "gbk") or char == "\ue5e5":
        return _reference(char)
    # Four octets; or two that were the private use area's, of which one has changed places.
    octets = b"\x81\x35\xf4\x37" if char == "\ue7c7" else char.encode("gb18030", "ignore")
    return octets if len(octets) == 2 or (octets and name == "gb18030") else _reference(char)


@cache
def _octets(name: str) -> dict[str, bytes]:
    """What characters beyond ASCII are written as: the first of the index that may be."""
    if name not in _MULTIPLE:
        single = _single(name)
        known = {single[octet]: bytes([octet]) for octet in range(255, 0x7F, -1)}
    else:
        known = _pairs(name)
    known.pop(_LOST, None)
    return known


def _pairs(name: str) -> dict[str, bytes]:
    table, known = _table(name), dict[str, bytes]()
    if name in _JAPANESE:
        before = b"\x8e" if name == "euc-jp" else b""
        known = {chr(0xFF61 - 0xA1 + octet): before + bytes([octet]) for octet in range(0xA1, 0xE0)}
        known |= {"¥": b"\\", "‾": b"~"}
    if name == "gbk":
        known["€"] = b"\x80"
    if name == "shift_jis":
        known["\x80"] = b"\x80"
    for lead in _WRITTEN_LEADS[name]:
        for trail in range(0x40 if name != "euc-jp" else 0xA1, 0xFF):
            char = table[chr(lead) + chr(trail)]
            if len(char) == 1 and (char not in known or (name == "big5" and char in _LATER)):
                known[char] = bytes([lead, trail])
    if name in _JAPANESE:
        known["−"] = known["－"]
    return known


_JAPANESE = ("euc-jp", "shift_jis")
# Encoding 5: Big5 is written without Hong Kong's characters, Shift_JIS without NEC's selection of IBM's and users' own.
_WRITTEN_LEADS = {
    "gbk": range(0x81, 0xFF),
    "gb18030": range(0x81, 0xFF),
    "big5": range(0xA1, 0xFF),
    "euc-jp": range(0xA1, 0xFF),
    "euc-kr": range(0x81, 0xFF),
    "shift_jis": (*range(0x81, 0xA0), *range(0xE0, 0xED), *range(0xFA, 0xFD)),
}
