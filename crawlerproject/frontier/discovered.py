"""A URL on its way into the frontier."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from crawlerproject.rules.traps.requisite_budgets import requisite_key
from crawlerproject.rules.traps.strangers import OTHERS, stranger_key
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.priority import SEED, after_duplicate
from crawlerproject.rules.url.urls import Address, host_key
from crawlerproject.stores.protocols import (
    APART,
    FLAG_HUB,
    FLAG_RENDER,
    FLAG_REQUISITE,
    FLAG_ROBOTS,
    FLAG_SEED,
    FLAG_SITEMAP,
    FLAG_STRANGER,
    QueuedPage,
)

_MAYBE_STRANGERS = FLAG_STRANGER | FLAG_ROBOTS | FLAG_HUB
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

    @property
    def named_by(self) -> str:
        """The registered domain of the page that names it; "" where that is its host's as well, and of a seed."""
        address, via, flags = self.address, self.via, self.flags
        if flags & (FLAG_SEED | FLAG_STRANGER):
            return "" if flags & FLAG_SEED else inventor(address.host, via, flags, self.note)
        return _domain_of(via) if via and address.is_front and strangers(host_key(via), address.host) else ""

    def owned(self) -> DiscoveredUrl:
        """The same; a host's front page is the host's own, whichever page names it."""
        if self.flags & (FLAG_STRANGER | FLAG_REQUISITE | FLAG_SITEMAP) != FLAG_STRANGER or not self.address.is_front:
            return self
        return self._replace(flags=self.flags & ~FLAG_STRANGER, note="")

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


def row_named_by(row: QueuedPage) -> str:
    """The registered domain that led to a queued page, where that is another than its host's; "" for a seed's too."""
    if row.flags & FLAG_STRANGER:
        return inventor(row.host, row.via, row.flags, row.note)
    domain = "" if row.flags & FLAG_SEED or not row.via else _domain_of(row.via)
    return domain if domain != bounded_domain(row.host) else ""


def caused_by_stranger(row: QueuedPage) -> bool:
    """Whether only other registered domains led to this request, so that the trouble it meets is theirs.

    A host's front page and its own robots.txt are its own, whichever page or redirect named them: there is one of each.
    """
    flags = row.flags
    if not flags & _MAYBE_STRANGERS:
        return False
    if flags & FLAG_ROBOTS:
        return robots_for_stranger(row.note, row.url, row.host)
    if flags & FLAG_HUB:
        return strangers(host_key(row.via), row.host)  # the feed that names it
    return flags & FLAG_REQUISITE > 0 or not is_front(row.url, row.host)


def robots_for_stranger(origin: str, url: str, host: str) -> bool:
    """Whether a robots.txt (of ``url``, on ``host``) is asked for on behalf of another domain's ``origin`` alone."""
    return url.partition("://")[2] != f"{host}/robots.txt" and strangers(origin.partition("://")[2], host)


def is_front(url: str, host: str) -> bool:
    """Whether a URL is the page at the top of its ``host``, without a query."""
    return url.partition("://")[2] == host + "/"


@lru_cache(maxsize=_KEPT)
def _domain_of(url: str) -> str:
    return bounded_domain(host_key(url))
