"""Documents that are zips, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
_WORDS = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
_RELATIONS = (
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "http://purl.oclc.org/ooxml/officeDocument/relationships",
)


def packed(files: Mapping[str, str | bytes], mimetype: str = "") -> bytes:
    """A zip of these, the type first and as it is."""
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as package:
        if mimetype:
            package.writestr("mimetype", mimetype, ZIP_STORED)
        for name, content in files.items():
            package.writestr(name, content)
    return out.getvalue()


def docx(body: str, relations: str = "", title: str = "A letter", *, strict: bool = False) -> bytes:
    """With this in its ``w:body``; ``relations`` are its links."""
    more = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    spaces = f'xmlns:w="{_WORDS[strict]}" xmlns:r="{_RELATIONS[strict]}" {more}'
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f"<w:document {spaces}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": f"<Relationships>{relations}</Relationships>",
            "docProps/core.xml": f"<c {_DC}><dc:title>{title}</dc:title><dc:language>en-GB</dc:language></c>",
        }
    )


def link(name: str, target: str, mode: str = "External") -> str:
    """A relation of a docx."""
    return f'<Relationship Id="{name}" Type="{_RELATIONS[0]}/hyperlink" Target="{target}" TargetMode="{mode}"/>'


def odt(body: str, head: str = "") -> bytes:
    """With this in its ``office:text``."""
    spaces = (
        'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"'
    )
    content = f"{head}<office:document-content {spaces}><office:body><office:text>{body}</office:text></office:body>"
    return packed(
        {
            "content.xml": f"{content}</office:document-content>",
            "meta.xml": f"<m {_DC}><dc:title>Ein Brief</dc:title><dc:language>de-DE</dc:language></m>",
        },
        "application/vnd.oasis.opendocument.text",
    )


def epub(chapters: Mapping[str, str], order: tuple[str, ...]) -> bytes:
    """A book of these bodies of pages; ``order`` is that of its spine."""
    items = "".join(
        f'<item id="{name}" href="text/{name}.xhtml" media-type="application/xhtml+xml"/>' for name in chapters
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in order)
    about = "<dc:title>A book</dc:title><dc:language>fr</dc:language>"
    book = (
        f'<package xmlns="http://www.idpf.org/2007/opf" {_DC}><metadata>{about}</metadata>'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    pages = {
        f"OEBPS/text/{name}.xhtml": f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>'
        for name, body in chapters.items()
    }
    return packed({"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": book, **pages}, "application/epub+zip")
