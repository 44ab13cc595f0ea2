"""Decides which of a rendered page's sub-requests are sent at all: scripts and the data they ask for, few of them."""

from __future__ import annotations

from crawlerproject.rules.rendering.trackers import is_tracker

# Resource types as Playwright names them. A page's words and links need nothing else; frames are links of the page,
# fetched as pages of their own.
WANTED_KINDS = frozenset({"script", "xhr", "fetch"})


def embed_refusal(kind: str, method: str, host: str, *, asked: int, max_asked: int) -> str:
    """Why a sub-request is not sent, one word; "" when it may be.

    ``host`` is its host name, ``asked`` how many this page has sent already.
    """
    if kind not in WANTED_KINDS:
        return kind or "other"
    if method != "GET":
        return "method"  # whatever changes something on the server is not a crawler's to send
    if is_tracker(host):
        return "tracker"
    return "too-many" if asked >= max_asked else ""
