"""rules/web_encodings: the Encoding Standard's labels and indexes, read and written as browsers do."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webencodings import LABELS

from crawlerproject.rules import web_encodings
from crawlerproject.rules.web_encodings import charset_of, decode, encoding_of, mark_of, text_of, written, xml_encoding
from tests.spending import bounded

MULTIPLE = ("gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr")
SINGLE = sorted(set(LABELS.values()) - {*MULTIPLE, "iso-2022-jp", "replacement", "utf-8", "utf-16le", "utf-16be"})
#: Of all characters of an index, in its order, SHA-256's first 16 digits. The indexes were compared with those of
#: Chromium 156 and, where that has faults of its own (Big5's 8862), of @exodus/bytes 1.16.0 (npm).
INDEXES = {
    "gbk": "1fc9e1f2b08f77d2",
    "gb18030": "b5e8105bf62107dc",
    "big5": "3089c866310b5788",
    "euc-jp": "7f3ec8350da970f6",
    "shift_jis": "afe61df68127c081",
    "euc-kr": "f421ebee147d7d3f",
    "iso-2022-jp": "ae5d79b7fac95b5e",
    "ibm866": "e4d6ff5ca5ada13a",
    "iso-8859-10": "4f9e6ea68a80234a",
    "iso-8859-13": "e0dc2e83c4600e7f",
    "iso-8859-14": "cc0467a122c68308",
    "iso-8859-15": "02da73e6cb687359",
    "iso-8859-16": "1695e6848a2fa540",
    "iso-8859-2": "f06000761c8bcf26",
    "iso-8859-3": "202a1b363622d2ae",
    "iso-8859-4": "f7076eceae60e496",
    "iso-8859-5": "93b826201406f5c1",
    "iso-8859-6": "7bd8ab9b93da30d5",
    "iso-8859-7": "6990b4f2c0f41585",
    "iso-8859-8": "3fece254a648dccd",
    "iso-8859-8-i": "3fece254a648dccd",
    "koi8-r": "4864274e118185ef",
    "koi8-u": "0fdfdda8e9261a58",
    "macintosh": "07da6af6067c9558",
    "windows-1250": "01dd09bae2d209f4",
    "windows-1251": "64bc96a197c74f59",
    "windows-1252": "d486335e5257b059",
    "windows-1253": "9e4c70ccbbd0778f",
    "windows-1254": "390edd6fb0372487",
    "windows-1255": "eb0725777360879e",
    "windows-1256": "5526d72d1fce45fa",
    "windows-1257": "6df262bb978fac4d",
    "windows-1258": "4744ca2fc1f4eb72",
    "windows-874": "17408160a539642a",
    "x-mac-cyrillic": "ce302a812a98d7f3",
    "x-user-defined": "eeb486ac8bd5c248",
}


def index_text(name: str) -> str:
    """What every unit of one, two and three octets is, one a line."""
    leads = [bytes([lead]) for lead in range(0x80, 0x100)]
    units = [bytes([octet]) for octet in range(256)]
    if name in MULTIPLE:
        units += [lead + bytes([trail]) for lead in leads for trail in range(256)]
    if name == "euc-jp":
        units += [b"\x8f" + row + bytes([cell]) for row in leads for cell in range(0x80, 0x100)]
    if name == "gb18030":
        tens = [bytes([digit]) for digit in b"0123456789"]
        units += [lead + one + b"\x81" + two for lead in leads[1:5] for one in tens for two in tens]
        units += [b"\x81\x35\xf4\x37", b"\x84\x31\xa4\x37", b"\xe3\x32\x9a\x36"]
    if name == "iso-2022-jp":
        units = [b"\x1b$B" + bytes([row, cell]) for row in range(0x20, 0x80) for cell in range(256)]
        units += [escape + bytes([octet]) for escape in (b"", b"\x1b(J", b"\x1b(I") for octet in range(256)]
    return "\n".join([decode(unit, name) for unit in units])


def test_every_label_of_the_standard_names_an_encoding() -> None:
    """All 228, whatever their case and the blanks around them; each encoding can be read and written."""
    assert len(LABELS) == 228
    assert {encoding_of(f"\t {label.upper()}\n") for label in LABELS} == set(LABELS.values())
    for name in set(LABELS.values()):
        assert decode(b"ab", name) == ("\ufffd" if name == "replacement" else decode(b"ab", name))
        assert written("a b", name) == b"a b"


@pytest.mark.parametrize(
    "label", ["klingon", "", "unicode_escape", "utf_8", "cp65001", "\u212aoi8-r", "\x0butf-8", "idna"]
)
def test_no_other_label_does(label: str) -> None:
    """Python's codecs are none of the web's, nor is what only looks like a label (the Kelvin sign)."""
    assert encoding_of(label) is None


@pytest.mark.parametrize("name", INDEXES)
def test_index(name: str) -> None:
    """Each unit of an encoding is the standard's character, or is lost as there."""
    assert hashlib.sha256(index_text(name).encode()).hexdigest()[:16] == INDEXES[name]


@pytest.mark.parametrize(
    ("octets", "name", "text"),
    [
        (b"\xad\xa1\xad\xea\xa1\xc1", "euc-jp", "①㈱～"),
        (b"\x8f\xb0\xa1\x8e\xb1", "euc-jp", "丂ｱ"),
        (b"\x1b$B-!-j\x1b(Ba\x1b(I1\x1b(J\\~", "iso-2022-jp", "①㈱aｱ¥‾"),
        (b'\x1b(B\x1b$B$"', "iso-2022-jp", "\ufffdあ"),
        (b"\x87\x40\xfa\x40\xa0", "shift_jis", "①ⅰ\ufffd"),
        (b"\x88\x62\xa3\xe1\xc6\xcf\xf9\xfe", "big5", "Ê̄€廴￭"),
        (b"\x80\xa2\xe3\xfe\x59\x95\x32\x82\x39", "gb18030", "€€龴\U00020003"),
        (b"\xb0\xa1\xc6\x52", "euc-kr", "가힣"),
        (b"\x81\x98\x9d\x80", "windows-1252", "\x81˜\x9d€"),
        (b"\xae\xbe", "koi8-u", "ўЎ"),
        (b"\x41\x80\xff", "x-user-defined", "A\uf780\uf7ff"),
        (b"\xd8\x3d\xde\x00\xd8\x00\x00a", "utf-16be", "😀\ufffda"),
        (b"anything", "replacement", "\ufffd"),
    ],
)
def test_decode(octets: bytes, name: str, text: str) -> None:
    """What Python's codec of the same name loses or reads otherwise."""
    assert decode(octets, name) == text


@pytest.mark.parametrize("name", [*MULTIPLE, "iso-2022-jp"])
@given(octets=st.binary(max_size=40))
def test_what_is_lost_takes_no_markup_with_it(name: str, octets: bytes) -> None:
    """An octet that asks for another does not swallow ASCII: a tag behind it stays a tag."""
    if name == "iso-2022-jp":
        octets = octets.replace(b"\x1b", b"") + b"\x1b(B"
    if name in ("gbk", "gb18030", "big5", "shift_jis"):
        octets += b"\x20"  # their second octets may be letters, but no blank
    assert decode(octets + b"<p>", name).endswith("<p>")


@pytest.mark.parametrize("name", MULTIPLE)
@given(octets=st.lists(st.binary(min_size=1, max_size=2)).map(b"".join))
def test_the_codec_is_believed_only_where_it_is_right(name: str, octets: bytes) -> None:
    """Reading by the codec and unit by unit are one."""
    units, table = web_encodings._MULTIPLE[name], web_encodings._table(name)
    assert decode(octets, name) == units.unit.sub(lambda unit: table[unit[0]], octets.decode("latin-1"))


@pytest.mark.parametrize("name", [*MULTIPLE, "iso-2022-jp", *SINGLE])
def test_what_is_written_is_read_back(name: str) -> None:
    """A character that an encoding has survives; one that it lacks is a reference."""
    chance = random.Random(30)
    for number in (*range(0x80, 0x600), *range(0x2000, 0x2700), *chance.sample(range(0x3000, 0xD7FF), 2000)):
        octets = written(chr(number), name)
        if octets != b"%%26%%23%d%%3B" % number:
            wide = {0x2212: "－"} if name in ("euc-jp", "shift_jis", "iso-2022-jp") else {}
            known = decode(octets, name)
            assert known == wide.get(number, chr(number)) or (known in "\\~" and chr(number) in "¥‾")


@pytest.mark.parametrize(
    ("text", "name", "octets"),
    [
        ("é①", "windows-1252", b"\xe9%26%239312%3B"),
        ("①ⅰ−ｱ¥\ue000", "shift_jis", b"\x87\x40\xfa\x40\x81\x7c\xb1\\%26%2357344%3B"),
        ("丂①", "euc-jp", b"%26%2319970%3B\xad\xa1"),
        ("あa¥b\\é", "iso-2022-jp", b'\x1b$B$"\x1b(Ba\x1b(J\\b\x1b(B\\%26%23233%3B'),
        ("ｶﾞ", "iso-2022-jp", b"\x1b$B%+!+\x1b(B"),
        ("€龴\U00020003", "gbk", b"\x80\xfe\x59%26%23131075%3B"),
        ("€龴\U00020003\ue5e5", "gb18030", b"\xa2\xe3\xfe\x59\x95\x32\x82\x39%26%2358853%3B"),
        ("十鿋", "big5", b"\xa4\x51%26%2340907%3B"),
        ("é", "utf-16le", b"\xc3\xa9"),
    ],
)
def test_written(text: str, name: str, octets: bytes) -> None:
    """Of several places in an index the standard's is written; what may only be read is not."""
    assert written(text, name) == octets


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("text/html", None),
        ("text/html; charset=windows-1251", "windows-1251"),
        ('text/html;version=1;CHARSET="Shift_JIS"', "shift_jis"),
        ('text/html; a="; charset=koi8-r"; charset=gb2312', "gbk"),
        ('text/html; a="; charset=koi8-r', None),
        ("text/html; xcharset=koi8-r", None),
        ("text/html; charset=klingon", None),
        ("text/html; charset=utf-8, text/html", "utf-8"),
        ("text/html; charset=utf-8; charset=koi8-r", "utf-8"),
        ("text/html; " + "x" * 300 + "; charset=visual", "iso-8859-8"),
    ],
)
def test_charset_of_a_header(header: str, name: str | None) -> None:
    """The first charset parameter counts, not what stands in quotes."""
    assert charset_of(header) == name


@pytest.mark.parametrize(
    ("octets", "name"),
    [
        (b"<?xml version='1.0' encoding='windows-31j'?>", "shift_jis"),
        (b'<?xml version="1.0"\nencoding = "utf8" ?>', "utf-8"),
        (b'<?xml encoding="UTF-16"?>', "utf-8"),
        (b'<?xml version="1.0"?><a encoding="koi8-r"/>', None),
        (b"<?xml encoding=\"koi8-r'?>", None),
        (b' <?xml encoding="koi8-r"?>', None),
        (b'<?xmlencoding="koi8-r"?>', None),
    ],
)
def test_xml_declaration(octets: bytes, name: str | None) -> None:
    """An XML declaration at the very start names its encoding, in quotes that close."""
    assert xml_encoding(octets) == name


def test_mark_then_header_then_document() -> None:
    """A document's mark counts before its header, that before what the document says, and UTF-8 else."""
    assert mark_of(b"\xef\xbb\xbf") == ("utf-8", 3)
    assert mark_of(b"\xef\xbb") is None
    assert text_of("\ufeffж".encode("utf-16-be"), "text/xml; charset=koi8-r") == "ж"
    assert text_of(b"\xd6", "text/xml; charset=koi8-r", "windows-1252") == "ж"
    assert text_of(b"\xd6", "text/xml", "windows-1252") == "Ö"
    assert text_of(b"\xd6\xd0\xb6", "text/xml; charset=klingon") == "\ufffdж"


@pytest.mark.parametrize("name", [*MULTIPLE, "iso-2022-jp"])
@pytest.mark.parametrize("unit", [b"\xff", b"\x81", b"\x8f\xa1", b"\x1b$B!", b"\x1b$B\x1b(I", b"\x8130", b"a\xa1"])
def test_time_grows_with_the_text(name: str, unit: bytes) -> None:
    """Of 200,000 octets of one thing, all of it wrong or not, reading and writing takes a tenth of the bound."""
    with bounded(1.0):
        written(decode(unit * (200_000 // len(unit)), name)[:20_000], name)
