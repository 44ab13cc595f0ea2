"""The feeds whose hubs push to us: asked for in the hub's own turn, kept from run to run.

Any feed may name any URL as its hub, so a request to a hub is a POST that another site chose (a comment form, say). A
hub proves itself by asking back at the callback that only this request named (WebSub 5.3, verification of intent): each
host is asked once, and again only after it has proved to be a hub.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import orjson
from xxhash import xxh3_128_digest

from crawlerproject.frontier.known_seeds import HUBS_FACT
from crawlerproject.frontier.other_workers import HubMessage, HubMoved, HubNamed, HubRequest
from crawlerproject.frontier.passage import DiscoveredUrl, of_other_domain
from crawlerproject.reasons import Reason
from crawlerproject.rules.feeds.feeds import Feed, is_feed, read_feed
from crawlerproject.rules.feeds.websub import HubReply, Subscription, asking, hub_and_topic, pushed, verified
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_HUB, FLAG_LISTED, HOP_LINK, SEED
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.urls import Address, Base, host_key, host_name, parse
from crawlerproject.stores.protocols import Changes, FactReader, FrontierStore, PageRecord, QueuedPage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crawlerproject.frontier.frontier import Frontier

logger = logging.getLogger(__name__)

WEBSUB_FACT = "websub"
MAX_SUBSCRIPTIONS = 1000
"""At once (ours): their list is one value of the store, 300 bytes each."""
MAX_UNVERIFIED_PER_DOMAIN = 5
"""Requests that a hub has not confirmed yet, by the registered domain of the feeds (ours)."""
MAX_WAITING_PER_DOMAIN = 50
"""Feeds of one registered domain that are remembered until a hub may be asked for them (ours)."""
MAX_HUBS = 5000
"""Hosts that are remembered (ours): their list is one value of the store, some 100 bytes each. No others are asked."""
MAX_UNPROVEN_PER_DOMAIN = 3
"""Hosts that never proved to be a hub, by the domain whose feeds named them (ours): a site has one hub or two."""
MAX_DOMAINS = 3
"""Sites that may each have an unproven host asked once (ours): the first may have named a wrong path of a real hub."""
NEXT_DOMAIN_SECONDS = 86_400.0
"""Between two of these (ours)."""
_NEVER_SENT = frozenset({Reason.ROBOTS, Reason.NEVERCRAWL, Reason.PRIVATE_ADDRESS})
_HOST_KEY_BYTES = 8
# Heritrix keeps as many letters of a discovery path.
_MAX_HOPS = 50


@dataclass(slots=True)
class Hub:
    """One host that was asked. Epoch seconds; 0 for never."""

    asked_at: float = 0.0
    proven_at: float = 0.0
    domains: list[str] = field(default_factory=list)  # registered domains of the feeds that had it asked
    key: str = ""  # hexadecimal: of the last request's row, whose record says whether it was sent


class Hubs:
    """Which hosts may be asked. Known by name, whatever scheme and port: all ports of a server are one hub."""

    def __init__(self, store: FrontierStore, proven: Iterable[tuple[str, float]]) -> None:
        """``proven``: names and moments of verified subscriptions of an earlier version."""
        self._store = store
        self._hubs = read_hubs(store)
        for name, verified_at in proven:
            self._hubs.setdefault(name, Hub(verified_at, verified_at))

    def may_ask(self, name: str, domain: str, now: float) -> bool:
        """Whether a feed of the registered ``domain`` may have the host asked now."""
        hub = self._hubs.get(name)
        if hub is not None and hub.proven_at:
            return True
        # Whether the last request was refused before it was sent: by robots.txt or the NeverCrawl file.
        record = self._store.page(bytes.fromhex(hub.key)) if hub is not None and hub.key else None
        if hub is not None and not (record is not None and record.reason in _NEVER_SENT):
            waited = now - hub.asked_at >= NEXT_DOMAIN_SECONDS
            if domain in hub.domains or len(hub.domains) >= MAX_DOMAINS or not waited:
                return False
        unproven = sum(domain in known.domains and not known.proven_at for known in self._hubs.values())
        return unproven < MAX_UNPROVEN_PER_DOMAIN and (hub is not None or len(self._hubs) < MAX_HUBS)

    def asked(self, name: str, domain: str, key: bytes, now: float) -> None:
        """It is asked: kept before the request is queued, so that a crash cannot forget it."""
        hub = self._hubs.setdefault(name, Hub())
        if not hub.proven_at:
            hub.asked_at, hub.key = now, key.hex()
            hub.domains = [*hub.domains, domain] if domain not in hub.domains else hub.domains
            self._keep()

    def proved(self, name: str, now: float) -> None:
        """It has verified a subscription."""
        hub = self._hubs.setdefault(name, Hub(now))
        if not hub.proven_at:
            hub.proven_at, hub.domains, hub.key = now, [], ""
            self._keep()

    def _keep(self) -> None:
        kept = {name: asdict(hub) for name, hub in self._hubs.items()}
        self._store.apply(Changes(facts=[(HUBS_FACT, orjson.dumps(kept))]))


def read_hubs(store: FactReader) -> dict[str, Hub]:
    """All that the store knows, by host name."""
    return {name: Hub(**kept) for name, kept in orjson.loads(store.fact(HUBS_FACT) or b"{}").items()}


class Push(NamedTuple):
    """A hub's POST to one of our callbacks (WebSub 7)."""

    body: bytes
    content_type: str
    signature: str  # X-Hub-Signature, as received
    links: Iterable[str]  # Link headers


def queue_request(frontier: Frontier, request: HubRequest, now: float) -> None:
    """Queue a request at the hub's host, which is ours. StorageError."""
    address = request_address(parse(request.hub), request.topic)
    note = f"{request.topic} {request.form}"
    found = DiscoveredUrl(address, 0, request.hops, request.topic, SEED, FLAG_HUB, note)
    frontier.admission.again([(found, PageRecord(address.url, Reason.SUBSCRIBED, 0, now))], now)


def request_address(hub: Address, topic: str) -> Address:
    """Not under the key of the hub's own page, and one for each topic."""
    mark = xxh3_128_digest(f"{hub.url}\0{topic}".encode())
    return hub._replace(key=hub.key[:_HOST_KEY_BYTES] + mark)


class RemoteSubscriptions:
    """In a fleet, what a worker that hubs do not reach has to do with them: the one that they reach decides."""

    def __init__(self, frontier: Frontier, write: Callable[[HubMessage], None]) -> None:
        """``write`` to the worker that hubs reach."""
        self._frontier = frontier
        self._write = write

    def feed_read(self, row: QueuedPage, links: Iterable[str], feed: Feed, now: float) -> bool:
        """A feed was read: whether its hub is asked for a subscription now. ``links``: its Link headers."""
        found = hub_and_topic(row.url, links, feed.hubs, feed.self_url)
        return found is not None and self._decide(HubNamed(*found, row.depth, row.hops), now)

    def moved(self, row: QueuedPage, target: Address, hops: str, now: float) -> None:
        """The hub sends us to another one: the same is asked there, unless it was asked before and is no hub.

        The next renewal begins at the hub of the feed.
        """
        self._decide(HubMoved(_topic(row), row.host, target.url, hops), now)

    def form(self, row: QueuedPage) -> bytes:
        """The body of the request to a hub."""
        return row.note.partition(" ")[2].encode()

    def heard(self, message: HubMessage, now: float) -> None:
        """What another worker wrote to this one."""
        if isinstance(message, HubRequest):
            queue_request(self._frontier, message, now)

    def _decide(self, message: HubNamed | HubMoved, now: float) -> bool:
        """Whether a hub is asked now: the worker that hubs reach decides."""
        self._write(message)
        return False


class Subscriptions(RemoteSubscriptions):
    """What is asked of hubs, what they answered, and what they pushed. ``now`` is epoch seconds."""

    def __init__(self, store: FrontierStore, frontier: Frontier, public_url: str) -> None:
        self._store = store
        self._frontier = frontier
        self._public_url = public_url.rstrip("/") + "/"
        kept = orjson.loads(store.fact(WEBSUB_FACT) or b"[]")
        self._by_topic = {one.topic: one for one in (Subscription(*row) for row in kept)}
        self._by_token = {one.token: one.topic for one in self._by_topic.values()}
        verified_at = [(_name(one.hub), one.verified_at) for one in self._by_topic.values() if one.verified_at]
        self._hubs = Hubs(store, verified_at)

    def form(self, row: QueuedPage) -> bytes:
        """The body of the request to a hub."""
        return super().form(row) or self._form(_topic(row))  # a version before fleets did not write it into the row

    def heard(self, message: HubMessage, now: float) -> None:
        """What another worker wrote to this one."""
        if isinstance(message, HubRequest):
            queue_request(self._frontier, message, now)
        else:
            self._decide(message, now)

    def _decide(self, message: HubNamed | HubMoved, now: float) -> bool:
        return self._named(message, now) if isinstance(message, HubNamed) else self._moved(message, now)

    def _named(self, feed: HubNamed, now: float) -> bool:
        hub, topic = feed.hub, feed.topic
        old = self._by_topic.get(topic)
        if old is not None and old.hub == hub and now < old.due_at():
            return False
        if old is None and not self._has_room(topic):
            self._refuse(hub, topic)
            return False
        token = old.token if old else secrets.token_urlsafe(24)
        # A renewal keeps its secret: pushes that are on their way stay good.
        secret = old.secret if old else secrets.token_hex(32)
        kept = (old.verified_at, old.lease_until) if old and old.hub == hub else (0.0, 0.0)
        wanted = Subscription(topic, hub, token, secret, 0.0, *kept, "", feed.depth, feed.hops)
        if self._may_ask(wanted, now):
            self._ask(wanted._replace(asked_at=now), now)
            return True
        if old is None or old.hub != hub:
            self._refuse(hub, topic)
            self._keep(wanted)  # until its hub has proved to be one
        return False

    def renew(self, now: float) -> int:
        """Ask for those again whose lease is nearly over, and for those whose hub may be asked by now; how many."""
        asked = 0
        for one in list(self._by_topic.values()):
            due = now >= one.due_at() if one.lease_until else not one.asked_at and self._may_ask(one, now)
            if due:
                self._ask(one._replace(asked_at=now), now)
                asked += 1
        return asked

    def _moved(self, hub: HubMoved, now: float) -> bool:
        target = parse(hub.target)
        name = host_name(target.host)
        if hub.topic not in self._by_topic:
            return False  # another worker's word of a subscription that this one does not have
        if name == host_name(hub.host) or self._hubs.may_ask(name, _domain(hub.topic), now):
            self._queue(target, hub.topic, hub.hops, now)
            return True
        self._refuse(hub.target, hub.topic)
        return False

    def _form(self, topic: str) -> bytes:
        subscription = self._by_topic[topic]
        return asking(subscription, self._public_url + subscription.token)

    def verify(self, token: str, asked: Mapping[str, str], now: float) -> HubReply:
        """Answer a hub's question."""
        old = self._by_topic.get(self._by_token.get(token, ""))
        new, answer = verified(old, asked, now)
        if new is not None and new != old:
            self._keep(new)
            if new.denied:
                logger.warning("The hub %s denies %s: %s", new.hub, new.topic, new.denied)
            else:
                self._hubs.proved(_name(new.hub), now)
                self.renew(now)  # other feeds that name this hub wait for it
        return answer

    def push(
        self, token: str, sent: Push, now: float
    ) -> tuple[HubReply, list[DiscoveredUrl], list[tuple[Address, float]]]:
        """What a hub pushed: its entries, to come before all else in their hosts' queues, and when they changed."""
        subscription = self._by_topic.get(self._by_token.get(token, ""))
        answer = pushed(subscription, sent.body, sent.signature, sent.links, now)
        if subscription is None or answer.refused:
            return answer, [], []
        if not is_feed(sent.content_type, sent.body):
            return HubReply(415, refused=f"no feed ({sent.content_type[:80] or 'no type'})"), [], []
        feed, base = read_feed(sent.body, sent.content_type, subscription.topic), Base(subscription.topic)
        hops = (subscription.hops + HOP_LINK)[-_MAX_HOPS:]
        found: list[DiscoveredUrl] = []
        changed: list[tuple[Address, float]] = []
        for entry in feed.entries:
            if (address := base.join(entry.url)) is not None:
                flags = FLAG_EXTERNAL if of_other_domain(address.host, host_key(subscription.topic)) else FLAG_LISTED
                found.append(DiscoveredUrl(address, subscription.depth + 1, hops, subscription.topic, SEED, flags))
                if flags == FLAG_LISTED:  # of others' pages it knows nothing
                    changed.append((address, entry.modified or now))
        return answer, found, changed

    def expects(self, token: str) -> bool:
        """Whether a callback with this token is one of ours."""
        return token in self._by_token

    def _has_room(self, topic: str) -> bool:
        """Whether one more feed is remembered; of each domain only so many wait for their hub."""
        domain = _domain(topic)
        waiting = sum(not one.asked_at and _domain(one.topic) == domain for one in self._by_topic.values())
        return len(self._by_topic) < MAX_SUBSCRIPTIONS and waiting < MAX_WAITING_PER_DOMAIN

    def _may_ask(self, wanted: Subscription, now: float) -> bool:
        """Whether the hub may be asked on behalf of the topic's domain."""
        domain = _domain(wanted.topic)
        open_requests = sum(
            bool(one.asked_at) and not one.verified_at and one.topic != wanted.topic and _domain(one.topic) == domain
            for one in self._by_topic.values()
        )
        return open_requests < MAX_UNVERIFIED_PER_DOMAIN and self._hubs.may_ask(_name(wanted.hub), domain, now)

    def _refuse(self, hub: str, topic: str) -> None:
        self._frontier.state.refused.counts[Reason.HUB_UNPROVEN] += 1
        logger.info(
            "The hub %s is not asked to push %s: it has been asked before and has not verified a subscription",
            hub, topic,
        )  # fmt: skip

    def _ask(self, subscription: Subscription, now: float) -> None:
        """Queue the request at the hub's host; what is asked is kept first."""
        self._keep(subscription)
        self._queue(parse(subscription.hub), subscription.topic, "", now)

    def _queue(self, address: Address, topic: str, hops: str, now: float) -> None:
        self._hubs.asked(host_name(address.host), _domain(topic), request_address(address, topic).key, now)
        request = HubRequest(address.url, topic, hops, self._form(topic).decode())
        ownership = self._frontier.state.ownership
        if ownership.mine(address.host):
            queue_request(self._frontier, request, now)
        else:
            ownership.send(address.host, request)

    def _keep(self, subscription: Subscription) -> None:
        self._by_topic[subscription.topic] = subscription
        self._by_token[subscription.token] = subscription.topic
        rows = orjson.dumps([list(one) for one in self._by_topic.values()])
        self._store.apply(Changes(facts=[(WEBSUB_FACT, rows)]))


def _topic(row: QueuedPage) -> str:
    """The feed that a request to a hub is about."""
    return row.note.partition(" ")[0]


def _name(url: str) -> str:
    """Host name of a hub's URL."""
    return host_name(parse(url).host)


@lru_cache(maxsize=2 * MAX_SUBSCRIPTIONS)
def _domain(topic: str) -> str:
    """The registered domain that a topic's requests are charged to."""
    return registered_domain(parse(topic).host)
