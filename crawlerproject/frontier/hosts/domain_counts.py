"""How many hosts each registered domain has: those of busy domains at hand, those of big ones in the store."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable

from crawlerproject.rules.traps.domain_hosts import DEFAULT_MAX_HOSTS, DomainHosts
from crawlerproject.rules.url.scope import bounded_domain
from crawlerproject.stores.protocols import FactReader, FrontierStore

logger = logging.getLogger(__name__)

FACT_PREFIX = "domains/"  # and the domain: the name of the fact that keeps its counts
# Domains kept at hand: some 200 bytes each.
_KEPT = 50_000
# A domain with fewer hosts is not stored: after a restart it begins anew, which lets a farm have so many more (ours).
# Nearly all domains have fewer, and cost no write.
_STORED_FROM = 16


class DomainHostCounts:
    """Answers "may this domain have another host?" and counts."""

    def __init__(
        self,
        store: FrontierStore,
        max_hosts: int = DEFAULT_MAX_HOSTS,
        domain_of: Callable[[str], str] = bounded_domain,
    ) -> None:
        """``domain_of`` names the domain of a host key; in a fleet one whose hosts all are one worker's."""
        self._store = store
        self._max_hosts = max_hosts
        self.domain_of = domain_of
        self._kept: OrderedDict[str, DomainHosts] = OrderedDict()
        self._dirty: dict[str, DomainHosts] = {}
        self._storing: dict[str, DomainHosts] = {}  # in a commit that has not ended

    def full(self, host: str, *, stranger: bool = False) -> bool:
        """Whether the host's domain may have no host more; half of them are kept from what only strangers name."""
        return self._of(self.domain_of(host)).full(self._max_hosts // 2 if stranger else self._max_hosts)

    def taken_up(self, host: str) -> None:
        """A name of which nothing was known has its first URL."""
        domain = self.domain_of(host)
        known = self._of(domain)
        known.hosts += 1
        self._changed(domain, known)

    def refused(self, host: str) -> None:
        """A URL on a further host was refused."""
        domain = self.domain_of(host)
        known = self._of(domain)
        if not known.refused:
            logger.warning(
                "%s has %d hosts; further ones are refused (too-many-hosts) until its pages show more that is new",
                domain, known.hosts,
            )  # fmt: skip
        known.refused += 1
        self._changed(domain, known)

    def yielded(self, host: str) -> None:
        """A page of the host showed a text that the host had not shown before."""
        domain = self.domain_of(host)
        known = self._of(domain)
        known.pages += 1
        self._changed(domain, known)

    def let_go(self, mine: Callable[[str], bool]) -> list[str]:
        """Forget the domains that others decide about now; those of which something is not in the store yet."""
        for domain in [domain for domain in self._kept if not mine(domain)]:
            del self._kept[domain]
        return [domain for domain in self._dirty.keys() | self._storing.keys() if not mine(domain)]

    def facts(self) -> list[tuple[str, bytes]]:
        """What the next commit stores."""
        self._storing |= self._dirty
        self._dirty = {}
        return [(FACT_PREFIX + domain, known.pack()) for domain, known in self._storing.items()]

    def stored(self) -> None:
        """The last ``facts`` have reached the store."""
        self._storing.clear()

    def _changed(self, domain: str, known: DomainHosts) -> None:
        if known.hosts >= _STORED_FROM:
            self._dirty[domain] = known

    def _of(self, domain: str) -> DomainHosts:
        known = self._kept.get(domain)
        if known is None:
            known = self._dirty.get(domain) or self._storing.get(domain) or stored_hosts(self._store, domain)
            self._kept[domain] = known
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(domain)
        return known


def stored_hosts(store: FactReader, domain: str) -> DomainHosts:
    """What the store has of a domain."""
    packed = store.fact(FACT_PREFIX + domain)
    return DomainHosts.unpack(packed) if packed else DomainHosts()
