"""Decides how many hosts of one registered domain are taken up: a farm of names costs its owner one DNS record."""

from __future__ import annotations

import struct

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

    __slots__ = ("hosts", "pages", "refused")

    def __init__(self, hosts: int = 0, pages: int = 0, refused: int = 0) -> None:
        self.hosts = hosts  # names ever taken up
        self.pages = pages  # that showed a new text
        self.refused = refused  # URLs on further hosts

    def most(self, max_hosts: int) -> int:
        """How many hosts it may have by now; ``max_hosts`` is what every domain may have."""
        return max_hosts + self.pages // PAGES_A_HOST

    def full(self, max_hosts: int) -> bool:
        """Whether no further host is taken up."""
        return self.hosts >= self.most(max_hosts)

    def pack(self) -> bytes:
        """As bytes."""
        return _PACKED.pack(self.hosts, self.pages, self.refused)

    @classmethod
    def unpack(cls, packed: bytes) -> DomainHosts:
        """What ``pack`` packed."""
        return cls(*_PACKED.unpack(packed))
