"""A URL on its way into the frontier."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from crawlerproject.rules.traps.requisite_budgets import requisite_key
from crawlerproject.rules.traps.strangers import OTHERS, stranger_key
from crawlerproject.rules.url.hosts import host_key
from crawlerproject.rules.url.priority import SEED, after_duplicate
from crawlerproject.rules.url.scope import bounded_domain
from crawlerproject.rules.url.urls import Address
from crawlerproject.stores.protocols import (
    APART,
    FLAG_RENDER,
    FLAG_REQUISITE,
    FLAG_SEED,
    FLAG_SITEMAP,
    FLAG_STRANGER,
)

# Pages whose domain is at hand: those whose links are being queued.
_KEPT = 4096


class DiscoveredUrl(NamedTuple):
    """A link, redirect target or seed before the gates."""

    address: Address
    depth: int  # links from a seed
    hops: str  # Heritrix letters from the seed
    via: str  # the page it was found on
    priority: int
    flags: int = 0  # FLAG_* of stores/protocols.py
    note: str = ""  # as a queued page's

    @property
    def queue_key(self) -> bytes:
        """The key under which it waits."""
        key = self.address.key
        if not self.flags & APART:
            return key
        return requisite_key(key) if self.flags & FLAG_REQUISITE else stranger_key(key)

    def behind(self) -> DiscoveredUrl:
        """The same, found on a page that repeats another."""
        address, depth, hops, via, priority, flags, note = self
        return DiscoveredUrl(address, depth, hops, via, after_duplicate(priority), flags, note)


def seed_found(address: Address) -> DiscoveredUrl:
    """One of the operator's seeds."""
    return DiscoveredUrl(address, 0, "", "", SEED, FLAG_SEED)


def strangers(host: str, other: str) -> bool:
    """Whether two host keys are of different registered domains, so that neither speaks for the other."""
    return host != other and bounded_domain(host) != bounded_domain(other)


def inventor(host: str, via: str, flags: int, note: str) -> str:
    """The registered domain that named a URL of ``host`` that is a stranger's; "" when it is not."""
    if not flags & FLAG_STRANGER:
        return ""
    if flags & FLAG_SITEMAP:
        return bounded_domain(note.rpartition("://")[2]) or OTHERS
    if note and not flags & FLAG_RENDER:  # the note of a page to be rendered says where its plain answer is
        return note
    domain = _domain_of(via)
    return domain if domain and domain != bounded_domain(host) else OTHERS


@lru_cache(maxsize=_KEPT)
def _domain_of(url: str) -> str:
    return bounded_domain(host_key(url))
