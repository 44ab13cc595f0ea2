"""PDFs made by hand: good ones, and such as no program of good will writes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

Link = tuple[str, tuple[int, int, int, int]]
"""Address, and its rectangle."""


def stream(data: bytes, packed: bool = False) -> bytes:
    """A content stream."""
    body = zlib.compress(data, 9) if packed else data
    kind = b"/Filter /FlateDecode " if packed else b""
    return b"<< %b/Length %d >>\nstream\n%b\nendstream" % (kind, len(body), body)


def shown(text: str) -> bytes:
    """What draws these lines."""
    lines = text.encode("latin-1", "replace").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
    drawn = b" T* ".join(b"(%b) Tj" % line for line in lines.split(b"\n"))
    return b"BT /F1 12 Tf 14 TL 72 720 Td %b ET" % drawn


def pdf(pages: Sequence[bytes], title: str = "", links: Sequence[Link] = ()) -> bytes:
    """A document whose pages are these streams; ``links`` are on the first."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    annotations = []
    for address, (left, bottom, right, top) in links:
        objects.append(
            b"<< /Type /Annot /Subtype /Link /Rect [%d %d %d %d] /A << /S /URI /URI (%b) >> >>"
            % (left, bottom, right, top, address.encode())
        )
        annotations.append(b"%d 0 R" % len(objects))
    kids = []
    for number, content in enumerate(pages):
        objects.append(content)
        more = b" /Annots [%b]" % b" ".join(annotations) if annotations and not number else b""
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R%b "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (len(objects), more)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%b] >>" % (len(pages), b" ".join(kids))
    objects.append(b"<< /Title <FEFF%b> >>" % title.encode("utf-16-be").hex().encode())
    return whole(objects, b"/Info %d 0 R" % len(objects))


def whole(objects: Sequence[bytes], more: bytes = b"") -> bytes:
    """Numbered objects, of which the first is the catalogue, with their table."""
    out, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R %b >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, more, len(out))
    return out + head + table + trailer
