"""Decides how many hosts of one registered domain are taken up: a farm of names costs its owner one DNS record."""

from __future__ import annotations

import struct

import orjson

from crawlerproject.rules.traps.strangers import may_take, share_of

DEFAULT_MAX_HOSTS = 1000
"""SCOPE_MAX_HOSTS_PER_DOMAIN. Few sites have as many names (Wikipedia some 700, its mobile ones included)."""

PAGES_A_HOST = 10
"""New texts of a domain's hosts that earn it one host more (ours): who has more names than the bound shows several
pages on each of them, so its names keep pace with its pages; a farm must be fetched ten pages for each."""

NAMED_FACTOR = 100
"""So many times the bound for domains that the operator named, with ``-a scope=domain``: the domain is wanted whole.
It is still bounded, since no operator wants what a wildcard record in it invents."""

_PACKED = struct.Struct("<QQQ")


class DomainHosts:
    """What one registered domain has had."""

    __slots__ = ("dead", "hosts", "named", "pages", "refused")

    def __init__(self, hosts: int = 0, pages: int = 0, refused: int = 0) -> None:
        self.hosts = hosts  # names ever taken up
        self.pages = pages  # that showed a new text
        self.refused = refused  # URLs on further hosts
        self.dead = 0  # of the names, those that do not resolve or take no connection, and never did
        self.named: dict[str, int] = {}  # of the names, those that another domain was the first to name, by domain

    @property
    def taken(self) -> int:
        """Places that are taken: those that strangers had for dead names are free again, for others than them."""
        return self.hosts - min(self.dead, sum(self.named.values()))

    def take_up(self, named_by: str = "") -> None:
        """One host more; ``named_by`` is the other domain that named it, if one did."""
        self.hosts += 1
        if named_by:
            share = share_of(self.named, named_by)
            self.named[share] = self.named.get(share, 0) + 1

    def most(self, max_hosts: int) -> int:
        """How many hosts it may have by now; ``max_hosts`` is what every domain may have."""
        return max_hosts + self.pages // PAGES_A_HOST

    def full(self, max_hosts: int, named_by: str = "") -> bool:
        """Whether no further host is taken up, of those that another domain names if there is ``named_by``."""
        if not named_by:
            return self.taken >= self.most(max_hosts)
        return not may_take(self.named, named_by, self.most(max_hosts // 2) - self.taken)

    def pack(self) -> bytes:
        """As bytes."""
        more = orjson.dumps([self.dead, self.named]) if self.dead or self.named else b""
        return _PACKED.pack(self.hosts, self.pages, self.refused) + more

    @classmethod
    def unpack(cls, packed: bytes) -> DomainHosts:
        """What ``pack`` packed, or a version that did not know who named them."""
        known = cls(*_PACKED.unpack_from(packed))
        if len(packed) > _PACKED.size:
            known.dead, known.named = orjson.loads(packed[_PACKED.size :])
        return known
