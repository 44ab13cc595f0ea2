"""The text of a sitemap or feed, a piece at a time, in whatever encoding its bytes are."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from crawlerproject.rules.web_encodings import UTF_8, charset_of, decode, mark_of, xml_encoding

_UTF_16 = frozenset({"utf-16le", "utf-16be"})
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
# Where bytes may be cut in two: no octet of a longer character is a ">", but in ISO-2022-JP, which goes back to
# ASCII by this escape.
_CUTS = {"iso-2022-jp": b"\x1b(B"}


def text_pieces(pieces: Iterable[bytes], content_type: str | None) -> Iterator[str]:
    """The text of ``pieces`` in pieces of its own. It never raises for what they hold.

    The encoding is that of the mark, of Content-Type, of the XML declaration (RFC 7303 3.2), and else UTF-8, in which
    what is not UTF-8 is read as windows-1252: one such letter in one title makes no address another.
    """
    source = iter(pieces)
    first = next(source, b"")
    name, mark_bytes = _encoding(first, content_type)
    first = first[mark_bytes:]
    if name == UTF_8 or name in _UTF_16:
        decoder = codecs.getincrementaldecoder(name)("windows-1252-within" if name == UTF_8 else "replace")
        yield decoder.decode(first)
        for piece in source:
            yield decoder.decode(piece)
        yield decoder.decode(b"", final=True)
        return
    cut = _CUTS.get(name, b">")
    waiting = [first]
    for piece in source:
        if (at := piece.rfind(cut)) >= 0:
            yield decode(b"".join([*waiting, piece[:at]]), name)
            waiting = [piece[at:]]
        else:
            waiting.append(piece)
    yield decode(b"".join(waiting), name)


def _encoding(first: bytes, content_type: str | None) -> tuple[str, int]:
    """The encoding of what begins with ``first``, and how many bytes its mark takes."""
    if (mark := mark_of(first)) is not None:
        return mark
    start = first.lstrip(b"\t\n\r ")[:2].ljust(2, b"a")
    if start[1] == 0 or start[0] == 0:  # ASCII in UTF-16 (XML 1.0, appendix F); after a blank it may be its other half
        return ("utf-16be" if first[:1] == b"\0" else "utf-16le"), 0
    declared = xml_encoding(first[max(first.find(b"<?xml"), 0) :])
    name = charset_of(content_type) or declared or UTF_8
    if name == UTF_8 and declared is not None and not _is_utf8(first):
        name = declared  # a server's default says nothing of this file
    # What was read as ASCII so far is not UTF-16 (HTML 13.2.3.2).
    return (UTF_8 if name in _UTF_16 else name), 0


def _is_utf8(start: bytes) -> bool:
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _within(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    run = _BEYOND_ASCII.match(error.object, error.start)
    end = run.end() if run is not None else error.end
    return error.object[error.start : end].decode("cp1252", "replace"), end


codecs.register_error("windows-1252-within", _within)
