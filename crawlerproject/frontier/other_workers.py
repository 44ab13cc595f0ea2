"""What the workers of a crawl write to each other about hosts."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.reasons import Reason
from crawlerproject.rules.robots.policy import KEPT_BYTES
from crawlerproject.rules.url.urls import Address, UrlRefused, parse


class Links(NamedTuple):
    """URLs found elsewhere."""

    found: Sequence[DiscoveredUrl]


class RobotsWanted(NamedTuple):
    """A robots.txt was redirected to a host of yours: fetch it for its origin."""

    origin: str  # scheme://host that it will speak for
    target: str  # URL
    hops: str
    via: str


class RobotsGiven(NamedTuple):
    """The answer for an origin of yours, whose robots.txt was redirected to a host of ours.

    Of its body only what is read of a robots.txt is sent.
    """

    origin: str
    status: int | None
    body: bytes
    reason: str
    number: int = 0  # of the document (``passage.document_of``)


class Changed(NamedTuple):
    """Pages of yours that a list or a push of ours says have changed."""

    pages: Sequence[tuple[Address, float]]  # each with the moment, epoch seconds


class ScopeWidened(NamedTuple):
    """Redirects of seeds have widened the crawl's scope: for every worker."""

    hosts: Sequence[str]  # they belong to the crawl as well
    moves: Sequence[tuple[str, str]]  # URLs of seeds with rules of their own, and where they were redirected to


class HubNamed(NamedTuple):
    """A feed names a hub: for the worker that hubs reach."""

    hub: str  # URL
    topic: str  # the feed's URL, by its own word
    depth: int  # of the feed
    hops: str


class HubMoved(NamedTuple):
    """A hub redirects a request for a subscription: for the worker that hubs reach."""

    topic: str
    host: str  # host key of the hub that was asked
    target: str  # URL
    hops: str


class HubRequest(NamedTuple):
    """Ask a hub, a host of yours, for a subscription."""

    hub: str  # URL
    topic: str
    hops: str
    form: str  # the body of the request


HubMessage = HubNamed | HubMoved | HubRequest
Message = Links | RobotsWanted | RobotsGiven | Changed | ScopeWidened | HubMessage


_PLAIN: dict[str, type[RobotsWanted | HubMessage]] = {
    "robots-wanted": RobotsWanted,
    "hub-named": HubNamed,
    "hub-moved": HubMoved,
    "hub-request": HubRequest,
}
"""Kinds whose fields are JSON's."""
_PLAIN_KINDS: dict[type, str] = {made: kind for kind, made in _PLAIN.items()}


def pack_message(message: Message) -> bytes:
    """The message as bytes."""
    if isinstance(message, Links):
        rows = [(item.address.url, *item[1:]) for item in message.found]
        return orjson.dumps(["links", rows])
    if isinstance(message, RobotsWanted | HubNamed | HubMoved | HubRequest):
        return orjson.dumps([_PLAIN_KINDS[type(message)], *message])
    if isinstance(message, Changed):
        return orjson.dumps(["changed", [(address.url, at) for address, at in message.pages]])
    if isinstance(message, ScopeWidened):
        return orjson.dumps(["seeds-moved", *message])
    body = b64encode(message.body[:KEPT_BYTES]).decode()
    given = ["robots-given", message.origin, message.status, body, str(message.reason)]
    return orjson.dumps([*given, message.number] if message.number else given)


def unpack_message(packed: bytes) -> Message:
    """What ``pack_message`` packed; an address that this version refuses is left out."""
    kind, *fields = orjson.loads(packed)
    if kind == "links":
        return Links([item for row in fields[0] if (item := _found(row)) is not None])
    if kind in _PLAIN:
        return _PLAIN[kind](*fields)
    if kind == "changed":
        known = [(_address(url), at) for url, at in fields[0]]
        return Changed([(address, at) for address, at in known if address is not None])
    if kind == "seeds-moved":
        return ScopeWidened(fields[0], [(before, after) for before, after in fields[1]])
    origin, status, body, reason, *number = fields
    return RobotsGiven(origin, status, b64decode(body), Reason(reason), *number)


def _found(row: list[Any]) -> DiscoveredUrl | None:
    address = _address(row[0])
    return None if address is None else DiscoveredUrl(address, *row[1:])


def _address(url: Any) -> Address | None:
    try:
        return parse(str(url))
    except UrlRefused:
        return None
