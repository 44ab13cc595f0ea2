"""Every refusal a URL can meet on its way into the queue, and those it meets again before it is fetched."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from crawlerproject.frontier.learned.models import TrapModel
from crawlerproject.frontier.passage import DiscoveredUrl, caused_externally, linking_domain
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import (
    ROW_KINDS,
    Budget,
    RowKind,
)
from crawlerproject.rules.traps.budgets import DEFAULT_MAX_HOSTS, DEFAULT_MAX_REQUISITES, NAMED_FACTOR
from crawlerproject.rules.url.refused_urls import (
    DEFAULT_MAX_PORTS,
    AddressRules,
    Exclusion,
    bad_port,
    extensions_of,
    of_sitemaps,
    trap,
    url_path,
    useless,
)
from crawlerproject.rules.url.scope import Scope, ScopedUrl
from crawlerproject.rules.url.urls import Address, host_name
from crawlerproject.stores.operator_files.watched_lists import Listing, WithdrawnFile
from crawlerproject.stores.protocols import QueuedPage

if TYPE_CHECKING:
    from crawlerproject.frontier.hosts.names_and_domains import PortsOfNames

NO_REQUISITES, OF_ANY_HOST = "none", "page"
"""Values of REQUISITES; another one is "same-domain"."""


HostsAtOnce = dict[str, tuple[str, bool, Reason | None] | Literal[True]]
"""By host key: its name, whether a budget of its pages is spent, and why nothing at all may be asked of it.

True: of its pages only depth, length, extension and shape are looked at."""


class NeverCrawl(Protocol):
    """The exclusion list of this moment."""

    def current(self, now: float) -> Exclusion: ...

    def listing(self, host_name: str, now: float) -> Listing | None: ...


@dataclass(eq=False)
class UrlFilters:
    """The schedule gate and the fetch gate; cheapest refusal first."""

    scope: Scope
    never_crawl: NeverCrawl
    addresses: AddressRules
    _traps: TrapModel | None = None
    _: KW_ONLY
    max_urls_per_host: int
    skip_extensions: Collection[str] = ()
    max_ports_per_host: int = DEFAULT_MAX_PORTS
    max_hosts_per_domain: int = DEFAULT_MAX_HOSTS
    hubs: bool = False  # whether hubs may push to us: else nothing is asked of them
    requisites: str = NO_REQUISITES  # whose requisites of pages are fetched
    max_requisites_per_host: int = DEFAULT_MAX_REQUISITES
    withdrawn: WithdrawnFile = field(default_factory=partial(WithdrawnFile, None))

    def __post_init__(self) -> None:
        self.fetches_requisites = self.requisites != NO_REQUISITES
        self.max_hosts_per_domain *= NAMED_FACTOR if self.scope.mode == "domain" else 1
        self.skip_extensions = self.extensions = extensions_of(self.skip_extensions)
        self._skip_of_sitemaps = of_sitemaps(self.skip_extensions)

    def refusal(
        self, found: DiscoveredUrl, now: float, *, elsewhere: bool = False, hosts: HostsAtOnce | None = None
    ) -> Reason | None:
        """Why a URL may not be queued; None when it may. ``elsewhere``: another worker knows what its host yielded.

        ``hosts``: what holds for all URLs of a host, found for others of this moment; added to.
        """
        address, kind = found.address, ROW_KINDS[found.flags]
        if kind.is_requisite:
            return self._requisite_refusal(address, found, now, elsewhere=elsewhere)
        if not kind.is_seed:
            refusal = self.scope.refusal(address, found.depth, is_list=kind.is_list)
            if refusal is not None:
                return refusal
        host, url = address.host, address.url
        known = hosts.get(host) if hosts is not None else None
        if known is None:
            name, traps = host_name(host), None if elsewhere or kind.is_seed else self._traps
            known = name, traps is not None and traps.yields.of(host).spends, self._host_refusal(host, name, now)
            if hosts is not None and not kind.is_seed:
                hosts[host] = known if known[1] or known[2] is not None or self.scope.choosy else True
        name, spends, refusal = (host_name(host), False, None) if known is True else known
        if refusal is not None or kind.is_seed:
            return refusal
        path = url_path(url)
        if "." in path and useless(path, self._skip_of_sitemaps if kind.is_list else self.skip_extensions):
            return Reason.EXTENSION
        if elsewhere:
            return None
        if kind.is_external and self.external_spent(
            host, linking_domain(host, found.via, found.flags, found.note), now
        ):
            return Reason.EXTERNAL_BUDGET
        traps, endless = self._traps, trap("/" + path, name)
        if traps is None:
            return Reason.TRAP if endless else None
        # By the URL's shape, or by what its template has yielded.
        refused = (endless and traps.refuses_shape(host, url, now)) or (spends and traps.refuses(host, url, now))
        return Reason.TRAP if refused else None

    def refusal_known(self, found: DiscoveredUrl, now: float) -> Reason | None:
        """Why a page that was fetched before may not be queued again; scope and traps were asked the first time."""
        if found.kind.is_requisite:
            return self._requisite_refusal(found.address, found, now)
        host = found.address.host
        if bad_port(host):
            return Reason.BAD_PORT
        if self._left_out(found.address, found.kind):
            return Reason.SCOPE
        return Reason.NEVERCRAWL if self.never_crawl.current(now).excludes(host_name(host)) else None

    def refusal_again(self, row: QueuedPage, now: float) -> Reason | None:
        """Why a queued URL may not be fetched now; None when it may."""
        withdrawn = self.withdrawn.current(now)
        if self.never_crawl.current(now).excludes(host_name(row.host)) or (
            withdrawn.entries and withdrawn.refuses(row.url)
        ):
            return Reason.NEVERCRAWL
        if ":" in row.host and bad_port(row.host):
            return Reason.BAD_PORT  # queued by a version that asked there
        kind = ROW_KINDS[row.flags]
        if kind.is_requisite:  # a known one has met its host's budgets when it was chosen
            return self._requisite_refusal(row, row, now, elsewhere=kind.is_recrawl)
        if kind.is_hub and not self.hubs:
            return Reason.SCOPE  # left over from a run that did
        if self.scope.choosy and self._left_out(row, kind):
            return Reason.SCOPE  # queued before the pattern was added
        if not kind.requested and useless(
            url_path(row.url), self._skip_of_sitemaps if kind.is_list else self.skip_extensions
        ):
            return Reason.EXTENSION  # queued before SKIP_EXTENSIONS named it
        traps = self._traps
        if traps is None:
            return None
        if kind.is_external and caused_externally(row):
            domain = linking_domain(row.host, row.via, row.flags, row.note)
            if traps.refuses_external(row.host, domain, now):
                return Reason.EXTERNAL_BUDGET
        if kind.template_traps:
            return Reason.TRAP if traps.refuses(row.host, row.url, now) else None
        return Reason.SITEMAP_BUDGET if kind.budget is Budget.LISTS and traps.refuses_list(row.host, now) else None

    def _left_out(self, target: ScopedUrl, kind: RowKind) -> bool:
        """Whether a pattern or a seed's options refuse a URL that was queued before they existed."""
        if not self.scope.choosy or kind.requested:
            return False
        return self.scope.place_refusal(target, is_list=kind.is_list) is not None

    def room_refusal(self, found: DiscoveredUrl, now: float) -> Reason | None:
        """Why there is no room in its host's queue for a URL that is new, as far as it is not the host's budget."""
        traps, budget, host = self._traps, found.kind.budget, found.address.host
        if traps is None or budget is Budget.NONE:
            return None
        if budget is Budget.LISTS:
            return None if traps.admits_list(host, now) else Reason.SITEMAP_BUDGET
        domain = linking_domain(host, found.via, found.flags, found.note)
        if budget is Budget.REQUISITES:
            admitted, reason = (
                traps.requisites.changed(host).admit(domain, self.max_requisites_per_host),
                Reason.REQUISITE_BUDGET,
            )
        else:
            admitted, reason = (
                traps.external.changed(host).admit(domain, self.max_urls_per_host),
                Reason.EXTERNAL_BUDGET,
            )
        return None if admitted or traps.allowed(host, f"@{domain}", now) else reason

    def _requisite_refusal(
        self, target: ScopedUrl, named: DiscoveredUrl | QueuedPage, now: float, *, elsewhere: bool = False
    ) -> Reason | None:
        """Why a page requisite may not be asked for: no extension is a reason, and no scope but the operator's own."""
        url, host = target.url, target.host
        if self.requisites != OF_ANY_HOST and (named.kind.is_external or self.requisites == NO_REQUISITES):
            return Reason.SCOPE
        if len(url) > self.scope.max_url_length:
            return Reason.URL_LENGTH
        if self.scope.excludes(url):
            return Reason.SCOPE
        if (refusal := self.subresource_refusal(target, now)) is not None:
            return refusal
        traps = self._traps
        if elsewhere or traps is None:
            return None
        if trap("/" + url_path(url), host_name(host)) and not traps.allows(host, now):
            return Reason.TRAP
        domain = linking_domain(host, named.via, named.flags, named.note)
        return Reason.REQUISITE_BUDGET if traps.refuses_requisite(host, url, domain, now) else None

    def list_comes_later(self, host: str) -> bool:
        """Whether a sitemap comes after the pages that others have named: more are queued than have been earned."""
        return self._traps is not None and self._traps.yields.of(host).lists.ahead

    def robots_target_refusal(self, target: Address, now: float) -> Reason | None:
        """Why a robots.txt that was redirected may not be asked for there, its host's own robots.txt left out."""
        if (refusal := self.subresource_refusal(target, now)) is not None:
            return refusal
        if len(target.url) > self.scope.max_url_length:
            return Reason.URL_LENGTH
        return Reason.EXTENSION if useless(url_path(target.url), self.skip_extensions) else None

    def external_spent(self, host: str, domain: str, now: float) -> bool:
        """Whether the domain that named a URL, or whose page in the browser asks for it, has spent its budget."""
        return self._traps is not None and self._traps.refuses_external(host, domain, now)

    def port_refusal(self, ports: PortsOfNames, host: str, named_by: str = "") -> Reason | None:
        """TOO_MANY_PORTS for one port too many of a name; ``named_by`` is another domain, which else takes it up."""
        if not ports.is_new(host):
            return None
        external = self._traps.external.of(host) if self._traps is not None else None
        left = ports.left(host, external.everyone.ports if external else 0, external=bool(named_by))
        if left <= 0 or (named_by and external and not external.may_take_port(named_by, left)):
            return Reason.TOO_MANY_PORTS
        if named_by and self._traps is not None:
            self._traps.external.changed(host).take_port(named_by)
        return None

    def any_hosts(self, domain: str, now: float) -> bool:
        """Whether the operator says that the hosts of this domain are no farm."""
        return self._traps is not None and self._traps.allows("*." + domain, now)

    def subresource_refusal(self, address: ScopedUrl, now: float) -> Reason | None:
        """Why a page in the browser may not ask for it, its host's robots.txt left out."""
        return self._host_refusal(address.host, host_name(address.host), now)

    def _host_refusal(self, host: str, name: str, now: float) -> Reason | None:
        """Why nothing at all may be asked of a host; ``name`` is its key without the port."""
        if self.never_crawl.current(now).excludes(name):
            return Reason.NEVERCRAWL
        if name != host and bad_port(host):
            return Reason.BAD_PORT
        # Whether an IP address may be contacted; names are judged by what they resolve to.
        is_address = name[-1:].isdigit() or name[:1] == "["
        return Reason.PRIVATE_ADDRESS if is_address and self.addresses.refuses(name.strip("[]")) else None
