"""Decides whether, when and how a known page is asked for again: the table of "Building a polite & fast web crawler".

Read from the top, the first line that holds decides::

    the stored answer is still fresh (Cache-Control, Expires)  ->  no request (``is_due``)
    we were there recently, by our own standard                ->  no request (``is_due``)
    there is a validator that this host has not disgraced      ->  one conditional GET (``validators``)
    else                                                       ->  one GET

and of the answer: 304, or the same payload, means unchanged. A Last-Modified older than our visit on a 200 decides
nothing: servers write it from clocks and templates, the payload is what counts. The article asks with HEAD
first; If-None-Match in the GET itself says the same with one request instead of two (RFC 9110 13.1).

Of a URL without a page the first answer was no 200, or none came, or it was refused in its queue before any visit. All
that is known is why, so its waits are those of pages (``TIERS``): the shortest after what passes by itself, the third
after what seldom does, and twice the last one each time, up to the longest. Nutch requests a missing page after one and
a half of its interval each time, up to its longest (``AbstractFetchSchedule.setPageGoneSchedule``).

And what is remembered of a page's and a host's visits, how one more visit changes it, and how the store keeps it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.reasons import RESERVED, Reason
from crawlerproject.rules.politeness.pauses import THEIR_FAILURES

if TYPE_CHECKING:
    from crawlerproject.rules.revisits.change_rate import Belief

DAY_SECONDS = 86_400.0
MAX_FRESH_SECONDS = 30 * DAY_SECONDS
"""A freshness beyond the longest wait of ``TIERS`` counts as that: some servers say ten years."""
# A host's word weighs as if it had kept it so often before its first visit (ours): one slip in a hundred is forgiven.
_CREDIT = 4.0
# Below this share of kept words a kind of validator is not sent (ours).
_TRUSTED_SHARE = 0.8
# Notes are halved past this many, so that a host that has mended its ways is believed again.
_MAX_NOTES = 50.0
_DIGITS = 10  # of a delta-seconds that is read; RFC 9111 1.2.2 lets larger ones count as 2^31
# The standard sets no bound; real ones are a digest with a prefix or two, a quarter of this (ours).
_MAX_VALIDATOR = 256
_QUOTED = re.compile(r'(?:W/)?"[^"]*"')  # RFC 9110 8.8.3

RATE_COUNT = 12
"""Rates of change that a belief weighs (``change_rate.RATES``)."""
NEAR_WEIGHT = 0.2
"""What a near-duplicate change (another date, another advertisement) counts beside a real one (ours)."""
TIERS = ((0.99, 2.0), (0.9, 7.0), (0.5, 14.0), (0.0, 30.0))
"""Longest wait in days by the share of pages that are less important: "Web Crawler" asks for 2 to 30 days by rank."""

_SOON_SECONDS, _LATER_SECONDS, _LONGEST_SECONDS = (TIERS[tier][1] * DAY_SECONDS for tier in (0, 2, 3))

# What seldom passes by itself: the URL leads nowhere, or elsewhere, or to what no reader takes.
_LATER = frozenset(
    {
        Reason.FETCHED,  # 204 and the like
        Reason.NOT_MODIFIED,
        Reason.REDIRECT,
        Reason.HTTP_ERROR,  # below 500
        Reason.PAYMENT_REQUIRED,
        *RESERVED,
        Reason.CHALLENGE,
        Reason.DNS_NOT_FOUND,
        Reason.TLS_CERTIFICATE,
        Reason.TLS_FAILED,
        Reason.PRIVATE_ADDRESS,
        Reason.BAD_RESPONSE,
        Reason.HEADER_TOO_LARGE,
        Reason.MIDDLEWARE,
        Reason.INTERNAL_ERROR,  # another version may read it
    }
)
_SOON = (
    THEIR_FAILURES - _LATER
    | {Reason.PROXY_FAILED, Reason.OUR_LIMIT, Reason.PACE_GUARD}
    | {Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE, Reason.NEVERCRAWL, Reason.SCOPE, Reason.EXTENSION}
)


class Change(Enum):
    """What an answer says of the page, beside what was known."""

    UNCHANGED = "unchanged"  # 304, or the same payload
    NEAR = "near"  # another payload with nearly the same text
    CHANGED = "changed"
    UNKNOWN = "unknown"  # an error: it says nothing of the page


class Known(NamedTuple):
    """What the last visit left behind."""

    etag: str = ""  # as received
    last_modified: str = ""  # as received
    digest: bytes = b""  # sha1 of the payload


class Answer(NamedTuple):
    """What a visit brought."""

    status: int
    etag: str = ""  # as received
    last_modified: str = ""  # as received
    digest: bytes = b""  # sha1 of the payload


class Trust(NamedTuple):
    """How far a host's validators earned belief. Counts, fading."""

    etag_calm: float = 0.0  # the payload and the ETag stayed
    etag_restless: float = 0.0  # the payload stayed, the ETag did not: it would never have given a 304
    honest: float = 0.0  # full GETs whose payload and validators changed or stayed together
    lies: float = 0.0  # the payload changed, the validators did not: a 304 would have been a lie

    @property
    def believes_etag(self) -> bool:
        """Whether If-None-Match is worth sending; a restless ETag even keeps If-Modified-Since from being read."""
        return _share(self.etag_calm, self.etag_restless) >= _TRUSTED_SHARE

    @property
    def believes_304(self) -> bool:
        """Whether a 304 of this host can be taken at its word."""
        return _share(self.honest, self.lies) >= _TRUSTED_SHARE


NEW_HOST = Trust()
"""Of a host we know nothing about: believed until it slips."""


def is_due(visited_at: float, fresh_until: float, now: float, recent_seconds: float) -> bool:
    """Whether a known page is neither fresh by its own headers nor visited within ``recent_seconds``."""
    return fresh_until <= now and now - visited_at >= recent_seconds


def fit(validator: str) -> str:
    """An ETag or Last-Modified (latin-1, as received) that may be sent back; "" instead of any other.

    Printable, not long, and nothing that a server may take for ``*``, which holds for every version (RFC 9110 13.1.2):
    some look at the first character alone, some at each member of a list.
    """
    if len(validator) > _MAX_VALIDATOR or not validator.isprintable():
        return ""
    return "" if "*" in validator and _QUOTED.fullmatch(validator) is None else validator


def validators(known: Known, trust: Trust) -> dict[str, bytes]:
    """The headers of a conditional request, in the bytes that were received; none of a host that is not believed."""
    if not trust.believes_304 or not known.digest:
        return {}
    headers = {}
    etag, last_modified = fit(known.etag), fit(known.last_modified)  # of old crawls, whatever it was
    if etag and trust.believes_etag:
        headers["If-None-Match"] = etag.encode("latin-1")
    if last_modified and http_date(last_modified) is not None:
        headers["If-Modified-Since"] = last_modified.encode("latin-1")
    return headers


def change(known: Known, answer: Answer) -> Change:
    """What an answer says of a page that was 200 before; NEAR takes a comparison of the texts."""
    status = answer.status
    if status == 304:
        return Change.UNCHANGED
    if status in (404, 410):
        return Change.CHANGED
    if status != 200 or not known.digest:
        return Change.UNKNOWN
    return Change.UNCHANGED if answer.digest == known.digest else Change.CHANGED


def learned(trust: Trust, known: Known, answer: Answer) -> Trust:
    """The host's record after one more full answer; a 304 proves nothing and changes nothing."""
    status, etag, last_modified, digest = answer
    if status != 200 or not known.digest or not (known.etag or known.last_modified):
        return trust
    same = digest == known.digest
    if known.etag and same:
        if etag == known.etag:
            trust = trust._replace(etag_calm=trust.etag_calm + 1)
        else:
            trust = trust._replace(etag_restless=trust.etag_restless + 1)
    still_valid = etag == known.etag if known.etag else last_modified == known.last_modified
    if not same and still_valid and not (etag or "").startswith("W/"):  # a weak one may stay: RFC 9110 8.8.1
        trust = trust._replace(lies=trust.lies + 1)
    else:
        trust = trust._replace(honest=trust.honest + 1)
    if max(trust.etag_calm + trust.etag_restless, trust.honest + trust.lies) <= _MAX_NOTES:
        return trust
    return Trust(*(count / 2 for count in trust))


def fresh_until(headers: Mapping[str, str], visited_at: float) -> float:
    """Until when an answer is fresh by its own word (RFC 9111 4.2.1); ``visited_at`` when it says nothing.

    ``headers`` has lower-case names. no-store and no-cache mean never; heuristics (4.2.2) are not used.
    """
    if not headers:
        return visited_at
    directives: dict[str, str] = {}
    for part in headers.get("cache-control", "").split(","):
        name, _, argument = part.partition("=")
        directives.setdefault(name.strip().lower(), argument.strip().strip('"'))
    if "no-store" in directives or "no-cache" in directives:
        return visited_at
    lifetime = _seconds(directives.get("max-age"))
    if lifetime is None:
        # By the server's clock: its distance to Date counts, not to ours.
        expires = http_date(headers["expires"]) if "expires" in headers else None
        date = http_date(headers.get("date", "")) if expires is not None else None
        lifetime = 0.0 if expires is None else expires - (visited_at if date is None else date)
    age = _seconds(headers.get("age")) or 0.0
    return visited_at + min(max(0.0, lifetime - age), MAX_FRESH_SECONDS)


def http_date(text: str) -> float | None:
    """The epoch seconds of an HTTP date in any of its three forms; None for any other text."""
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:  # asctime's form, and "-0000": HTTP dates are UTC
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def wait_seconds(reason: str, status: int, last_seconds: float) -> float | None:
    """How long a URL waits after an end like this (``status`` 0: no answer); None: a recrawl does not know it.

    ``last_seconds``: its last wait; 0 the first time.
    """
    if reason in _SOON or (reason == Reason.HTTP_ERROR and status >= 500):
        first = _SOON_SECONDS
    elif reason in _LATER:
        first = _LATER_SECONDS
    else:
        return None
    return min(max(first, 2 * last_seconds), _LONGEST_SECONDS)


def longest_wait_days(less_important: float) -> float:
    """The tier of a page, given the share of pages that are less important."""
    return next(days for share, days in TIERS if less_important >= share)


def _seconds(text: str | None) -> float | None:
    """delta-seconds; None when it is no such number, which RFC 9111 4.2.1 lets count as stale."""
    if text is None:
        return None
    text = text.strip()
    return float(text[:_DIGITS]) if text.isascii() and text.isdigit() else 0.0


def _share(kept: float, broken: float) -> float:
    return (kept + _CREDIT) / (kept + broken + _CREDIT)


PAGE, FEED, SITEMAP, REQUISITE = 0, 1, 2, 3

_PAGE = struct.Struct("<BBBHdddffQ")
_FORMAT = 1
_HOST = struct.Struct(f"<B4f2ff{RATE_COUNT}f")
_LOOSENED_AT = struct.Struct("<d")  # behind it where it is not 0
# New links of a visit weigh so much against what earlier visits found (ours).
_LATEST = 0.5
_CHANGED = {Change.UNCHANGED: 0.0, Change.NEAR: NEAR_WEIGHT, Change.CHANGED: 1.0}
_MOST_VISITS = 0xFFFF
# A host's pages whose beliefs are held in its sum; beyond, the sum is halved, so that the host may change (ours).
_MOST_PAGES = 2000.0


class History(NamedTuple):
    """What is remembered of one page. Epoch seconds; 0 for never."""

    kind: int = PAGE
    # Links from a seed, at most 255; of a sitemap: how many files lead to it, itself included; of a requisite: how many
    # embeddings do.
    depth: int = 0
    visits: int = 0  # that showed something of the content
    seen_at: float = 0.0  # last of them; before the first: when it was first asked for, or refused in its queue
    fresh_until: float = 0.0  # by the page's own word; before the first visit: until when it waits (waits.py)
    queued_at: float = 0.0  # waits in its queue to be visited again since then
    new_links: float = 0.0  # that a visit finds, lately
    announced: float = 0.0  # 1 when a sitemap, feed or push announced that it changed since
    fingerprint: int = 0  # SimHash of the text last archived; 0 when there is none
    belief: bytes = b""  # packed; empty before the second visit
    origin: str = ""  # of a sitemap: whose robots.txt names it; of a requisite: the other domain that did

    def pack(self) -> bytes:
        """The bytes that the store keeps."""
        kind, depth, visits, seen_at, fresh_until, queued_at, new_links, announced, fingerprint, belief, origin = self
        head = _PAGE.pack(
            _FORMAT << 4 | kind,
            len(belief),
            min(depth, 255),
            min(visits, _MOST_VISITS),
            seen_at,
            fresh_until,
            queued_at,
            new_links,
            announced,
            fingerprint,
        )
        return head + belief + origin.encode()

    @classmethod
    def unpack(cls, kept: bytes) -> History:
        """What ``pack`` wrote; the empty history for nothing, or for another version's."""
        if len(kept) < _PAGE.size or kept[0] >> 4 != _FORMAT:
            return cls()
        values = _PAGE.unpack_from(kept)
        origin_at = _PAGE.size + values[1]
        return cls._make((values[0] & 15, *values[2:], kept[_PAGE.size : origin_at], kept[origin_at:].decode()))


class HostHistory(NamedTuple):
    """What is known of one host: what its validators and its sitemaps' dates are worth, and how its pages change."""

    trust: Trust = NEW_HOST
    lastmod_kept: float = 0.0  # a page that was announced had changed
    lastmod_broken: float = 0.0  # it had not
    pages: float = 0.0  # whose beliefs are in the sum
    together: tuple[float, ...] = (0.0,) * RATE_COUNT
    loosened_at: float = 0.0  # epoch seconds: when its robots.txt came to allow more; 0: never

    @property
    def believes_lastmod(self) -> bool:
        """Whether a sitemap's or feed's date is reason enough to go and look: as long as half of them were right."""
        return self.lastmod_kept + 2 >= self.lastmod_broken

    def prior(self) -> Belief:
        """The belief about a page of this host that was visited once."""
        import numpy as np

        from crawlerproject.rules.revisits.change_rate import prior

        return prior(np.array(self.together), self.pages)

    def pack(self) -> bytes:
        """The bytes that the store keeps."""
        trust, lastmod_kept, lastmod_broken, pages, together, loosened_at = self
        kept = _HOST.pack(_FORMAT, *trust, lastmod_kept, lastmod_broken, pages, *together)
        return kept + _LOOSENED_AT.pack(loosened_at) if loosened_at else kept

    @classmethod
    def unpack(cls, kept: bytes) -> HostHistory:
        """What ``pack`` wrote; the empty one for nothing, or for another version's."""
        if len(kept) not in (_HOST.size, _HOST.size + _LOOSENED_AT.size) or kept[0] != _FORMAT:
            return cls()
        _, calm, restless, honest, lies, lastmod_kept, lastmod_broken, pages, *together = _HOST.unpack_from(kept)
        loosened_at = _LOOSENED_AT.unpack_from(kept, _HOST.size)[0] if len(kept) > _HOST.size else 0.0
        return cls(
            Trust(calm, restless, honest, lies), lastmod_kept, lastmod_broken, pages, tuple(together), loosened_at
        )


class Found(NamedTuple):
    """What one more visit found. Epoch seconds."""

    change: Change
    at: float
    fresh_until: float = 0.0
    new_links: int = 0


def next_visit(history: History, host: HostHistory, found: Found) -> tuple[History, HostHistory]:
    """Both histories after one more visit; an answer that shows nothing of the content only ends the waiting."""
    change, now, fresh_until, new_links = found
    if change is Change.UNKNOWN or not history.seen_at:
        return history._replace(queued_at=0.0), host
    from crawlerproject.rules.revisits.change_rate import packed, unpacked, visited

    old = unpacked(history.belief) if history.belief else host.prior()
    belief = visited(old, max(0.0, now - history.seen_at) / DAY_SECONDS, _CHANGED[change])
    links = new_links if history.visits < 2 else _LATEST * new_links + (1 - _LATEST) * history.new_links
    later = history._replace(
        visits=history.visits + 1,
        seen_at=now,
        fresh_until=fresh_until,
        queued_at=0.0,
        new_links=links,
        announced=0.0,
        belief=packed(belief),
    )
    if history.kind == REQUISITE:  # how often a site's pictures change says nothing of its pages
        return later, host
    return later, _with_page(host, old if history.belief else None, belief, history.announced, change)


def _with_page(host: HostHistory, old: Belief | None, new: Belief, announced: float, change: Change) -> HostHistory:
    import numpy as np

    together = np.array(host.together) + new - (0.0 if old is None else old)
    pages = host.pages + (old is None)
    if pages > _MOST_PAGES:
        together, pages = together / 2, pages / 2
    host = host._replace(pages=pages, together=tuple(np.maximum(together, 0.0).tolist()))
    if announced:
        if change is Change.UNCHANGED:
            return host._replace(lastmod_broken=host.lastmod_broken + 1)
        return host._replace(lastmod_kept=host.lastmod_kept + 1)
    return host
