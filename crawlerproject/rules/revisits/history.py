"""What is remembered of a page's and a host's visits, and how one more visit changes it; packed for the store."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.rules.revisits.refetch import DAY_SECONDS, NEAR_WEIGHT, NEW_HOST, RATE_COUNT, Change, Trust

if TYPE_CHECKING:
    from crawlerproject.rules.revisits.change_rate import Belief

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
    """Of one page. Epoch seconds; 0 for never."""

    kind: int = PAGE
    # Links from a seed, at most 255; of a sitemap: how many files lead to it, itself included; of a requisite: how many
    # embeddings do.
    depth: int = 0
    visits: int = 0  # that showed something of the content
    seen_at: float = 0.0  # last of them; before the first: when it was first asked for, or refused in its queue
    fresh_until: float = 0.0  # by the page's own word; before the first visit: until when it waits (waits.py)
    queued_at: float = 0.0  # waits in its queue to be visited again since then
    new_links: float = 0.0  # that a visit finds, lately
    announced: float = 0.0  # 1 when a sitemap, feed or push said that it changed since
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
    """Of one host: what its validators and its sitemaps' dates are worth, and how its pages change."""

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
        trust = self.trust
        kept = _HOST.pack(
            _FORMAT,
            trust.etag_calm,
            trust.etag_restless,
            trust.honest,
            trust.lies,
            self.lastmod_kept,
            self.lastmod_broken,
            self.pages,
            *self.together,
        )
        return kept + _LOOSENED_AT.pack(self.loosened_at) if self.loosened_at else kept

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
