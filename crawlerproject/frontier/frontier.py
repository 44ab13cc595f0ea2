"""The frontier: what waits, whose turn it is, and what becomes of a page. No Scrapy, no clock, no network.

``intake`` takes URLs in, ``turns`` hands leases out, ``endings`` ends them (``robots_answers`` those of a
robots.txt), ``books`` keeps what they share until it is stored.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf

from crawlerproject.errors import StorageError
from crawlerproject.frontier.admission import Admission, LessImportant
from crawlerproject.frontier.completion import LeaseCompletion
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.gates import Gates
from crawlerproject.frontier.holds import Holds
from crawlerproject.frontier.hosts.domain_counts import DomainHostCounts
from crawlerproject.frontier.hosts.host import PAUSED, Host
from crawlerproject.frontier.hosts.on_disk import Counts, HostsOnDisk
from crawlerproject.frontier.hosts.paging import HostPaging
from crawlerproject.frontier.learned.renders import Renders
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.leasing import LeaseIssuer, Lookup, never
from crawlerproject.frontier.messages import Links, Message, RobotsWanted
from crawlerproject.frontier.ownership import HostOwnership, SoleOwner
from crawlerproject.frontier.politeness import FetchOutcome, HostPoliteness
from crawlerproject.frontier.robots.cache import RobotsCache
from crawlerproject.frontier.robots.responses import RobotsResponses
from crawlerproject.frontier.state import FrontierState, unsure_until
from crawlerproject.frontier.subrequests import Subrequests
from crawlerproject.frontier.workbench import Stage, Workbench
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.clock_set_back import Longest
from crawlerproject.rules.url.scope import bounded_domain, registered_domain
from crawlerproject.rules.url.urls import origin
from crawlerproject.stores.protocols import Changes, DueStore, FrontierStore, PageRecord

# Of hosts with work. At some 1 KB each with what their queues have at hand, the default of FRONTIER_MAX_HOSTS_IN_MEMORY
# is 100 MB, and at five seconds a page it is 20,000 pages a second: more than one process fetches.
MAX_HOSTS_IN_MEMORY = 100_000
# Stages of hosts that are about to be asked.
_ABOUT_TO = (Stage.LOOKED_UP, Stage.IN_LINE, Stage.BEHIND)


class Frontier:
    """Hosts, queues, leases and their ends. ``now`` is epoch seconds everywhere."""

    def __init__(
        self,
        store: FrontierStore,
        workbench: Workbench[Host],
        gates: Gates,
        politeness: HostPoliteness,
        robots: RobotsCache,
        *,
        rng: random.Random,
        started_at: float,
        clean_start: bool,
        renders: Renders | None = None,
        ownership: HostOwnership | None = None,
        less_important: LessImportant | None = None,
        max_hosts_in_memory: int = MAX_HOSTS_IN_MEMORY,
        longest: Longest | None = None,
        holds: Holds | None = None,
    ) -> None:
        """Without a ``territory`` this is the only process of its crawl; ``less_important`` is what a rank says.

        More hosts with work than ``max_hosts_in_memory`` wait on disk, if the store lists those that are due.
        ``longest``: how far ahead a stored moment may lie; None: what is stored is believed.
        """
        self.workbench = workbench
        on_disk = HostsOnDisk(store, max_hosts_in_memory) if isinstance(store, DueStore) else None
        self.renders = renders or Renders(store, workbench, rng)
        self.state = FrontierState(
            store,
            workbench,
            robots,
            start_delay_seconds=politeness.start_delay_seconds,
            max_ports=gates.max_ports_per_host,
            now=started_at,
            longest=longest,
            ownership=ownership or SoleOwner(unsure_until(store, started_at, clean_start=clean_start)),
            on_disk=on_disk,
            holds=holds,
        )
        self._paging = HostPaging(self.state, on_disk) if on_disk is not None else None
        self._started_at, self._clean_start = started_at, clean_start
        self.embeds = Subrequests(self.state, gates)
        # In a fleet a domain as partitions have it, so that its hosts all are one worker's.
        domain_of = bounded_domain if ownership is None else registered_domain
        self.domains = DomainHostCounts(store, gates.max_hosts_per_domain, domain_of)
        self._admission = Admission(self.state, gates, self.domains, less_important)
        robots_answers = self._robots_answers = RobotsResponses(self.state, gates, politeness, rng)
        self._issuer = LeaseIssuer(self.state, gates, self.renders, self.embeds, robots_answers.refused)
        self._endings = LeaseCompletion(self.state, politeness, robots_answers, self.renders, rng)

    def begin_loading(self) -> None:
        """Take up hosts that have work from an earlier run, as ``load_some`` is called."""
        if self._paging is not None:
            self._paging.begin_loading(look_at_all=not self._clean_start)
        else:
            self._admission.take_up(self.state.store.hosts_with_work())

    def load_some(self, count: int) -> bool:
        """Take up so many more of them; whether there may be others. StorageError: call again later."""
        return self._paging is not None and self._paging.load_some(count, self._started_at)

    @property
    def loading(self) -> bool:
        """Whether hosts of an earlier run are not taken up yet."""
        return self.state.met is not None

    def take_up(self, names: Iterable[str]) -> None:
        """Take up hosts with work whose partition has come to us."""
        self._admission.take_up(names)

    def let_go(self, mine: Callable[[str], bool]) -> list[str]:
        """Forget every host that is not ours any more; those that are still in flight, which must end first."""
        return self._admission.let_go(mine)

    def allowed(self, found: Iterable[DiscoveredUrl], now: float) -> list[DiscoveredUrl]:
        """What of these passes the gates that need no state of the host: what is worth sending to its worker."""
        return self._admission.allowed(found, now, elsewhere=True)

    def read(self, message: Message, now: float) -> None:
        """Take in what another worker wrote about hosts of ours."""
        self.state.now = now
        if isinstance(message, Links):
            self.add(message.found, now)
        elif isinstance(message, RobotsWanted):
            self._robots_answers.wanted(message, now)
        else:
            self._robots_answers.given(message, now)

    def add(self, found: Iterable[DiscoveredUrl], now: float) -> int:
        """Queue what is new and allowed, as one atomic change. Returns how many were queued."""
        self.state.now = now
        return self._admission.add(found, now)

    def again(self, found: Iterable[tuple[DiscoveredUrl, PageRecord]], now: float) -> int:
        """Queue known pages to be visited again, as one atomic change. Returns how many were queued."""
        return self._admission.again(found, now)

    def add_again(self, now: float) -> None:
        """Queue what was found while the store had no room."""
        self._admission.add_again(now)

    def next(self, now: float, enough: Callable[[], bool] = never) -> Lease | Lookup | None:
        """The next thing to do for a host that is free now; None when every host waits.

        ``enough`` is asked after each turn that led to nothing: True ends the search though hosts may be free.
        """
        self.state.now = now
        if self._paging is not None:
            self._paging.tend(now)
        return self._issuer.next(now, enough)

    def wake_at(self) -> float | None:
        """The next moment at which ``next`` may have something; None when nothing waits for time."""
        wake = self.workbench.wake_at()
        on_disk = self._paging.wake_at() if self._paging is not None else inf
        return wake if on_disk == inf else min(on_disk, inf if wake is None else wake)

    def address_for(self, host: Host, addresses: Sequence[str], now: float) -> str:
        """Which of the addresses that the resolver found the host is to be asked at, for ``looked_up``."""
        return self._issuer.address_for(host, addresses, now)

    def looked_up(self, host: Host, address: str, address_until: float, now: float) -> Lease | None:
        """The resolver found the host; a lease when its address is free at once."""
        return self._issuer.looked_up(host, address, address_until, now)

    def finish(self, lease: Lease, ending: FetchOutcome, record: PageRecord, body: bytes, now: float) -> None:
        """A lease's end: the page's fate is decided (or it goes back), the host's clock starts.

        ``body`` matters for a robots.txt only. The fate reaches the store with the next ``apply``.
        """
        self.state.now = now
        self._endings.finish(lease, ending, record, body, now)

    def finish_render(self, lease: Lease, now: float, *, again: bool) -> None:
        """A render's end; what it asked for has ended for itself, or will."""
        self._endings.finish_render(lease, now, again=again)

    def put_back(self, lease: Lease, now: float) -> None:
        """End a lease without a fate: its row waits again as if it had never been taken."""
        if lease.embed is not None:
            lease.embed.refused(Reason.RENDER_PACE)
        self._endings.put_back(lease, now)

    def defer(self, lease: Lease, now: float, until: float) -> None:
        """End a lease that sent nothing, since another worker asks its address; it is tried again ``until`` then."""
        if lease.embed is not None:
            self.embeds.ask_again(lease.embed)
        self._endings.defer(lease, now, until)

    def pause_hosts(self, paused: Mapping[str, str], now: float) -> None:
        """The names and keys that are not asked from now on, with what is said of each; others go on. StorageError."""
        self.state.now = now
        holds = self.state.holds
        before, holds.paused = holds.paused, dict(paused)
        try:
            for name in before.keys() - paused.keys():
                self.state.let_in(name)
        except StorageError:
            holds.paused = before
            raise
        for host in list(self.hosts()):
            if not host.given_up and host.stage == Stage.WAITING and holds.pause_of(host.name) is not None:
                self.state.hold(host, PAUSED)
                self.workbench.wait(host, host.next_free, work=False)

    def take_changes(self) -> Changes:
        """Everything decided since the last call, to be applied once its archive bytes are durable."""
        return self.state.take_changes()

    def keep_fact(self, name: str, packed: bytes) -> None:
        """Store a fact of the worker's with the next commit, together with all that was decided before."""
        self.state.changes.facts.append((name, packed))

    def apply(self, changes: Changes, facts: list[tuple[str, bytes]]) -> None:
        """Commit ``changes`` and ``facts`` atomically. On StorageError nothing has changed; call again later."""
        self.state.apply(changes, facts)

    def take_back(self, changes: Changes) -> None:
        """Put changes that could not be committed in front of those that came since."""
        self.state.take_back(changes)

    # --- looking on -----------------------------------------------------------------------------

    @property
    def waiting_urls(self) -> int:
        """Queued and not leased, of hosts not given up."""
        return self.state.waiting_urls

    @property
    def leased(self) -> int:
        """Leases that have not ended."""
        return self.state.leased

    @property
    def given_up_hosts(self) -> int:
        """Hosts left alone since this start."""
        return self.state.given_up_hosts

    @property
    def refused(self) -> Counter[str]:
        """Refusals by reason since the last ``take_refused``."""
        return self.state.refused

    def take_refused(self) -> Counter[str]:
        """The refusals since the last call, by reason."""
        refused, self.state.refused = self.state.refused, Counter()
        return refused

    def take_refused_seeds(self) -> list[tuple[str, Reason]]:
        """Seeds that met a gate since the last call, by URL; of very many the first."""
        refused, self.state.refused_seeds = self.state.refused_seeds, []
        return refused

    def content_signals(self, url: str) -> tuple[str, ...]:
        """Content-Signal and Content-Usage of the URL's robots.txt, as written; consulted for its lease, so at hand."""
        return self.state.robots.rules(origin(url)).content_signals

    def hosts(self) -> Iterator[Host]:
        """Every host in memory."""
        yield from self.workbench.hosts.values()

    @property
    def on_disk(self) -> Counts:
        """The hosts with work that are not in memory."""
        return self.state.on_disk.counts if self.state.on_disk is not None else Counts()

    def only_rests(self, now: float, patience_seconds: float) -> bool:
        """Whether nothing can be fetched for ``patience_seconds`` because every host with work rests for longer."""
        if self.leased:
            return False
        wake = self.wake_at()
        if wake is not None and wake <= now + patience_seconds:
            return False
        if self.on_disk.resting < self.on_disk.hosts:
            return False
        return all(
            not host.work or host.rests_until(now) > now + patience_seconds
            for host in self.hosts()
            if host.stage in (Stage.WAITING, Stage.IDLE)
        ) and not any(host.stage in _ABOUT_TO for host in self.hosts())
