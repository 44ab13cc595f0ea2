"""A URL on its way into the frontier."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from crawlerproject.rules.row_kinds import (
    FLAG_EXTERNAL,
    FLAG_SEED,
    ROW_KINDS,
    RowKind,
)
from crawlerproject.rules.traps.external_budgets import OTHERS
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.priority import HOP_PREREQUISITE, SEED, after_duplicate
from crawlerproject.rules.url.urls import Address, host_key
from crawlerproject.stores.protocols import QueuedPage

# Pages whose domain is at hand: those whose links are being queued.
_KEPT = 4096


class DiscoveredUrl(NamedTuple):
    """A link, redirect target or seed before the filters."""

    address: Address
    depth: int  # links from a seed
    hops: str  # Heritrix letters from the seed
    via: str  # the page it was found on
    priority: int
    flags: int = 0  # FLAG_* of rules/row_kinds.py
    note: str = ""  # as a queued page's

    @property
    def kind(self) -> RowKind:
        """How a row with these flags is treated."""
        return ROW_KINDS[self.flags]

    @property
    def queue_key(self) -> bytes:
        """The key under which it waits."""
        return ROW_KINDS[self.flags].swapped(self.address.key)

    @property
    def named_by(self) -> str:
        """The registered domain of the page that names it; "" where that is its host's as well, and of a seed."""
        address, via, kind = self.address, self.via, ROW_KINDS[self.flags]
        if kind.is_seed:
            return ""
        if kind.is_external:
            return linking_domain(address.host, via, self.flags, self.note)
        if not via or address.url[-1] != "/" or not address.is_front:  # as nearly all
            return ""
        return _domain_of(via) if of_other_domain(host_key(via), address.host) else ""

    def owned(self) -> DiscoveredUrl:
        """The same; a host's front page is the host's own, whichever page names it."""
        if not (self.kind.charges_front and self.address.is_front):
            return self
        return self._replace(flags=self.flags & ~FLAG_EXTERNAL, note="")

    def behind(self) -> DiscoveredUrl:
        """The same, found on a page that repeats another."""
        address, depth, hops, via, priority, flags, note = self
        return DiscoveredUrl(address, depth, hops, via, after_duplicate(priority), flags, note)


def seed_found(address: Address) -> DiscoveredUrl:
    """One of the operator's seeds."""
    return DiscoveredUrl(address, 0, "", "", SEED, FLAG_SEED)


def of_other_domain(host: str, other: str) -> bool:
    """Whether two host keys are of different registered domains, so that neither speaks for the other."""
    return host != other and bounded_domain(host) != bounded_domain(other)


def linking_domain(host: str, via: str, flags: int, note: str) -> str:
    """The registered domain that named a URL of ``host`` that is external; "" when it is not."""
    kind = ROW_KINDS[flags]
    if not kind.is_external:
        return ""
    if kind.is_list:
        return bounded_domain(note.rpartition("://")[2]) or OTHERS
    if note and kind.note_names_domain:  # that of a page to be rendered says where its plain answer is
        return note
    domain = _domain_of(via)
    return domain if domain and domain != bounded_domain(host) else OTHERS


def row_named_by(row: QueuedPage) -> str:
    """The registered domain that led to a queued page, where that is another than its host's; "" for a seed's too."""
    if row.kind.is_external:
        return linking_domain(row.host, row.via, row.flags, row.note)
    domain = "" if row.kind.is_seed or not row.via else _domain_of(row.via)
    return domain if domain != bounded_domain(row.host) else ""


def caused_externally(row: QueuedPage) -> bool:
    """Whether only other registered domains led to this request, so that the trouble it meets is theirs.

    A host's front page and its own robots.txt are its own, whichever page or redirect named them: there is one of each.
    """
    kind = ROW_KINDS[row.flags]
    if not kind.maybe_external:
        return False
    if kind.is_robots:
        return robots_for_other_domain(row.note, row.url, row.host)
    if kind.is_hub:
        return of_other_domain(host_key(row.via), row.host)  # the feed that names it
    return kind.is_requisite or not is_front(row.url, row.host)


def robots_for_other_domain(origin: str, url: str, host: str) -> bool:
    """Whether a robots.txt (of ``url``, on ``host``) is asked for on behalf of another domain's ``origin`` alone."""
    return url.partition("://")[2] != f"{host}/robots.txt" and of_other_domain(origin.partition("://")[2], host)


def document_of(hops: str) -> int:
    """Which of an origin's documents a row is about that ``leasing.robots_row`` made: 0 is robots.txt."""
    return max(hops.count(HOP_PREREQUISITE) - 1, 0)


def is_front(url: str, host: str) -> bool:
    """Whether a URL is the page at the top of its ``host``, without a query."""
    return url.partition("://")[2] == host + "/"


@lru_cache(maxsize=_KEPT)
def _domain_of(url: str) -> str:
    return bounded_domain(host_key(url))
