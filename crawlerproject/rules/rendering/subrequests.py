"""Decides which of a rendered page's sub-requests are sent: scripts and the data they ask for, few of them.

And with which header fields, and which later requests of other pages their answers serve.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crawlerproject.rules.rendering.trackers import is_tracker

# Resource types as Playwright names them. A page's words and links need nothing else; frames are links of the page,
# fetched as pages of their own.
WANTED_KINDS = frozenset({"script", "xhr", "fetch"})
MAX_SUBREQUESTS = 40
"""Scripts and data files that one page may load, of all hosts together (RENDER_MAX_SUBREQUESTS, ours)."""
# How long an answer serves other pages (ours). A new version of an application is on the way for a day at most, data
# for an hour; what failed may be there in a few minutes.
_SCRIPT_SECONDS = 86_400.0
_DATA_SECONDS = 3_600.0
_FAILURE_SECONDS = 300.0
# Client errors that are about the moment and not about the URL (RFC 9110 15.5.9, RFC 8470 5.2, RFC 6585 4).
_PASSING = frozenset({408, 425, 429})
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Reuse(NamedTuple):
    """Which later requests for its URL an answer serves."""

    seconds: float  # from its arrival
    by_origin: bool  # those with the same Origin, or without one if it had none
    own_site: bool  # those of pages of the same site

    def and_of(self, other: Reuse) -> Reuse:
        """Of an answer that this one, a redirect, led to."""
        return Reuse(
            min(self.seconds, other.seconds), self.by_origin or other.by_origin, self.own_site or other.own_site
        )


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


def sent_fields(asked: Mapping[str, str]) -> dict[str, str]:
    """The header fields of a sub-request; ``asked`` (lower-case names) are those that the browser would send.

    Two pages' requests for one URL differ in Origin alone, so no other field that a ``Vary`` names can matter:
    ``reuse`` relies on that. No cookie is sent, and no Referer, which would make each site's request its own.
    """
    return {"Accept": "*/*"} | ({"Origin": asked["origin"]} if "origin" in asked else {})


def reuse(status: int, headers: Mapping[str, str], kind: str) -> Reuse | None:
    """What an answer to a sub-request is good for beyond the page that asked; None: nothing.

    ``headers`` have lower-case names. RFC 9111 4.1 decides by the request's fields that ``Vary`` names. Browsers keep
    a cache for each site besides, so that a site cannot find out where its visitor was; a crawler's requests are the
    same bytes for every site, and a script that thousands of sites load from one host is why answers are shared.
    What a server says is for one client is kept within the site whose page received it, and so is a failure.
    """
    vary = [name.strip().lower() for name in headers.get("vary", "").split(",")]
    if "*" in vary:
        return None
    # A server that names one origin, or none, may have looked at Origin without a word of it in Vary.
    by_origin = "origin" in vary or headers.get("access-control-allow-origin", "").strip() != "*"
    script = kind == "script"
    if 400 <= status < 500 and status not in _PASSING:
        return Reuse(_FAILURE_SECONDS, by_origin=True, own_site=True)
    if status != 200 and status not in REDIRECTS:
        return None
    if script and status == 200 and "html" in headers.get("content-type", "").lower():  # an error's page, or a wall
        return Reuse(_FAILURE_SECONDS, by_origin=True, own_site=True)
    policy = headers.get("cache-control", "").lower()
    private = "no-store" in policy or "private" in policy
    if private and not script:
        return None
    return Reuse(_SCRIPT_SECONDS if script else _DATA_SECONDS, by_origin, own_site=private)
