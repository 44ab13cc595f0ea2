"""Decides how many hosts a domain may make us take up: those of its own names, and those that its pages name.

A farm of names costs its owner one DNS record. A name that does not exist costs nothing to invent; what it costs us (a
question to DNS servers, a row, a record) is charged to the registered domain whose pages named it first.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import orjson

from crawlerproject.rules.traps.external_budgets import may_take, share_of

DEFAULT_MAX_HOSTS = 1000
"""SCOPE_MAX_HOSTS_PER_DOMAIN. Few sites have as many names (Wikipedia some 700, its mobile ones included)."""

PAGES_A_HOST = 10
"""New texts of a domain's hosts that earn it one host more (ours): who has more names than the bound shows several
pages on each of them, so its names keep pace with its pages; a farm must be fetched ten pages for each."""

NAMED_FACTOR = 100
"""So many times the bound for domains that the operator named, with ``-a scope=domain``: the domain is wanted whole.
It is still bounded, since no operator wants what a wildcard record in it invents."""

_PACKED = struct.Struct("<QQQ")
"""Of both kinds of counts."""
FIRST_NAMES = 10_000
"""Hosts without an address that a domain may have named (ours: as many as very long lists of links name)."""
EARNED_NAMES = 10
"""Further ones for each that has an address (ours): a site of whose links nine in ten are dead is never refused."""

_AT_ONCE = 100
"""So many are looked up without delay: more than nearly every page names (ours)."""
# Between two of those that follow, by what became of the last ones: 8 dead names a second cost 1 % of a processor, 200
# live ones are more than hosts a process begins to fetch from (ours).
_DEAD_APART_SECONDS, _LIVE_APART_SECONDS = 0.125, 0.005
_LAST_ONES = 10  # by which the pace is set


@dataclass(slots=True, eq=False)
class DomainHosts:
    """What one registered domain has had."""

    hosts: int = 0  # names ever taken up
    pages: int = 0  # that showed a new text
    refused: int = 0  # URLs on further hosts
    dead: int = 0  # of the names, those that do not resolve or take no connection, and never did
    named: dict[str, int] = field(default_factory=dict)  # of the names, by the other domain that named them first

    @property
    def taken(self) -> int:
        """Places that are taken: those that other sites had for dead names are free again, for others than them."""
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
        """For the store."""
        more = orjson.dumps([self.dead, self.named]) if self.dead or self.named else b""
        return _PACKED.pack(self.hosts, self.pages, self.refused) + more

    @classmethod
    def unpack(cls, packed: bytes) -> DomainHosts:
        """What ``pack`` packed, or a version that did not know who named them."""
        known = cls(*_PACKED.unpack_from(packed))
        if len(packed) > _PACKED.size:
            known.dead, known.named = orjson.loads(packed[_PACKED.size :])
        return known


@dataclass(slots=True, eq=False)
class NamedHosts:
    """What one domain has named. ``now`` is epoch seconds."""

    unresolved: int = 0  # hosts that have no address, or were not looked up yet
    resolved: int = 0
    refused: int = 0  # URLs on further hosts
    _apart_seconds: float = _DEAD_APART_SECONDS
    _before: float = 0.0  # how many stood before the next one ...
    _at: float = 0.0  # ... at this moment

    @property
    def most(self) -> int:
        """How many hosts without an address it may have named by now."""
        return FIRST_NAMES + EARNED_NAMES * self.resolved

    @property
    def full(self) -> bool:
        """Whether it may name no host more."""
        return self.unresolved >= self.most

    def name(self, now: float) -> float:
        """It names one more host, which is to be looked up at the moment that is returned."""
        self.unresolved += 1
        return self.turn(now)

    def turn(self, now: float) -> float:
        """The moment of its next look-up that is not taken yet."""
        before = self._stand_before(now)
        self._before, self._at = before + 1.0, now
        return now + max(0.0, before - _AT_ONCE) * self._apart_seconds

    def ready(self, now: float) -> bool:
        """Whether ``turn`` would be now."""
        return self._stand_before(now) <= _AT_ONCE

    def _stand_before(self, now: float) -> float:
        return max(0.0, self._before - max(0.0, now - self._at) / self._apart_seconds)

    def looked_up(self, *, found: bool) -> None:
        """One of them has an address, or has none."""
        if found:
            self.resolved += 1
            self.unresolved = max(0, self.unresolved - 1)
        apart_seconds = _LIVE_APART_SECONDS if found else _DEAD_APART_SECONDS
        self._apart_seconds += (apart_seconds - self._apart_seconds) / _LAST_ONES

    def pack(self) -> bytes:
        """For the store; the pace is found again at the next start."""
        return _PACKED.pack(self.unresolved, self.resolved, self.refused)

    @classmethod
    def unpack(cls, packed: bytes) -> NamedHosts:
        """What ``pack`` packed."""
        return cls(*_PACKED.unpack(packed))
