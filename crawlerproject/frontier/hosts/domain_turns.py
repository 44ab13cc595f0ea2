"""Registered domains share the resolver: hosts of one domain take turns.

While some of them are being looked up or stand in line at an address, no further one is looked up. So names that cost
nothing to invent (a wildcard in the DNS) cost look-ups at the pace at which their address serves, and no host of
another domain is ever behind them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

from crawlerproject.frontier.hosts.host import Host

# Hosts of one domain that are being looked up or stand in line while others of it wait. Ours: at 50 ms an answer these
# are 160 look-ups a second, and the line of an address never runs empty.
STANDING = 8
# Hosts that wait in memory for one thing (a domain's look-ups, an address), in order; more than these come back later,
# or as soon as the domain has no other to look up.
LINE = 100
# None of them comes back sooner than this.
BACK_AFTER_SECONDS = 1.0
# How far apart the hosts of a domain come back that found no place: as the first, while it is their first time; further
# apart whenever one finds none again, down to twice a second; closer when one finds the line half empty.
_FIRST_SECONDS, _CLOSEST_SECONDS, _FURTHEST_SECONDS = 0.01, 0.001, 0.5
_GROWS, _SHRINKS = 1.1, 0.5


class _Domain:
    __slots__ = ("back_at", "back_seconds", "behind", "later", "standing")

    def __init__(self) -> None:
        self.standing = 0  # looked up, or in an address's line
        self.behind: deque[Host] = deque()
        # Those that come back, in the order in which they do: when each found no place, and when it comes.
        self.later: OrderedDict[Host, tuple[float, float]] = OrderedDict()
        self.back_at = 0.0  # when the last of those comes back that found no place
        self.back_seconds = _FIRST_SECONDS


class DomainTurns:
    """Only of domains that have a host at the resolver or in line. Moments are epoch seconds."""

    def __init__(self, domain_of: Callable[[str], str]) -> None:
        """``domain_of`` gives the registered domain of a host key."""
        self._domain_of = domain_of
        self._domains: dict[str, _Domain] = {}

    def stands(self, host: Host) -> None:
        """Count a host that stands in line at a known address."""
        self._of(host).standing += 1

    def admits(self, host: Host) -> bool:
        """Whether the host may be looked up now; if so it is counted."""
        domain = self._of(host)
        domain.later.pop(host, None)
        if domain.standing >= STANDING:
            return False
        domain.standing += 1
        return True

    def waits(self, host: Host, now: float, *, again: bool) -> float:
        """When a host that was not admitted is tried again, or before, when ``leaves`` returns it; 0.0: only then.

        ``again``: it is not its first time. A host that had an address before goes before those that never had one.
        """
        domain = self._of(host)
        if host.address and len(domain.behind) < 2 * LINE:
            domain.behind.appendleft(host)
            return 0.0
        if len(domain.behind) < LINE:
            if again and len(domain.behind) < LINE // 2:
                domain.back_seconds = max(domain.back_seconds * _SHRINKS, _CLOSEST_SECONDS)
            domain.behind.append(host)
            return 0.0
        if again:
            domain.back_seconds = min(domain.back_seconds * _GROWS, _FURTHEST_SECONDS)
        back_at = self._back(domain, now)
        domain.later[host] = now, back_at
        return back_at

    def first_turn(self, host: Host, now: float) -> float:
        """When a new host that is not in memory is due: at once, unless its domain has more than enough before it."""
        host.domain = self._domain_of(host.name)
        domain = self._domains.get(host.domain)
        if domain is None or len(domain.behind) < LINE:
            return now
        return self._back(domain, now)

    def leaves(self, host: Host) -> list[Host]:
        """A host was looked up or served; the hosts that may be looked up now.

        Those that were to come back later come now where no others are left: a loop that was busy while thousands came
        has let them find no place, and has sent them an hour away.
        """
        domain = self._domains[host.domain]
        domain.standing -= 1
        free = STANDING - domain.standing
        following = [domain.behind.popleft() for _ in range(min(free, len(domain.behind)))]
        while domain.later and len(following) < free:
            other, (since, back_at) = domain.later.popitem(last=False)
            if other.work and other.serial and other.next_free == back_at:  # it waits for nothing else
                other.next_free = since
                following.append(other)
        self._tidy(host.domain, domain)
        return following

    def forget(self, host: Host) -> None:
        """A host that ``waits`` was dropped while it stood behind others."""
        domain = self._domains[host.domain]
        domain.behind.remove(host)
        self._tidy(host.domain, domain)

    def comes_no_more(self, host: Host) -> None:
        """A host left memory: if it was to come back, it does so from elsewhere."""
        domain = self._domains.get(host.domain)
        if domain is not None and host in domain.later:
            del domain.later[host]
            self._tidy(host.domain, domain)

    def _tidy(self, name: str, domain: _Domain) -> None:
        if not (domain.standing or domain.behind or domain.later):
            del self._domains[name]

    def _back(self, domain: _Domain, now: float) -> float:
        domain.back_at = max(domain.back_at, now + BACK_AFTER_SECONDS) + domain.back_seconds
        return domain.back_at

    def _of(self, host: Host) -> _Domain:
        if not host.domain:
            host.domain = self._domain_of(host.name)
        domain = self._domains.get(host.domain)
        if domain is None:
            domain = self._domains[host.domain] = _Domain()
        return domain
