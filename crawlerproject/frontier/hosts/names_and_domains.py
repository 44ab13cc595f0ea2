"""What is known of each host name and each registered domain, and how many hosts either may have.

The ports of a name are hosts of their own that share a clock, and are bounded in number. Of a domain is known how many
hosts it has, and how many without an address it has named: in memory for busy domains, in the store for big ones. A
host that only other domains have named and that has no address yet is charged to the domain that named it first; that
is found in the first row of its queue until the host answers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from crawlerproject.frontier.hosts.host import Host, PortsClock, Stage
from crawlerproject.frontier.learned.models import HostModel
from crawlerproject.frontier.passage import row_named_by
from crawlerproject.rules.printable import counted
from crawlerproject.rules.traps.budgets import DEFAULT_MAX_HOSTS, DomainHosts, NamedHosts
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.urls import host_name, key_of, port_of
from crawlerproject.stores.protocols import FactReader, FrontierStore, HostFact

if TYPE_CHECKING:
    from crawlerproject.frontier.frontier_state import HostOwnership
    from crawlerproject.frontier.hosts.table import HostTable


class PortsOfNames:
    """Which ports of a name were taken up, and the clock that those in memory share."""

    def __init__(self, table: HostTable, max_ports: int) -> None:
        """``max_ports`` of one name, the default port left out."""
        self._table, self._workbench = table, table.workbench
        self._max_ports = max_ports

    def knows(self, name: str) -> bool:
        """Whether a URL of the host, or of another port of its name, was ever accepted."""
        if (clock := self._workbench.names.get(host_name(name))) is not None:
            return clock.known > 0 or any(host.ever_queued for host in clock.hosts)
        first = self._table.find(host_name(name))
        return (
            first.ever_queued
            or (":" in name and self._table.find(name).ever_queued)
            or any(number != port_of(name) for number in first.other_ports)
        )

    def is_new(self, name: str) -> bool:
        """Whether a host key has a port of its name that was not taken up."""
        if ":" not in name or name in self._workbench.hosts or name in self._table.copies:
            return False
        return (port := port_of(name)) > 0 and port not in self._taken(host_name(name))

    def left(self, name: str, given_back: int, *, external: bool) -> int:
        """How many ports more the name of a host key may have, half of them for those that other sites name.

        Those that never took a connection do not count, as far as other sites have named them: ``given_back`` at most.
        """
        first = host_name(name)
        taken = self._taken(first)
        dead = sum(self._table.find(key_of(first, number)).absent for number in taken) if given_back else 0
        return (self._max_ports // 2 if external else self._max_ports) - len(taken) + min(dead, given_back)

    def _taken(self, first: str) -> Collection[int]:
        clock = self._workbench.names.get(first)
        return clock.numbers if clock is not None else self._table.find(first).other_ports

    def add(self, host: Host) -> None:
        """Add a port to its name though its host goes to disk at once: it shares the name's clock when it is back."""
        name, port = host_name(host.name), port_of(host.name)
        if not port:
            return
        if (clock := self._workbench.names.get(name)) is not None:
            clock.numbers.add(port)
            host.next_free = max(host.next_free, clock.free_at(host))
        first = self._table.find(name)
        if port not in first.other_ports:
            first.other_ports += (port,)
            self._table.dirty[name] = first

    def share(self, host: Host) -> None:
        """Have a host share the clock of its name's other ports, in memory or stored; most names have no other."""
        name, bench = host_name(host.name), self._workbench
        clock = bench.names.get(name)
        if clock is None:
            port = port_of(host.name)
            first = self._table.find(name) if port else host
            if port and port not in first.other_ports:
                first.other_ports += (port,)
                self._table.dirty[name] = first
            if not first.other_ports:
                return
            unheard_of = name not in bench.hosts and not (first.known or first.fetched or first.name_free)
            if first.other_ports == (port,) and unheard_of:  # the only port of its name shares its clock with no other
                return
            clock = bench.share(host, name)
            clock.numbers.update(first.other_ports)
            for key in (name, *(key_of(name, number) for number in clock.numbers)):
                self._learn_clock(host if key == host.name else self._table.find(key), clock)
        elif (port := port_of(host.name)) and port not in clock.numbers:
            clock.numbers.add(port)
            first = self._table.find(name)
            first.other_ports += (port,)
            self._table.dirty[name] = first
        bench.share(host, name)
        host.next_free = max(host.next_free, clock.free_at(host))
        for each in clock.hosts:
            each.rest_until = max(each.rest_until, clock.rest_until)

    def _learn_clock(self, host: Host, clock: PortsClock) -> None:
        """Advance the name's clock by the stored state of one port."""
        free = host.name_free + self._table.ownership.doubt_seconds if host.name_free else 0.0
        if unsure_until := self._table.ownership.unsure_until(host.name):  # it may have been this port that was asked
            free = max(free, unsure_until + host.delay_seconds)
        clock.known += host.known
        if host.rest_until <= host.name_free:  # it was asked for: what fails rests a port alone
            clock.rest_until = max(clock.rest_until, host.rest_until)
        clock.next_free = max(clock.next_free, free)
        clock.ended = max(clock.ended, free - host.delay_seconds)
        if host.name in self._workbench.hosts:
            self._workbench.share(host, clock.name)


logger = logging.getLogger(__name__)

# Domains kept at hand: some 200 bytes each, and of those that named hosts some 250.
_KEPT, _NAMING_KEPT = 50_000, 20_000
# A domain with fewer hosts is not stored: after a restart it starts again, which lets a farm have so many more (ours).
# Nearly all domains have fewer, and cost no write.
_STORED_FROM = 16
# The same of a domain that has named fewer hosts without an address.
_NAMES_STORED_FROM = 100


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
                "%s has %s; further ones are refused (too-many-hosts) until its pages show more that is new",
                self.domain_of(host), counted(known.hosts, "host"),
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


class NamesToResolve(HostModel[NamedHosts]):
    """What each domain has named. ``now`` is epoch seconds."""

    def __init__(self, store: FrontierStore, ownership: HostOwnership) -> None:
        """What domains of other workers have named here is kept in memory alone."""
        super().__init__(store, HostFact.NAMED, NamedHosts, _NAMING_KEPT)
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
                "%s has named %s without an address; further ones are refused (too-many-names) until some have one",
                domain, counted(known.unresolved, "host"),
            )  # fmt: skip
        known.refused += 1
        self.spent.add(domain)
        self._keep(domain, known)

    def names(self, host: Host, domain: str, now: float) -> None:
        """The domain is the first to name the host, which waits for its turn to be looked up."""
        known = self.of(domain)
        host.named_by = domain
        due_at = known.name(now)
        if due_at > now and len(self.later) < _NAMING_KEPT:
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
        if known.unresolved + known.resolved >= _NAMES_STORED_FROM and self.ownership.mine(domain):
            self.replace(domain, known)
