"""What a page that has not been read says about a browser."""

from __future__ import annotations

from crawlerproject.rules.page.body import in_utf8, is_bomb
from crawlerproject.rules.page.page import read_document
from crawlerproject.rules.rendering.thin_pages import PLAIN, Triage, judge


def triage(body: bytes, content_type: str | None) -> Triage:
    """The verdict on an HTML answer with status 200."""
    source, _ = in_utf8(body, content_type)
    return PLAIN if is_bomb(source) else judge(read_document(source).shell, body)
