"""A frontier over a store in memory, with a clock in the test's hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.frontier.admission import LessImportant
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.frontier_state import FrontierState, HostOwnership, unsure_until
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.ip_clocks import IpClocks
from crawlerproject.frontier.hosts.names_and_domains import NamesToResolve
from crawlerproject.frontier.hosts.table import MAX_HOSTS_IN_MEMORY, HostTable, Start
from crawlerproject.frontier.learned.models import TrapModel
from crawlerproject.frontier.learned.render_gains import Renders
from crawlerproject.frontier.learned.revisits import Revisits
from crawlerproject.frontier.leasing import Lookup
from crawlerproject.frontier.passage import DiscoveredUrl, Lease, Visit, caused_externally
from crawlerproject.frontier.politeness import HostPoliteness
from crawlerproject.frontier.robots_cache import RobotsCache
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.clock_set_back import Longest
from crawlerproject.rules.politeness.pauses import PRESETS, RestLimits
from crawlerproject.rules.row_kinds import FLAG_ROBOTS, FLAG_SEED
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.refused_urls import AddressRules, Exclusion
from crawlerproject.rules.url.scope import Scope
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.operator_files.watched_lists import Listing
from crawlerproject.stores.protocols import Changes, FrontierStore, PageRecord, QueuedPage
from tests.stores.memory_store import MemoryStore


class Never:
    """An exclusion list that a test may change."""

    def __init__(self) -> None:
        self.list = Exclusion.parse([])[0]

    def current(self, now: float) -> Exclusion:
        """The list of this moment."""
        return self.list

    def listing(self, host_name: str, now: float) -> Listing | None:
        """On no line of a file."""
        line = self.list.line_of(host_name)
        return None if line is None else Listing(Path("never.txt"), line, host_name)


class Bench:
    """A frontier, its store and its clock; ``answer`` plays the web."""

    def __init__(
        self,
        store: FrontierStore,
        *,
        now: float = 1000.0,
        clean: bool = True,
        preset: str = "default",
        scope: Scope | None = None,
        less_important: LessImportant | None = None,
        load: bool = True,
        traps: TrapModel | None = None,
        max_urls: int = 50,
        longest: Longest | None = None,
        max_hosts_in_memory: int = MAX_HOSTS_IN_MEMORY,
        domain_of: Callable[[str], str] = bounded_domain,
        ownership: HostOwnership | None = None,
        recrawl: bool = False,
        robots: RobotsCache | None = None,
    ) -> None:
        self.store = store
        self.now = now
        first = store.fact("ran") is None
        store.apply(Changes(facts=[("ran", b"1")]))
        self.never = Never()
        self.politeness = HostPoliteness(PRESETS[preset], RestLimits(60.0, 86_400.0, 86_400.0), max_failures=2)
        names = NamesToResolve(store, ownership or HostOwnership(unsure_until(store, now, clean_start=clean)))
        workbench = Workbench(
            ip_pause_seconds=0.5,
            ips_free_from=0.0 if first else now + 0.5,
            domain_of=domain_of,
            payer_of=names.payer,
        )
        pause, most = self.politeness.start_delay_seconds, max_hosts_in_memory
        start = Start(now, clean, longest)
        hosts = HostTable(store, workbench, names, start, start_delay_seconds=pause, max_in_memory=most)
        rng = random.Random(1)
        self.frontier = Frontier(
            FrontierState(hosts, robots or RobotsCache(store, "TestBed", 86400.0)),
            UrlFilters(
                scope or Scope("any"),
                self.never,
                AddressRules(),
                traps,
                max_urls_per_host=max_urls,
                skip_extensions=["zip"],
            ),
            self.politeness,
            Renders(store, workbench, rng),
            Revisits(store, rng, near_bits=3, check_share=0.0),
            rng,
            less_important,
            recrawl=recrawl,
        )
        self.frontier.begin_loading()
        while load and self.frontier.load_some(100):
            pass

    def add(self, *urls: str, depth: int = 1, flags: int = 0, priority: int = 10) -> int:
        """Queue links of one page."""
        found = [DiscoveredUrl(parse(url), depth, "L", "http://via.example/", priority, flags) for url in urls]
        return self.frontier.add(found, self.now)

    def seed(self, *urls: str) -> int:
        """Queue seeds."""
        return self.add(*urls, depth=0, flags=FLAG_SEED, priority=1)

    def next(self, address: str = "192.0.2.1") -> Lease | None:
        """The next lease, names looked up on the way."""
        while True:
            turn = self.frontier.leasing.next(self.now)
            if not isinstance(turn, Lookup):
                return turn
            lease = self.frontier.leasing.looked_up(turn.host, f"{address}-{turn.host.name}", 1e12, self.now)
            if lease is not None:
                return lease

    def answer(self, lease: Lease, status: int | None = 200, body: bytes = b"", **more: Any) -> None:
        """End a lease as the web would."""
        reason = more.pop("reason", Reason.FETCHED if status else Reason.DISCONNECTED)
        more.setdefault("external", lease.subrequest.external if lease.subrequest else caused_externally(lease.row))
        ttfb_seconds = more.pop("ttfb_seconds", 0.1) if status else None
        visit = Visit(lease.row, reason, status, ttfb_seconds=ttfb_seconds, body=body, **more)
        record = PageRecord(lease.row.url, reason, status or 0, self.now)
        self.frontier.finish(lease, visit, record, self.now)

    def commit(self) -> None:
        """One commit."""
        self.frontier.state.apply(self.frontier.state.take_changes(), [])

    def through_robots(self, body: bytes = b"") -> None:
        """Answer the robots.txt that is due now, and wait until its host is free."""
        lease = self.next()
        assert lease is not None
        assert lease.row.kind.is_robots
        self.answer(lease, body=body)
        self.commit()
        self.now = lease.host.next_free


def visit_of(reason: Reason, status: int | None = None, ttfb_seconds: float | None = None, **more: Any) -> Visit:
    """What became of a request for a page of ``a.test``, or with ``robots`` for its robots.txt."""
    flags = FLAG_ROBOTS if more.pop("robots", False) else 0
    row = QueuedPage("a.test", b"", "http://a.test/", 0, 0, 0, "", "", flags=flags)
    return Visit(row, reason, status, ttfb_seconds=ttfb_seconds, **more)


def next_of(bench: Bench) -> Lease:
    """The next lease, waited for."""
    for _ in range(200):
        if (lease := bench.next()) is not None:
            return lease
        wake = bench.frontier.workbench.wake_at()
        assert wake is not None
        bench.now = max(bench.now, wake)
    raise AssertionError("nothing is leased")


def drain(bench: Bench, steps: int = 5_000) -> list[str]:
    """What is fetched until nothing waits, a commit each half second; robots.txt left out."""
    fetched: list[str] = []
    for _ in range(steps):
        lease = bench.next()
        if lease is not None:
            fetched.append(lease.row.url)
            lease.host.pages += not lease.row.kind.is_robots
            bench.answer(lease)
        elif bench.frontier.hosts.waiting_urls or bench.frontier.state.leased:
            bench.commit()
            bench.now += 0.5
        else:
            bench.commit()
            return [url for url in fetched if not url.endswith("/robots.txt")]
    raise AssertionError(f"{bench.frontier.hosts.waiting_urls} wait for ever")


@pytest.fixture
def bench() -> Bench:
    """A fresh frontier."""
    return Bench(MemoryStore())


@pytest.fixture
def again() -> Callable[..., Bench]:
    """Another process on the same store."""
    return Bench


def gives_way_until(clocks: IpClocks, host: Host) -> float:
    """From when on the host may be asked though its domain's requests kept others waiting at its address."""
    ip = clocks._clocks.get(host.address)
    line = ip.line if ip is not None else None
    if line is None or clocks._domain_of(host.name) not in line.long.used:
        return 0.0
    return line.long.begin_from
