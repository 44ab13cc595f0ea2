"""Decides how many hosts that are not known to exist one domain may name, and when each of them is looked up.

A name costs nothing to invent. What it costs us (a question to DNS servers, a row, a record) is charged to the
registered domain whose pages named it first.
"""

from __future__ import annotations

import struct

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

_PACKED = struct.Struct("<QQQ")


class NamedHosts:
    """What one domain has named. ``now`` is epoch seconds."""

    __slots__ = ("_apart_seconds", "_at", "_before", "refused", "resolved", "unresolved")

    def __init__(self, unresolved: int = 0, resolved: int = 0, refused: int = 0) -> None:
        self.unresolved = unresolved  # hosts that have no address, or were not looked up yet
        self.resolved = resolved
        self.refused = refused  # URLs on further hosts
        self._apart_seconds = _DEAD_APART_SECONDS
        self._before = 0.0  # how many stood before the next one ...
        self._at = 0.0  # ... at this moment

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
        """As bytes; the pace is found anew."""
        return _PACKED.pack(self.unresolved, self.resolved, self.refused)

    @classmethod
    def unpack(cls, packed: bytes) -> NamedHosts:
        """What ``pack`` packed."""
        return cls(*_PACKED.unpack(packed))
