"""Signs what the crawler sends: one signature an authority and some hours, or one a request; what a server asks for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from crawlerproject.config.values import list_of, own_keys
from crawlerproject.errors import OperatorError
from crawlerproject.fetch.http1 import Target
from crawlerproject.rules.identity.key_ring import (
    CLOCK_SECONDS,
    LOOK_SECONDS,
    REUSED_SECONDS,
    STAMP_SECONDS,
    VALID_ONCE_SECONDS,
    VALID_SECONDS,
    KeyRing,
)
from crawlerproject.rules.identity.message_signatures import (
    BY_AUTHORITY,
    BY_PATH,
    Asked,
    Covered,
    Message,
    Signing,
    Span,
    asked_for,
)
from crawlerproject.rules.url.refused_urls import Exclusion
from crawlerproject.runtime.lru import LruCache
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

COVERS = {"authority": BY_AUTHORITY, "path": BY_PATH}
"""By the words of IDENTITY_COVERS."""

# Authorities whose signature is kept: 20 MB. Of a crawl that goes round among more each request is signed.
_MOST_KEPT = 50_000
# Servers that have asked for a signature of their own kind; the one that is forgotten asks once more.
_MOST_ASKING = 10_000

Sent = Callable[[], dict[bytes, list[bytes]]]
_Lines = tuple[bytes, bytes]  # those that many share, and the signature
_UNSIGNED: _Lines = (b"", b"")


class Signer:
    """The signatures of one crawler."""

    def __init__(
        self,
        read: Callable[[], KeyRing],
        covers: Covered = BY_AUTHORITY,
        excepted: Exclusion | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``read`` gives the keys as they are in their file now. Raises its OperatorError. ``clock``: epoch seconds."""
        self._read = read
        self._covers = covers
        self._excepted = excepted or Exclusion()
        self._clock = clock
        now = clock()
        self._ring = read()
        self._key = self._ring.signing(now)
        self._looks_at = now + LOOK_SECONDS
        self._complained = self._replaced = False
        self._asked: LruCache[bytes, Asked] = LruCache(_MOST_ASKING)
        self._since = self._until = 0.0
        self._span = Span(0, 0)
        self._shared = b""
        self._made: dict[bytes, _Lines] = {}  # by authority, of this span
        self._once: tuple[float, Signing] | None = None  # of requests that are signed each, and since when

    def fields(self, method: str, target: Target, sent: Sent) -> bytes:
        """The header lines of one request, b"" where the operator wants none; ``sent`` gives its other headers."""
        now = self._clock()
        if not self._since <= now < self._until:
            self._begin(now)
        made = self._made.get(target.host_header)
        if made is None:
            made = self._sign(method, target, sent, now)
        return made[0] + made[1]

    def replaces(self, url: str) -> None:
        """Say once that a request came with signature headers of its own, which are not sent."""
        if not self._replaced:
            logger.warning("Signature headers that the project sets (for %s, say) are left out: the crawler signs", url)
        self._replaced = True

    def asked(self, target: Target, status: int, accept_signature: Sequence[bytes]) -> bool:
        """Take note of what a server wants to be signed; whether a request that it has refused is worth another try.

        Once for a host: with what it asks for it has an answer, whatever it says to that.
        """
        wanted = asked_for(b", ".join(accept_signature).decode("latin-1"), self._key.keyid)
        if wanted is None or self._is_excepted(target):
            return False
        before = self._asked.get(target.host_header)
        sent = before.covered if before is not None else self._covers
        self._asked[target.host_header] = wanted
        self._made.pop(target.host_header, None)
        other = bool(wanted.nonce) or (wanted.covered.label, wanted.covered.names) != (sent.label, sent.names)
        return status == 403 and before is None and other

    def _begin(self, now: float) -> None:
        """A span of signatures begins, at the latest when it is time to look at the keys."""
        self._look(now)
        self._since, self._until = now, now + REUSED_SECONDS
        self._span = Span(int(now) - CLOCK_SECONDS, int(now) + VALID_SECONDS)
        self._made.clear()

    def _look(self, now: float) -> None:
        """Read the keys, which may have been rotated. Those that were read last hold where they cannot be."""
        self._looks_at = now + LOOK_SECONDS
        try:
            self._ring, self._complained = self._read(), False
        except OperatorError as error:
            if not self._complained:
                logger.error("%s Until then requests are signed with the keys as they were.", error)
            self._complained = True
        key = self._ring.signing(now)
        if key.keyid != self._key.keyid:
            logger.info("Requests are signed with the key %s from now on", key.keyid)
            self._made.clear()
            self._once = None
        self._key = key

    def _sign(self, method: str, target: Target, sent: Sent, now: float) -> _Lines:
        if not self._looks_at - LOOK_SECONDS <= now < self._looks_at:
            self._look(now)
        if self._is_excepted(target):
            return self._keep(target, _UNSIGNED)
        authority, path = target.host_header.decode("ascii"), target.path.decode("ascii")
        message = Message(method, target.scheme, authority, path, {})
        asked = self._asked.peek(target.host_header)
        if asked is not None:
            try:
                return self._as_asked(asked, target, message, sent, now)
            except ValueError:  # it asks for a header that this request has not
                pass
        elif self._covers.of_authority:
            return self._keep(target, Signing(self._key, self._covers, self._span).of(message))
        if self._once is None or not self._once[0] <= now < self._once[0] + STAMP_SECONDS:
            self._once = now, Signing(self._key, self._covers, _once(now))
        return self._once[1].of(message)

    def _as_asked(self, asked: Asked, target: Target, message: Message, sent: Sent, now: float) -> _Lines:
        covered, nonce = asked
        if covered.of_authority and not nonce:
            return self._keep(target, Signing(self._key, covered, self._span).of(message))
        if covered.sent_fields:
            message = message._replace(fields=_as_covered(sent()))
        made = Signing(self._key, covered, _once(now), nonce).of(message)
        if nonce:  # it is for one request
            self._asked[target.host_header] = Asked(covered)
        return made

    def _keep(self, target: Target, made: _Lines) -> _Lines:
        if made[0] == self._shared:
            made = self._shared, made[1]
        else:
            self._shared = made[0] or self._shared
        if len(self._made) >= _MOST_KEPT:
            del self._made[next(iter(self._made))]
        self._made[target.host_header] = made
        return made

    def _is_excepted(self, target: Target) -> bool:
        return self._excepted.excludes(f"[{target.host}]" if ":" in target.host else target.host)


def _as_covered(sent: dict[bytes, list[bytes]]) -> dict[str, str]:
    """Headers as RFC 9421 2.1 has them."""
    return {name.decode("latin-1").lower(): b", ".join(values).decode("latin-1") for name, values in sent.items()}


def _once(now: float) -> Span:
    return Span(int(now) - CLOCK_SECONDS, int(now) + VALID_ONCE_SECONDS)


def signer_in(settings: BaseSettings) -> Signer:
    """By the IDENTITY_* settings. Raises OperatorError."""
    excepted, problems = Exclusion.parse(list_of(settings, "IDENTITY_EXCEPT"))
    if problems:
        raise OperatorError(f"IDENTITY_EXCEPT has {problems[0].text!r}, which {problems[0].why}; name hosts.")
    word = str(settings.get("IDENTITY_COVERS") or "authority")
    if word not in COVERS:
        raise OperatorError(f"IDENTITY_COVERS is {word!r}; use one of {', '.join(COVERS)}.")

    def read() -> KeyRing:
        ring = own_keys(settings)
        assert ring is not None  # asked for where the setting is
        return ring

    return Signer(read, COVERS[word], excepted)


def signer_of(crawler: Crawler) -> Signer:
    """The crawler's one signer: the handlers for http and https share it. Raises OperatorError."""
    return services_of(crawler).once(Signer, lambda: signer_in(crawler.settings))
