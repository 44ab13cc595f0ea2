"""A URL on its way into the frontier."""

from __future__ import annotations

from typing import NamedTuple

from crawlerproject.rules.priority import SEED, after_duplicate
from crawlerproject.rules.urls import Address
from crawlerproject.stores.protocols import FLAG_SEED


class Found(NamedTuple):
    """A link, redirect target or seed that has met no gate yet."""

    address: Address
    depth: int  # links from a seed
    hops: str  # Heritrix letters from the seed
    via: str  # the page it was found on
    priority: int
    flags: int = 0  # FLAG_* of stores/protocols.py
    note: str = ""  # of a sitemap: the origin whose robots.txt names it

    def behind(self) -> Found:
        """The same, found on a page that repeats another."""
        address, depth, hops, via, priority, flags, note = self
        return Found(address, depth, hops, via, after_duplicate(priority), flags, note)


def seed_found(address: Address) -> Found:
    """One of the operator's seeds."""
    return Found(address, 0, "", "", SEED, FLAG_SEED)
