"""The feeds whose hubs push to us: asked for in the hub's own turn, kept from run to run."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

import orjson
from xxhash import xxh3_128_digest

from crawlerproject.frontier.found import Found, strangers
from crawlerproject.reasons import Reason
from crawlerproject.rules.feeds import Feed, is_feed, read_feed
from crawlerproject.rules.hosts import host_key
from crawlerproject.rules.links import HOP_LINK
from crawlerproject.rules.priority import SEED
from crawlerproject.rules.urls import Address, Base, parse
from crawlerproject.rules.websub import Answer, Subscription, asking, hub_and_topic, pushed, verified
from crawlerproject.stores.protocols import FLAG_HUB, FLAG_LISTED, FLAG_STRANGER, Changes, PageRecord, QueuedPage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.stores.protocols import FrontierStore

logger = logging.getLogger(__name__)

_FACT = "websub"
MAX_SUBSCRIPTIONS = 1000
"""At once (ours): their list is one value of the store, 300 bytes each."""
_HOST_KEY_BYTES = 8
# Heritrix keeps as many letters of a discovery path.
_MAX_HOPS = 50


class Subscriptions:
    """What is asked of hubs, what they answered, and what they pushed. ``now`` is epoch seconds."""

    def __init__(self, store: FrontierStore, frontier: Frontier, public_url: str) -> None:
        self._store = store
        self._frontier = frontier
        self._public_url = public_url.rstrip("/") + "/"
        kept = orjson.loads(store.fact(_FACT) or b"[]")
        self._by_topic = {one.topic: one for one in (Subscription(*row) for row in kept)}
        self._by_token = {one.token: one.topic for one in self._by_topic.values()}

    def met(self, row: QueuedPage, links: Iterable[str], feed: Feed, now: float) -> bool:
        """A feed was read: whether its hub is asked for a subscription now. ``links``: its Link headers."""
        found = hub_and_topic(row.url, links, feed.hubs, feed.self_url)
        if found is None:
            return False
        hub, topic = found
        old = self._by_topic.get(topic)
        if old is None and len(self._by_topic) >= MAX_SUBSCRIPTIONS:
            return False
        if old is not None and old.hub == hub and now < old.due_at():
            return False
        token = old.token if old else secrets.token_urlsafe(24)
        # A renewal keeps its secret: pushes that are on their way stay good.
        secret = old.secret if old else secrets.token_hex(32)
        kept = (old.verified_at, old.lease_until) if old and old.hub == hub else (0.0, 0.0)
        self._ask(Subscription(topic, hub, token, secret, now, *kept, "", row.depth, row.hops), now)
        return True

    def renew(self, now: float) -> int:
        """Ask for those again whose lease is nearly over; how many."""
        due = [one for one in self._by_topic.values() if one.lease_until and now >= one.due_at()]
        for one in due:
            self._ask(one._replace(asked_at=now), now)
        return len(due)

    def moved(self, row: QueuedPage, target: Address, hops: str, now: float) -> None:
        """The hub sends us to another one: the same is asked there. The next renewal begins at the hub of the feed."""
        self._queue(target, row.note, hops, now)

    def form(self, row: QueuedPage) -> bytes:
        """The body of the request to a hub."""
        subscription = self._by_topic[row.note]
        return asking(subscription, self._public_url + subscription.token)

    def verify(self, token: str, asked: Mapping[str, str], now: float) -> Answer:
        """Answer a hub's question."""
        old = self._by_topic.get(self._by_token.get(token, ""))
        new, answer = verified(old, asked, now)
        if new is not None and new != old:
            self._keep(new)
            if new.denied:
                logger.warning("The hub %s denies %s: %s", new.hub, new.topic, new.denied)
        return answer

    def push(
        self, token: str, body: bytes, content_type: str, signature: str, links: Iterable[str], now: float
    ) -> tuple[Answer, list[Found], list[tuple[Address, float]]]:
        """What a hub pushed: its entries, to come before all else in their hosts' queues, and when they changed."""
        subscription = self._by_topic.get(self._by_token.get(token, ""))
        answer = pushed(subscription, body, signature, links, now)
        if subscription is None or answer.refused:
            return answer, [], []
        if not is_feed(content_type, body):
            return Answer(415, refused=f"no feed ({content_type[:80] or 'no type'})"), [], []
        feed, base = read_feed(body), Base(subscription.topic)
        hops = (subscription.hops + HOP_LINK)[-_MAX_HOPS:]
        found: list[Found] = []
        changed: list[tuple[Address, float]] = []
        for entry in feed.entries:
            if (address := base.join(entry.url)) is not None:
                flags = FLAG_STRANGER if strangers(address.host, host_key(subscription.topic)) else FLAG_LISTED
                found.append(Found(address, subscription.depth + 1, hops, subscription.topic, SEED, flags))
                changed.append((address, entry.modified or now))
        return answer, found, changed

    def _ask(self, subscription: Subscription, now: float) -> None:
        """Queue the request at the hub's host; what is asked is kept first."""
        self._keep(subscription)
        self._queue(parse(subscription.hub), subscription.topic, "", now)

    def _queue(self, address: Address, topic: str, hops: str, now: float) -> None:
        # Not the key of the hub's own page, and one for each topic.
        mark = xxh3_128_digest(f"{address.url}\0{topic}".encode())
        address = address._replace(key=address.key[:_HOST_KEY_BYTES] + mark)
        found = Found(address, 0, hops, topic, SEED, FLAG_HUB, topic)
        self._frontier.again([(found, PageRecord(address.url, Reason.SUBSCRIBED, 0, now))], now)

    def _keep(self, subscription: Subscription) -> None:
        self._by_topic[subscription.topic] = subscription
        self._by_token[subscription.token] = subscription.topic
        rows = orjson.dumps([list(one) for one in self._by_topic.values()])
        self._store.apply(Changes(facts=[(_FACT, rows)]))
