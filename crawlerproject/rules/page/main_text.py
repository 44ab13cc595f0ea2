"""Decides what of a page's text is its article, and how much is the frame around it; Resiliparse does the looking.

Apache-2.0, and the quickest of those that were compared (docs/batch.md). It is an optional requirement.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

from crawlerproject.rules.page.encoding import decode
from crawlerproject.rules.page.page import MAX_HTML_BYTES
from crawlerproject.rules.page.parser_bombs import is_bomb

_LIBRARY = "resiliparse"


class MainText(NamedTuple):
    """The article, and the share of the page's visible letters that it leaves out: 0 to 1."""

    text: str
    boilerplate: float


def can_find_main_text() -> bool:
    """Whether Resiliparse is installed."""
    return find_spec(_LIBRARY) is not None


def main_text(body: bytes, content_type: str | None) -> MainText | None:
    """Of an HTML page (content coding undone); None when it is not parsed, or says nothing."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    source = decode(body[:MAX_HTML_BYTES], content_type)[0]
    if is_bomb(source.encode()):
        return None
    tree = HTMLTree.parse(source)
    whole = _lines(extract_plain_text(tree, alt_texts=False))
    if not whole:
        return None
    found = _lines(extract_plain_text(tree, main_content=True, alt_texts=False))
    return MainText(found, max(0.0, 1.0 - _letters(found) / _letters(whole)))


def _lines(text: str) -> str:
    return "\n".join([line for raw in text.split("\n") if (line := " ".join(raw.split()))])


def _letters(text: str) -> int:
    return sum(map(len, text.split()))
