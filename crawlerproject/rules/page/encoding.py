"""Decides in which encoding a page is written: BOM, HTTP header, declaration, valid UTF-8, windows-1252."""

from __future__ import annotations

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom

from crawlerproject import native

# Python's names for the WHATWG encodings (encoding.spec.whatwg.org 4.2). The list is closed because codecs
# like unicode_escape, punycode or idna would let a page choose how much CPU and what markup we see.
WEB_ENCODINGS = frozenset(
    {"utf-8", "utf-16-le", "utf-16-be", "cp866", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp874"}
    | {f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)}
    | {f"cp125{part}" for part in range(9)}
    | {"gb18030", "big5hkscs", "euc_jp", "iso2022_jp", "cp932", "cp949"}
)
FALLBACK = "cp1252"  # HTML 13.2.3.2: the default of most locales; it decodes any byte


def decode(body: bytes, content_type: str | None) -> tuple[str, str]:
    """The text of a page and the Python name of its encoding; undecodable bytes become U+FFFD."""
    body, name = _encoding(body, content_type)
    return body.decode(name, "replace"), name


def in_utf8(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """The text of a page in UTF-8, without a mark, and the Python name of the encoding that it came in.

    What is UTF-8 already is given back as it is: no copy, which costs an eighth of reading a page.
    """
    body, name = _encoding(body, content_type)
    if name == "utf-8" and _is_utf8(body):
        return body, name
    return body.decode(name, "replace").encode(), name


def _encoding(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """What is left of a page without its mark, and the encoding to read it by."""
    bom_encoding, bom = read_bom(body)
    if bom_encoding is not None and bom is not None and (name := _web(bom_encoding)):
        return body[len(bom) :], name
    name = _web(http_content_type_encoding(content_type)) or _declared(body)
    if name is not None:
        return body, name
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A body that was cut may end within one character; that does not make it another encoding.
        if error.reason != "unexpected end of data" or error.start < len(body) - 3:
            return body, FALLBACK
    return body, "utf-8"


def _is_utf8(body: bytes) -> bool:
    if body.isascii():
        return True
    if (page := native.reader()) is not None:
        return page.is_utf8(body)
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _declared(body: bytes) -> str | None:
    # w3lib looks at 4,096 bytes: 15 % of 1,213 real pages declare later than the standard's 1,024.
    name = _web(html_body_declared_encoding(body))
    # A declaration that could be read as ASCII is not UTF-16 (HTML 13.2.3.2, prescan).
    return "utf-8" if name is not None and name.startswith("utf-16") else name


def _web(name: str | None) -> str | None:
    if name is None:
        return None
    name = _ALIASES.get(name, name)
    return name if name in WEB_ENCODINGS else None


# UTF-16 without a mark is little-endian on the web (WHATWG Encoding 4.2).
_ALIASES = {"utf-16": "utf-16-le", "utf_16_le": "utf-16-le", "utf_16_be": "utf-16-be", "utf-8-sig": "utf-8"}
