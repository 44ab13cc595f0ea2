"""Decides what a WebSub hub may tell us: its questions about our subscriptions, and what it pushes.

https://www.w3.org/TR/websub/ (W3C Recommendation, 2018), sections 5.1, 5.3 and 7.1.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from crawlerproject.rules.feeds.feeds import link_header
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.urls import Base

LEASE_SECONDS = 10 * 86_400
"""What is asked for; hubs grant what they like (Google's: up to ten days)."""
MAX_LEASE_SECONDS = 90 * 86_400
"""Of a longer grant no more is believed (ours): a hub that forgot us says nothing."""
ASK_AGAIN_SECONDS = 86_400.0
"""After the last request, when no question came (ours)."""
# Section 7.1's list. SHA-1 as well: Google's hub signs with nothing else, and HMAC-SHA1 is not broken (RFC 6194).
_METHODS = {"sha1": hashlib.sha1, "sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}


class Subscription(NamedTuple):
    """One topic at one hub. Epoch seconds; 0 for never."""

    topic: str
    hub: str
    token: str  # the last part of the callback's path: only the hub knows it
    secret: str  # with which the hub signs
    asked_at: float
    verified_at: float = 0.0
    lease_until: float = 0.0
    denied: str = ""  # the hub's reason
    depth: int = 0  # of the feed
    hops: str = ""  # to the feed

    def live(self, now: float) -> bool:
        """Whether the hub may push."""
        return self.lease_until > now

    def due_at(self) -> float:
        """When it is asked for again: with a tenth of its lease left, or the hub has not come since it was asked."""
        if not self.verified_at or self.asked_at > self.verified_at:
            return self.asked_at + ASK_AGAIN_SECONDS
        return self.lease_until - (self.lease_until - self.verified_at) / 10


class HubReply(NamedTuple):
    """The answer to a hub; ``refused`` is the reason for the log when it is an error."""

    status: int
    body: str = ""
    refused: str = ""


def asking(subscription: Subscription, callback: str) -> bytes:
    """The form that asks the hub for a subscription."""
    form = {
        "hub.callback": callback,
        "hub.mode": "subscribe",
        "hub.topic": subscription.topic,
        "hub.lease_seconds": str(LEASE_SECONDS),
        "hub.secret": subscription.secret,
    }
    return urlencode(form).encode()


def hub_and_topic(url: str, header: Iterable[str], hubs: list[str], own: str) -> tuple[str, str] | None:
    """Hub and topic of a feed at ``url``: its Link headers' first, then its document's; None without a hub.

    A topic on another domain than the feed's is refused: it would let that feed's hub speak for another site.
    """
    named_hubs, named_self = link_header(header)
    base = Base(url)
    hub = next((found.url for text in [*named_hubs, *hubs] if (found := base.join(text)) is not None), None)
    topic = base.join(named_self or own or url)
    here = base.join(url)
    if hub is None or topic is None or here is None:
        return None
    return (hub, topic.url) if registered_domain(topic.host) == registered_domain(here.host) else None


def verified(
    subscription: Subscription | None, asked: Mapping[str, str], now: float
) -> tuple[Subscription | None, HubReply]:
    """A hub's question whether a subscription is wanted, or its word that there will be none (5.2, 5.3).

    The subscription afterwards, and the answer; a refusal changes nothing.
    """
    if subscription is None:
        return None, HubReply(404, refused="no subscription")
    topic, mode, challenge = asked.get("hub.topic", ""), asked.get("hub.mode", ""), asked.get("hub.challenge", "")
    if topic != subscription.topic:
        return subscription, HubReply(404, refused=f"unknown topic {topic[:200]!r}")
    if mode == "denied":
        denied = asked.get("hub.reason", "")[:200] or "without a reason"
        return subscription._replace(denied=denied, verified_at=0.0, lease_until=0.0), HubReply(200)
    if mode != "subscribe":
        return subscription, HubReply(404, refused=f"intent {mode[:40]!r} is unknown")
    lease = asked.get("hub.lease_seconds", "")
    if not challenge or not (lease.isascii() and lease.isdigit() and 0 < len(lease) < 12 and int(lease)):
        return subscription, HubReply(404, refused="a challenge and a lease in seconds are needed")
    until = now + min(int(lease), MAX_LEASE_SECONDS)
    return subscription._replace(verified_at=now, lease_until=until, denied=""), HubReply(200, challenge)


def pushed(
    subscription: Subscription | None, body: bytes, signature: str, links: Iterable[str], now: float
) -> HubReply:
    """Whether what was pushed is the topic's, and the hub's own."""
    if subscription is None:
        return HubReply(404, refused="no subscription")
    if not subscription.live(now):
        return HubReply(410, refused="no subscription is verified")
    if not signed(body, signature, subscription.secret):
        return HubReply(403, refused="the signature is not the hub's" if signature else "there is no signature")
    topic = link_header(links)[1]
    if topic and topic != subscription.topic:
        return HubReply(403, refused=f"unknown topic {topic[:200]!r}")
    return HubReply(202)


def signed(body: bytes, signature: str, secret: str) -> bool:
    """Whether ``X-Hub-Signature`` is the body's under the secret; its time does not show where a wrong one differs."""
    method, _, given = signature.strip().partition("=")
    digest = _METHODS.get(method.strip().lower())
    if digest is None:
        return False
    right = hmac.new(secret.encode(), body, digest).hexdigest()
    return hmac.compare_digest(right.encode(), given.strip().lower().encode("utf-8", "replace"))
