"""The frontier: what waits, whose turn it is, and what becomes of a page. No Scrapy, no clock, no network.

``admission`` takes URLs in, ``leasing`` hands leases out, and they end here (``robots_responses``: those of a
robots.txt); ``frontier_state`` and ``hosts/table`` keep what these share.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import inf

from crawlerproject.errors import StorageError
from crawlerproject.frontier import other_workers
from crawlerproject.frontier.admission import Admission, LessImportant
from crawlerproject.frontier.frontier_state import FrontierState
from crawlerproject.frontier.hosts.host import Host, HostState, Stage
from crawlerproject.frontier.hosts.names_and_domains import DomainHostCounts
from crawlerproject.frontier.learned.render_gains import Renders
from crawlerproject.frontier.learned.revisits import Revisits, again
from crawlerproject.frontier.learned.subscriptions import RemoteSubscriptions
from crawlerproject.frontier.leasing import LeaseIssuer
from crawlerproject.frontier.passage import DiscoveredUrl, Lease, Visit, document_of
from crawlerproject.frontier.politeness import AGAIN, Consequence, HostPoliteness
from crawlerproject.frontier.robots_responses import RobotsResponses
from crawlerproject.frontier.subrequests import Subrequests
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.address_turns import LONG_SECONDS
from crawlerproject.rules.politeness.pauses import ADDRESS_FAILURES, NOT_THERE, PORT_FAILURES, UNSENT_FAILURES
from crawlerproject.rules.printable import moment
from crawlerproject.rules.row_kinds import FLAG_RENDER, of_redirect
from crawlerproject.rules.url.domains import bounded_domain, registered_domain
from crawlerproject.rules.url.urls import Address
from crawlerproject.stores.protocols import PageRecord

logger = logging.getLogger(__name__)

# Stages of hosts that are about to be asked.
_ABOUT_TO = (Stage.LOOKED_UP, Stage.IN_LINE, Stage.BEHIND, Stage.ASIDE)
# An answer's end as the server sees it: its last write returns up to this much after we have read it (1.2 ms seen
# between two busy processes on one machine).
_SERVERS_VIEW_SECONDS = 0.005


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
        self.subrequests = Subrequests(state, filters)
        # In a fleet a domain as partitions have it, so that its hosts all are one worker's.
        domain_of = bounded_domain if hosts.ownership.sole else registered_domain
        self.names = hosts.names
        self.domains = DomainHostCounts(state.store, filters.max_hosts_per_domain, domain_of)
        self.admission = Admission(state, filters, self.domains, less_important)
        self._politeness, self._rng, self._recrawl = politeness, rng, recrawl
        self.quiet_hours = politeness.quiet_hours
        self._robots_responses = RobotsResponses(state, filters, politeness, revisits, rng)
        self.leasing = LeaseIssuer(state, filters, renders, self.subrequests, self._robots_responses)
        self.subscriptions: RemoteSubscriptions | None = None
        """What the crawl has to do with hubs; None: they cannot reach it."""

    def begin_loading(self) -> None:
        """Take up hosts that have work from an earlier run, as ``load_some`` is called."""
        self.hosts.on_disk.begin_loading()

    def load_some(self, count: int) -> bool:
        """Take up so many more of them; whether there may be others. StorageError: call again later."""
        return self.hosts.on_disk.load_some(count)

    def let_go(self, mine: Callable[[str], bool]) -> list[str]:
        """Forget every host that is not ours any more; those that are still in flight, which must end first."""
        self.state.robots.forget(mine)
        return self.hosts.let_go(mine)

    def read(self, message: other_workers.Message, now: float) -> None:
        """Take in what another worker wrote about hosts of ours."""
        self.hosts.clock.now = now
        if isinstance(message, other_workers.Links):
            self.add(message.found, now)
        elif isinstance(message, other_workers.RobotsWanted):
            self._robots_responses.wanted(message, now)
        elif isinstance(message, other_workers.Changed):
            self.changed(message.pages, now)
        elif isinstance(message, other_workers.ScopeWidened):
            self.admission.scope_widened(message)
        elif isinstance(message, other_workers.HubNamed | other_workers.HubMoved | other_workers.HubRequest):
            if self.subscriptions is not None:
                self.subscriptions.heard(message, now)
        else:
            self._robots_responses.take_in(message, now)

    def add(self, found: Iterable[DiscoveredUrl], now: float) -> int:
        """Queue what is new and allowed, as one atomic change. Returns how many were queued."""
        return self.admission.add(found, now)

    def changed(self, pages: Iterable[tuple[Address, float]], now: float) -> int:
        """Take word that known pages changed at these moments (epoch seconds); in a recrawl they are queued at once.

        How many were believed.
        """
        mine = self.state.ownership.mine
        announced = (self.revisits.announced(address, at, now) for address, at in pages if mine(address.host))
        believed = [page for page in announced if page is not None]
        count = len(believed)
        if self._recrawl:
            count = self.admission.again((again(page, now) for page in believed), now)
        else:
            marked = [(page.key, page.record._replace(history=page.history.pack())) for page in believed]
            self.state.changes.pages.extend(marked)
        self.state.announced += count
        return count

    def wake_at(self) -> float | None:
        """The next moment at which ``leasing.next`` may have something; None when nothing waits for time."""
        wake, on_disk = self.workbench.wake_at(), self.hosts.on_disk
        return wake if on_disk.first_due == inf else min(on_disk.wake_at(), inf if wake is None else wake)

    # --- the end of a lease -----------------------------------------------------------------------

    def finish(self, lease: Lease, outcome: Visit, record: PageRecord, now: float) -> None:
        """A lease's end: the page's fate is decided (or it goes back), the host's clock starts.

        The fate reaches the store with the next ``apply``.
        """
        self.hosts.clock.now = now
        state, host, row = self.state, lease.host, lease.row
        state.leased -= 1
        lease.ended = True
        host.fetched += 1 if outcome.status else 0
        before, kind, ok = host.delay_seconds, lease.kind, outcome.ok
        robots_failed = kind.is_robots and not ok
        if robots_failed:
            scheme, closed = row.note.partition(":")[0], outcome.reason in PORT_FAILURES
            good = outcome.status is None and host.other_scheme_good(scheme, now)
            outcome.other_scheme_good = good or (closed and state.other_scheme_waits(host, scheme))
            outcome.copy_serves = not document_of(row.hops) and state.robots.serves(row.note, now)
        # Whether the address took no connection but the host has another one, which is the next turn's.
        next_address = outcome.status is None and outcome.reason in ADDRESS_FAILURES and host.spare_addresses > 0
        if next_address:
            host.dead_addresses |= {lease.address}
            host.spare_addresses, host.address_until = host.spare_addresses - 1, 0.0
        as_before = next_address or outcome.signature_asked  # nothing is known of the page, nor of a robots.txt
        consequence = AGAIN if as_before else self._politeness.after(host, outcome, now, self._rng)
        if outcome.license_named and lease.stored:
            consequence = replace(
                consequence, again=self._robots_responses.wants_license(host, row.url, outcome.license_named)
            )
        if kind.sent_once and outcome.reason not in UNSENT_FAILURES:
            consequence = replace(consequence, again=False)
        if kind.is_robots and not as_before:
            self._robots_responses.answered(lease, outcome, now)
        if lease.stored and consequence.again and (as_before or not kind.is_robots):
            state.queue_again(row, host, now, tries=row.tries + 1)
        elif lease.stored and outcome.respelled:
            # It was redirected to the same page by its key: a session id or a tracking parameter.
            place, hops = of_redirect(row.priority), row.hops + "R"
            moved = {"url": outcome.respelled, "via": row.url, "hops": hops, "priority": place}
            state.queue_again(row, host, now, tries=0, **moved)
        elif lease.stored and outcome.render:
            state.changes.pages.append((row.page_key, record))
            state.queue_again(row, host, now, tries=0, flags=row.flags | FLAG_RENDER, note=outcome.render)
        elif lease.stored:
            state.decide(row, host, record, apart=outcome.apart)
        self.hosts.dirty[host.name] = host
        host.delay_seconds = self._politeness.delay_seconds(host)
        host.promised_seconds = max(host.delay_seconds, host.rest_until - now)
        if consequence.opened or consequence.door_until:
            self._leave_alone(host, consequence, outcome.reason)
        self._start_clock(lease, outcome.ended_at or now)
        if outcome.external and lease.took_seconds is not None and lease.took_seconds > LONG_SECONDS:
            self.leasing.external_took(host, lease.took_seconds, now)
        if (not ok and (outcome.trouble or robots_failed)) or consequence.opened or host.delay_seconds > before:
            state.store_now(host)  # a promise that grew must survive even a crash before the next commit
        if host.absent or not host.fetched:
            self._keep_place(host, outcome)
        if host.subrequests:
            self.subrequests.door_closed(host)

    def _ended(self, lease: Lease) -> Host:
        self.state.leased -= 1
        lease.ended = True
        return lease.host

    def _leave_alone(self, host: Host, consequence: Consequence, reason: Reason) -> None:
        """Give up or park a host that keeps failing, and log it."""
        known = {"host": host.name, "reason": reason}
        if consequence.park:
            self.hosts.park(host, consequence.probe_at)
            logger.warning(
                "%s is left alone until %s: its probe failed too (%s)",
                host.name, consequence.until, reason, extra=known,
            )  # fmt: skip
        elif consequence.door_until:
            logger.warning(
                "%s is left alone until %s by what only other sites name of it: that gets no answer (%s)",
                host.name, moment(consequence.door_until), reason, extra=known,
            )  # fmt: skip
        else:
            logger.info(
                "%s failed %d times in a row (%s): it rests until %s, then one request probes it",
                host.name, host.failures, reason, moment(host.rest_until), extra=known,
            )  # fmt: skip

    def _keep_place(self, host: Host, outcome: Visit) -> None:
        """A host that is not there at all gives back its place among its domain's hosts and its name's ports.

        It takes it again when it answers.
        """
        absent = not outcome.status and not host.fetched and outcome.reason in NOT_THERE
        if absent == host.absent or not (absent or outcome.status):
            return
        host.absent = absent
        if host.ports is None:  # else other ports may be there
            self.domains.is_there(host.name, there=not absent)

    def _start_clock(self, lease: Lease, ended: float) -> None:
        """The pauses of the host, of its name and of its address begin where the answer ended."""
        host, ended = lease.host, ended + _SERVERS_VIEW_SECONDS
        next_free = ended + self._politeness.jittered(host.delay_seconds, self._rng)
        host.pace_free = max(next_free, host.rest_until)
        host.name_free = max(next_free, host.asked_until)
        if host.ports is not None:
            host.ports.charge(host, ended, host.name_free)
        work = host.waiting_urls > 0 and not host.state
        next_free, is_page = max(host.pace_free, host.held_until), not lease.kind.is_robots
        lease.took_seconds = self.workbench.ended(host, ended, next_free, work=work, is_page=is_page)

    def finish_render(self, lease: Lease, now: float, *, again: bool) -> None:
        """End a render. The page's record stays that of its plain answer."""
        host = self._ended(lease)
        if again:
            self.state.queue_again(lease.row, host, now, tries=lease.row.tries + 1)
        else:
            self.state.changes.removed.append(lease.row)
        self.hosts.dirty[host.name] = host
        self._left_browser(host, now)

    def _left_browser(self, host: Host, now: float) -> None:
        """Let the host have another page rendered: if it waits for that, its next turn is due."""
        host.rendering = False
        if host.stage in (Stage.WAITING, Stage.IDLE):
            next_free = max(now, host.pace_free, host.rest_until, host.held_until)
            self.workbench.wait(host, next_free, work=host.waiting_urls > 0 and not host.state)
        self.renders.ended(now)

    def requeue(self, lease: Lease, now: float, until: float | None = None) -> None:
        """End a lease without a fate: its row waits again as if it had never been taken.

        ``until``: it failed through no fault of its host's, which rests until then; a page in the browser has its
        answer.
        """
        if until is not None:
            lease.host.rest_until = max(lease.host.rest_until, until)
        elif lease.subrequest is not None:
            lease.subrequest.refused(Reason.RENDER_PACE)
        host = self._taken_back(lease)
        if lease.kind.is_render:
            self._left_browser(host, now)
        else:
            self._start_clock(lease, now)

    def postpone(self, lease: Lease, now: float, until: float) -> None:
        """End a lease that sent nothing, since the worker must stop or let go of its host; it is tried again.

        Its address may be asked for again ``until`` then.
        """
        host = self._taken_back(lease, ask_again=True)
        work = host.waiting_urls > 0 or not lease.stored
        self.workbench.release(host, now, max(now, until), work=work, ip_free=until)

    def refused(self, lease: Lease, now: float, until: float, *, gives_way: bool) -> None:
        """End a lease that sent nothing, since another worker has the turn at its address ``until`` then at least.

        ``gives_way``: only the host's domain waits, and others of ours at that address go on.
        """
        self.workbench.refused(self._taken_back(lease, ask_again=True), now, until, gives_way=gives_way)

    def _taken_back(self, lease: Lease, *, ask_again: bool = False) -> Host:
        host = self._ended(lease)
        if lease.subrequest is not None and ask_again:
            self.subrequests.ask_again(lease.subrequest)
        if lease.stored:
            host.taken.discard(lease.row.arrival)
            self.hosts.waits(host, 1)
        return host

    # --- hosts that are held, given up or at rest -------------------------------------------------

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
            if not host.state and host.stage == Stage.WAITING and suspensions.pause_of(host.name) is not None:
                self.hosts.hold(host, HostState.PAUSED)
                self.workbench.wait(host, host.next_free, work=False)

    def only_rests(self, now: float, patience_seconds: float) -> bool:
        """Whether nothing can be fetched for ``patience_seconds`` because every host with work rests for longer."""
        if self.state.leased:
            return False
        wake = self.wake_at()
        if wake is not None and wake <= now + patience_seconds:
            return False
        counts, in_memory = self.hosts.on_disk.counts, self.workbench.hosts.values()
        if counts.resting < counts.hosts:
            return False
        return all(
            not host.work or host.rests_until(now) > now + patience_seconds
            for host in in_memory
            if host.stage in (Stage.WAITING, Stage.IDLE)
        ) and not any(host.stage in _ABOUT_TO for host in in_memory)
