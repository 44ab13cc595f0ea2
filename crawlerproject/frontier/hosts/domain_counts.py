"""How many hosts each registered domain has: in memory for busy domains, in the store for big ones."""

from __future__ import annotations

import logging
from collections.abc import Callable

from crawlerproject.frontier.learned.host_model import HostModel
from crawlerproject.rules.traps.domain_hosts import DEFAULT_MAX_HOSTS, DomainHosts
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.stores.host_facts import HostFact
from crawlerproject.stores.protocols import FactReader

logger = logging.getLogger(__name__)

# Domains kept at hand: some 200 bytes each.
_KEPT = 50_000
# A domain with fewer hosts is not stored: after a restart it begins anew, which lets a farm have so many more (ours).
# Nearly all domains have fewer, and cost no write.
_STORED_FROM = 16


class DomainHostCounts(HostModel[DomainHosts]):
    """Counts hosts, and refuses those beyond a domain's bound."""

    def __init__(
        self,
        store: FactReader,
        max_hosts: int = DEFAULT_MAX_HOSTS,
        domain_of: Callable[[str], str] = bounded_domain,
    ) -> None:
        """``domain_of`` names the domain of a host key; in a fleet one whose hosts all are one worker's."""
        super().__init__(store, HostFact.DOMAIN, DomainHosts, _KEPT, domain_of)
        self._max_hosts = max_hosts
        self.domain_of = domain_of

    def full(self, host: str, named_by: str = "") -> bool:
        """Whether the host's domain may have no host more; what other domains (``named_by``) name shares half of it."""
        return self.of(host).full(self._max_hosts, named_by)

    def taken_up(self, host: str, named_by: str = "") -> None:
        """Count a host whose first URL is queued; ``named_by`` is the other domain that named it."""
        known = self.of(host)
        known.take_up(named_by)
        self._keep(host, known)

    def is_there(self, host: str, *, there: bool) -> None:
        """A host that never answered is not there at all, or is there after all."""
        known = self.of(host)
        known.dead = max(0, known.dead + (-1 if there else 1))
        self._keep(host, known)

    def refused(self, host: str) -> None:
        """A URL on a further host was refused."""
        known = self.of(host)
        if not known.refused:
            logger.warning(
                "%s has %d hosts; further ones are refused (too-many-hosts) until its pages show more that is new",
                self.domain_of(host), known.hosts,
            )  # fmt: skip
        known.refused += 1
        self._keep(host, known)

    def yielded(self, host: str) -> None:
        """A page of the host showed a text that the host had not shown before."""
        known = self.of(host)
        known.pages += 1
        self._keep(host, known)

    def _keep(self, host: str, known: DomainHosts) -> None:
        if known.hosts >= _STORED_FROM:
            self.replace(host, known)
