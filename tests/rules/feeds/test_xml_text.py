"""In which encoding a list is read: mark, header, declaration, UTF-8."""

from collections.abc import Iterator

import pytest

from crawlerproject.rules.feeds.xml_text import text_pieces

WORD = "<a>Größe ①</a>"


def text(body: bytes, content_type: str | None = None, piece_bytes: int = 7) -> str:
    """The text of a body that comes in small pieces, which end within characters."""

    def pieces() -> Iterator[bytes]:
        yield body[:64]
        for at in range(64, len(body), piece_bytes):
            yield body[at : at + piece_bytes]

    return "".join(text_pieces(pieces(), content_type))


@pytest.mark.parametrize(
    ("codec", "label"),
    [
        ("utf-8", "utf8"),
        ("utf-8", "UTF-8"),
        ("gb18030", "gb2312"),
        ("gb18030", "GBK"),
        ("big5", "big5"),
        ("cp932", "windows-31j"),
        ("euc_jp", "x-euc-jp"),
        ("iso2022_jp", "ISO-2022-JP"),
        ("cp949", "euc-kr"),
        ("cp874", "windows-874"),
        ("cp1251", "x-cp1251"),
    ],
)
def test_each_encoding_by_its_label(codec: str, label: str) -> None:
    """In the declaration or in Content-Type, whole though its pieces are cut anywhere."""
    letters = {"cp949": "한글", "cp874": "กข", "cp1251": "яжы", "gb18030": "中文", "big5": "中文"}.get(codec, "日本")
    declared = f'<?xml version="1.0" encoding="{label}"?><a>{letters * 40}</a><b>{letters}</b>'
    silent = f"<a>{letters * 40}</a>"

    assert text(declared.encode(codec)) == declared
    assert text(silent.encode(codec), f"text/xml; charset={label}") == silent


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        pytest.param("\ufeffä".encode(), "text/xml; charset=windows-1251", "ä", id="the mark before the header"),
        pytest.param("ä".encode("cp1252"), None, "ä", id="no UTF-8: windows-1252"),
        pytest.param("ö ".encode() + b"\xe4", "text/xml; charset=utf-8", "ö ä", id="a letter of another encoding"),
        pytest.param(
            '<?xml version="1.0" encoding="windows-1251"?>я'.encode("cp1251"), "text/xml; charset=utf-8",
            '<?xml version="1.0" encoding="windows-1251"?>я', id="a server's default that is not true",
        ),
        pytest.param(
            '<?xml version="1.0" encoding="windows-1252"?>я'.encode("cp1251"), "text/xml; charset=windows-1251",
            '<?xml version="1.0" encoding="windows-1252"?>я', id="the header before the declaration (RFC 7303 3.2)",
        ),
        pytest.param(b'<?xml encoding="utf-16"?>a', None, '<?xml encoding="utf-16"?>a', id="ASCII that says UTF-16"),
        pytest.param("\n<a>".encode("utf-16-le"), None, "\n<a>", id="UTF-16 without a mark, after a blank"),
        pytest.param(b"<?xml encoding='klingon'?>" + "ä".encode(), None, "<?xml encoding='klingon'?>ä", id="no label"),
        pytest.param("ä".encode()[:1], None, "Ã", id="half a letter at the end"),
        pytest.param(b"", None, "", id="nothing"),
    ],
)  # fmt: skip
def test_the_order_of_labels(body: bytes, content_type: str | None, expected: str) -> None:
    """What is in the bytes outweighs what is said of them."""
    assert text(body, content_type) == expected
