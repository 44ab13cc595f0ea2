"""Hosts that only other domains have named and that have no address yet: charged to the domain that named them first.

The domain that named a host is found in the first row of its queue as long as the host has not answered.
"""

from __future__ import annotations

import logging

from crawlerproject.frontier.discovered import row_named_by
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.learned.host_model import HostModel
from crawlerproject.frontier.ownership import HostOwnership
from crawlerproject.frontier.workbench import Stage
from crawlerproject.rules.traps.named_hosts import NamedHosts
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.stores.host_facts import HostFact
from crawlerproject.stores.protocols import FrontierStore

logger = logging.getLogger(__name__)

# Domains kept at hand: some 250 bytes each.
_KEPT = 20_000
# What has named fewer hosts without an address is not stored: after a restart it begins anew (ours).
_STORED_FROM = 100


class NamesToResolve(HostModel[NamedHosts]):
    """What each domain has named. ``now`` is epoch seconds."""

    def __init__(self, store: FrontierStore, ownership: HostOwnership) -> None:
        """What domains of other workers have named here is kept in memory alone."""
        super().__init__(store, HostFact.NAMED, NamedHosts, _KEPT)
        self._hosts = store
        self.ownership = ownership
        self.spent: set[str] = set()  # domains that may name no host more, as far as they have tried
        self.later: set[str] = set()  # hosts that wait for their turn; not stored

    def full(self, domain: str) -> bool:
        """Whether the domain may name no host more."""
        return self.of(domain).full

    def refused(self, domain: str) -> None:
        """A URL on a further host was refused."""
        known = self.of(domain)
        if not known.refused:
            logger.warning(
                "%s has named %d hosts that have no address; further ones are refused (too-many-names) until some have",
                domain, known.unresolved,
            )  # fmt: skip
        known.refused += 1
        self.spent.add(domain)
        self._keep(domain, known)

    def names(self, host: Host, domain: str, now: float) -> None:
        """The domain is the first to name the host, which waits for its turn to be looked up."""
        known = self.of(domain)
        host.named_by = domain
        due_at = known.name(now)
        if due_at > now and len(self.later) < _KEPT:
            self.later.add(host.name)
        host.next_free = max(host.next_free, due_at)
        self._keep(domain, known)

    def sooner(self, host: Host, domain: str, now: float) -> bool:
        """Whether a host that waits for its first look-up has it now, since ``domain`` names it too ("": its own)."""
        if host.fetched or host.address or host.failures or host.stage not in (Stage.WAITING, Stage.IDLE):
            return False
        if host.next_free <= now or not self.ready(domain, now):
            return False
        if max(host.name_free, host.rest_until) > now:  # it has been asked, to no effect that counts as its own
            return False
        self.later.discard(host.name)
        if domain:
            self.of(domain).turn(now)
        return True

    def ready(self, domain: str, now: float) -> bool:
        """Whether a host that the domain names is looked up at once ("": its own)."""
        return not domain or self.of(domain).ready(now)

    def namer(self, host: Host) -> str:
        """The domain that named a host of which nothing is known yet; "" for any other, and for its own domain."""
        return "" if host.fetched or host.address else self._first_named_by(host)

    def _first_named_by(self, host: Host) -> str:
        if host.named_by is None:
            row = next(iter(self._hosts.head(host.name, 1)), None)
            host.named_by = "" if row is None else row_named_by(row)
        return host.named_by

    def payer(self, host: Host) -> str:
        """The domain that pays for a request: its own, or, until it has answered, that which named it."""
        if host.fetched:
            return host.domain or bounded_domain(host.name)
        return self._first_named_by(host) or host.domain or bounded_domain(host.name)

    def looked_up(self, host: Host, *, found: bool) -> None:
        """A host that ``namer`` was asked about has an address, or has none."""
        self.later.discard(host.name)
        if domain := self.namer(host):
            known = self.of(domain)
            known.looked_up(found=found)
            if not known.full:
                self.spent.discard(domain)
            self._keep(domain, known)

    def _keep(self, domain: str, known: NamedHosts) -> None:
        if known.unresolved + known.resolved >= _STORED_FROM and self.ownership.mine(domain):
            self.replace(domain, known)
