"""Places for requests in flight: while they are short, each domain may have as many as are left.

So one domain has half of them at most, two have a third each, and any other has its turn. What counts is what is in
flight at the moment: a domain's share of the places is its share of their time. Hosts whose requests take long count as
one domain together, which may have three times as many as are left: three quarters.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

H = TypeVar("H")

SLOW = "…"
"""Stands for the domains of all hosts whose requests take long."""
# Hosts that take long have most places in any crawl (ours: as many slow ones as a broad crawl has in flight).
_SLOW_SHARE = 3

# Domains that are looked at when a place is free: those who wait come in turn (ours).
_LOOKED_AT = 8


class Places(Generic[H]):
    """``in_flight`` is how many are taken."""

    def __init__(self, places: int) -> None:
        """0: there is no end of them."""
        self._places = places
        self.short_from = places // 2 if places else float("inf")
        self._taken: dict[str, int] = {}
        self._aside: OrderedDict[str, deque[H]] = OrderedDict()

    def short(self, in_flight: int) -> bool:
        """Whether the domains must share them."""
        return in_flight >= self.short_from

    def room(self, domain: str, in_flight: int) -> bool:
        """Whether the domain may have one more while they are short."""
        left = self._places - in_flight
        return self._taken.get(domain, 0) < (_SLOW_SHARE * left if domain == SLOW else left)

    def wait(self, domain: str, host: H) -> None:
        """A host waits until ``leave`` returns it."""
        self._aside.setdefault(domain, deque()).append(host)

    def forget(self, domain: str, host: H) -> None:
        """A host waits no more."""
        hosts = self._aside[domain]
        hosts.remove(host)
        if not hosts:
            del self._aside[domain]

    def take(self, domain: str) -> None:
        """One more of the domain's is in flight."""
        self._taken[domain] = self._taken.get(domain, 0) + 1

    def leave(self, domain: str, in_flight: int) -> list[H]:
        """One of the domain's has ended, which leaves ``in_flight``; the hosts that may be asked now."""
        taken = self._taken
        if (left := taken[domain] - 1) > 0:
            taken[domain] = left
        else:
            del taken[domain]
        return self._come_back(in_flight) if self._aside else []

    def _come_back(self, in_flight: int) -> list[H]:
        if not self.short(in_flight):
            back = [host for hosts in self._aside.values() for host in hosts]
            self._aside.clear()
            return back
        for _ in range(min(_LOOKED_AT, len(self._aside))):
            domain, hosts = self._aside.popitem(last=False)
            host = hosts.popleft() if self.room(domain, in_flight) else None
            if hosts:
                self._aside[domain] = hosts
            if host is not None:
                return [host]
        return []
