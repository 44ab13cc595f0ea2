"""The frontier: what waits, whose turn it is, and what becomes of a page. No Scrapy, no clock, no network.

``admission`` takes URLs in, ``leasing`` hands leases out, ``completion`` ends them (``robots/responses`` those of a
robots.txt); ``state`` and ``hosts/table`` keep what these share.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING

from crawlerproject.errors import StorageError
from crawlerproject.frontier.admission import Admission, LessImportant
from crawlerproject.frontier.completion import LeaseCompletion
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.hosts.domain_models import DomainHostCounts
from crawlerproject.frontier.hosts.host import PAUSED, Host
from crawlerproject.frontier.hosts.paging import HostPaging
from crawlerproject.frontier.learned.renders import Renders
from crawlerproject.frontier.learned.revisits import Announcements, Revisits
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.leasing import LeaseIssuer, Lookup, never
from crawlerproject.frontier.other_workers import (
    Changed,
    HubMoved,
    HubNamed,
    HubRequest,
    Links,
    Message,
    RobotsWanted,
    ScopeWidened,
    SoleOwner,
)
from crawlerproject.frontier.politeness import FetchOutcome, HostPoliteness
from crawlerproject.frontier.robots_responses import RobotsResponses
from crawlerproject.frontier.state import FrontierState
from crawlerproject.frontier.subrequests import Subrequests
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.frontier.workbench import Stage
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.backoff import NOT_THERE
from crawlerproject.rules.url.domains import bounded_domain, registered_domain
from crawlerproject.stores.protocols import PageRecord

if TYPE_CHECKING:
    from crawlerproject.frontier.learned.subscriptions import RemoteSubscriptions, Subscriptions

# Stages of hosts that are about to be asked.
_ABOUT_TO = (Stage.LOOKED_UP, Stage.IN_LINE, Stage.BEHIND, Stage.ASIDE)


class Frontier:
    """Hosts, queues, leases and their ends. ``now`` is epoch seconds everywhere."""

    def __init__(
        self,
        state: FrontierState,
        filters: UrlFilters,
        politeness: HostPoliteness,
        renders: Renders,
        revisits: Revisits,
        rng: random.Random,
        less_important: LessImportant | None = None,
        *,
        recrawl: bool = False,
    ) -> None:
        """``less_important``: what a rank says; ``recrawl``: known pages that have changed are queued at once."""
        hosts = self.hosts = state.hosts
        self.state, self.workbench, self.renders, self.revisits = state, state.workbench, renders, revisits
        self._paging = HostPaging(hosts, hosts.on_disk) if hosts.on_disk is not None else None
        self.embeds = Subrequests(state, filters)
        # In a fleet a domain as partitions have it, so that its hosts all are one worker's.
        domain_of = bounded_domain if isinstance(hosts.ownership, SoleOwner) else registered_domain
        self.names = hosts.names
        self.domains = DomainHostCounts(state.store, filters.max_hosts_per_domain, domain_of)
        self.admission = Admission(state, filters, self.domains, less_important)
        self.announcements = Announcements(state, self.admission, revisits, recrawl=recrawl)
        self._robots_responses = RobotsResponses(state, filters, politeness, revisits, rng)
        self.leasing = LeaseIssuer(state, filters, renders, self.embeds, self._robots_responses)
        self.completion = LeaseCompletion(state, politeness, self._robots_responses, renders, rng)
        self.subscriptions: Subscriptions | RemoteSubscriptions | None = None
        """What the crawl has to do with hubs; None: they cannot reach it."""

    def begin_loading(self) -> None:
        """Take up hosts that have work from an earlier run, as ``load_some`` is called."""
        if self._paging is not None:
            self._paging.begin_loading()
        else:
            self.hosts.take_up(self.state.store.hosts_with_work())

    def load_some(self, count: int) -> bool:
        """Take up so many more of them; whether there may be others. StorageError: call again later."""
        return self._paging is not None and self._paging.load_some(count)

    def let_go(self, mine: Callable[[str], bool]) -> list[str]:
        """Forget every host that is not ours any more; those that are still in flight, which must end first."""
        self.state.robots.forget(mine)
        return self.hosts.let_go(mine)

    def allowed(self, found: Iterable[DiscoveredUrl], now: float) -> list[DiscoveredUrl]:
        """What of these passes the filters that need no state of the host: what is worth sending to its worker."""
        return self.admission.allowed(found, now, elsewhere=True)

    def read(self, message: Message, now: float) -> None:
        """Take in what another worker wrote about hosts of ours."""
        self.hosts.clock.now = now
        if isinstance(message, Links):
            self.add(message.found, now)
        elif isinstance(message, RobotsWanted):
            self._robots_responses.wanted(message, now)
        elif isinstance(message, Changed):
            self.announcements.changed(message.pages, now)
        elif isinstance(message, ScopeWidened):
            self.admission.scope_widened(message)
        elif isinstance(message, HubNamed | HubMoved | HubRequest):
            if self.subscriptions is not None:
                self.subscriptions.heard(message, now)
        else:
            self._robots_responses.given(message, now)

    def add(self, found: Iterable[DiscoveredUrl], now: float) -> int:
        """Queue what is new and allowed, as one atomic change. Returns how many were queued."""
        self.hosts.clock.now = now
        return self.admission.add(found, now)

    def next(self, now: float, enough: Callable[[], bool] = never) -> Lease | Lookup | None:
        """The next thing to do for a host that is free now; None when every host waits.

        ``enough`` is asked after each turn that led to nothing: True ends the search though hosts may be free.
        """
        self.hosts.clock.now = now
        if self._paging is not None:
            self._paging.tend(now)
        return self.leasing.next(now, enough)

    def wake_at(self) -> float | None:
        """The next moment at which ``next`` may have something; None when nothing waits for time."""
        wake = self.workbench.wake_at()
        on_disk = self._paging.wake_at() if self._paging is not None else inf
        return wake if on_disk == inf else min(on_disk, inf if wake is None else wake)

    def finish(self, lease: Lease, outcome: FetchOutcome, record: PageRecord, body: bytes, now: float) -> None:
        """A lease's end: the page's fate is decided (or it goes back), the host's clock starts.

        ``body`` matters for a robots.txt only. The fate reaches the store with the next ``apply``.
        """
        self.hosts.clock.now = now
        self.completion.finish(lease, outcome, record, body, now)
        host = lease.host
        if host.absent or not host.fetched:
            self._keep_place(host, outcome)
        if host.embeds:
            self.embeds.door_closed(host)

    def _keep_place(self, host: Host, outcome: FetchOutcome) -> None:
        """A host that is not there at all gives back its place among its domain's hosts and its name's ports.

        It takes it again when it answers.
        """
        absent = not outcome.status and not host.fetched and outcome.reason in NOT_THERE
        if absent == host.absent or not (absent or outcome.status):
            return
        host.absent = absent
        if host.ports is None:  # else other ports may be there
            self.domains.is_there(host.name, there=not absent)

    def requeue(self, lease: Lease, now: float) -> None:
        """End a lease without a fate: its row waits again as if it had never been taken."""
        if lease.embed is not None:
            lease.embed.refused(Reason.RENDER_PACE)
        self.completion.requeue(lease, now)

    def postpone(self, lease: Lease, now: float, until: float) -> None:
        """End a lease that sent nothing, since the worker must stop or let go of its host; it is tried again."""
        if lease.embed is not None:
            self.embeds.ask_again(lease.embed)
        self.completion.postpone(lease, now, until)

    def refused(self, lease: Lease, now: float, until: float, *, gives_way: bool) -> None:
        """End a lease that sent nothing, since another worker has the turn at its address ``until`` then at least.

        ``gives_way``: only the host's domain waits, and others of ours at that address go on.
        """
        if lease.embed is not None:
            self.embeds.ask_again(lease.embed)
        self.completion.refused(lease, now, until, gives_way=gives_way)

    def pause_hosts(self, paused: Mapping[str, str], now: float) -> None:
        """Host names and keys that are not asked from now on, each with its remark. Raises StorageError."""
        self.hosts.clock.now = now
        suspensions = self.hosts.suspensions
        before, suspensions.paused = suspensions.paused, dict(paused)
        try:
            for name in before.keys() - paused.keys():
                self.hosts.let_in(name)
        except StorageError:
            suspensions.paused = before
            raise
        for host in list(self.workbench.hosts.values()):
            if not host.given_up and host.stage == Stage.WAITING and suspensions.pause_of(host.name) is not None:
                self.hosts.hold(host, PAUSED)
                self.workbench.wait(host, host.next_free, work=False)

    def probe_again(self, now: float) -> bool:
        """Have some hosts asked that did not answer and were left alone for long; whether any is. StorageError."""
        self.hosts.clock.now = now
        return self.hosts.probe_again(now)

    def only_rests(self, now: float, patience_seconds: float) -> bool:
        """Whether nothing can be fetched for ``patience_seconds`` because every host with work rests for longer."""
        if self.state.leased:
            return False
        wake = self.wake_at()
        if wake is not None and wake <= now + patience_seconds:
            return False
        counts, in_memory = self.hosts.counts_on_disk, self.workbench.hosts.values()
        if counts.resting < counts.hosts:
            return False
        return all(
            not host.work or host.rests_until(now) > now + patience_seconds
            for host in in_memory
            if host.stage in (Stage.WAITING, Stage.IDLE)
        ) and not any(host.stage in _ABOUT_TO for host in in_memory)
