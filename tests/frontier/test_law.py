"""The law of pace: over random schedules nobody is asked before their time, and nobody who is free is left waiting.

The test plays the web, the resolver, the clock, the commit loop and the crashes. It keeps its own account of every
answer, and knows of the frontier only what it hands out, when it wants to be woken, and where its hosts stand.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject.frontier.conduct import Conduct
from crawlerproject.frontier.host import Host
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.shelf import place_of
from crawlerproject.frontier.turns import UNSTORED_WAIT_SECONDS, Lookup
from crawlerproject.frontier.workbench import Stage
from crawlerproject.reasons import Reason
from crawlerproject.rules.robots import MAX_REDIRECTS
from crawlerproject.stores.memory import MemoryStore
from crawlerproject.stores.protocols import IN_MEMORY, Due
from tests.frontier.conftest import Bench

PAUSE, IP_PAUSE, ROBOTS_TTL = 5.0, 0.5, 86400.0  # the default preset, and the bench's
FLOOR = 20.0  # of hosts that ask for a longer pause
ROUNDING = 1e-6
CAPACITY = 4
HOSTS = [f"h{number}.example" for number in range(6)]
ADDRESSES = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
FAILURES = [Reason.DISCONNECTED, Reason.CONNECT_REFUSED, Reason.FIRST_BYTE_TIMEOUT, Reason.TLS_FAILED]


class Account:
    """What was promised to whom, by the answers that they gave."""

    def __init__(self) -> None:
        self.free_at: dict[str, float] = {}
        self.ip_free_at: dict[str, float] = {}
        self.floors: dict[str, tuple[float, float]] = {}  # by origin: seconds, and until when its robots.txt is good
        self.committed_floors: dict[str, tuple[float, float]] = {}
        self.in_flight: dict[str, tuple[Lease, str]] = {}  # by host

    def starts(self, lease: Lease, now: float) -> None:
        """A request goes out: the law."""
        host, ip = lease.host.name, lease.address
        assert host not in self.in_flight, f"{host} has a request in flight"
        assert ip not in {each for _, each in self.in_flight.values()}, f"{ip} has a request in flight"
        assert now >= self.free_at.get(host, 0.0) - ROUNDING, f"{host} was asked too soon"
        assert now >= self.ip_free_at.get(ip, 0.0) - ROUNDING, f"{ip} was asked too soon"
        self.in_flight[host] = (lease, ip)

    def floor(self, host: str, now: float) -> float:
        """The longer of what its two robots.txt ask for."""
        both = (self.floors.get(f"{scheme}://{host}", (0.0, 0.0)) for scheme in ("http", "https"))
        return max(seconds if until > now else 0.0 for seconds, until in both)

    def ends(self, host: str, now: float, rest_seconds: float = 0.0) -> None:
        """Its answer ended, or the process that waited for it did."""
        _, ip = self.in_flight.pop(host)
        self.free_at[host] = now + max(PAUSE, self.floor(host, now), rest_seconds)
        self.ip_free_at[ip] = now + IP_PAUSE


class Schedule:
    """One random history."""

    def __init__(self, seed: int, **bounds: Any) -> None:
        self.chance = random.Random(seed)
        self.store = MemoryStore()
        self.bounds = bounds
        self.bench = Bench(self.store, **bounds)
        self.account = Account()
        self.homes = {host: [self.chance.choice(ADDRESSES)] for host in HOSTS}
        self.lookups: list[Host] = []
        self.added: set[str] = set()
        self.heard_of: dict[str, float] = {}  # the last answer of a host, or for it, or the start of the process
        self.slow: set[str] = set()  # hosts that ever asked for a longer pause

    def step(self) -> None:
        """One thing happens; then the engine asks for what it may have."""
        acts: list[Callable[[], None]] = [self.add, self.answer, self.answer, self.answer, self.wait, self.wait]
        acts += [self.commit, self.move, self.resolve, self.resolve]
        if self.chance.random() < 0.03:
            acts = [self.restart]
        self.chance.choice(acts)()
        self.pump()

    def add(self) -> None:
        """A page with links, to some of the hosts."""
        number = len(self.added)
        urls = [
            f"{self.chance.choice(('http', 'http', 'https'))}://{self.chance.choice(HOSTS)}/{number + n}"
            for n in range(3)
        ]
        self.bench.add(*urls)
        self.added.update(urls)

    def answer(self, *, kindly: bool = False) -> None:
        """One of the requests in flight ends, somehow."""
        if not self.account.in_flight:
            return
        name = self.chance.choice(sorted(self.account.in_flight))
        lease, _ = self.account.in_flight[name]
        outcome = 200 if kindly else self.chance.choice((200, 200, 200, 200, 404, 302, 500, 429, 503, None, None))
        rest = self.chance.choice((0.0, 30.0, 4000.0)) if outcome in (429, 503) else 0.0
        body, more = b"", dict[str, Any]()
        if lease.is_robots:
            body = self.robots(lease, outcome, more, kindly=kindly)
        if outcome is None:
            more["reason"] = self.chance.choice(FAILURES)
        self.account.ends(name, self.bench.now, rest)
        self.bench.answer(lease, outcome, body, retry_after_seconds=rest or None, **more)
        self.heard_of[name] = self.bench.now

    def robots(self, lease: Lease, outcome: int | None, more: dict[str, Any], *, kindly: bool) -> bytes:
        """The body of a robots.txt, taken into account."""
        floor = 0.0 if kindly or outcome != 200 else self.chance.choice((0.0, 0.0, FLOOR))
        if outcome == 302:
            more["location"] = f"http://{self.chance.choice(HOSTS)}/robots-moved"
        self.heard_of[lease.row.note.partition("://")[2]] = self.bench.now
        if outcome in (200, 404) or (outcome == 302 and len(lease.row.hops) > MAX_REDIRECTS):
            origin = lease.row.note
            self.account.floors[origin] = (floor, self.bench.now + ROBOTS_TTL)
            if floor:
                self.slow.add(origin.partition("://")[2])
        return b"User-agent: *\nCrawl-delay: %d\n" % floor if floor else b""

    def commit(self) -> None:
        """The beat: what was said until now is remembered over a crash."""
        self.bench.commit()
        self.account.committed_floors = dict(self.account.floors)

    def wait(self) -> None:
        """Time passes: a little, or until the frontier wants to be woken."""
        wake = self.bench.frontier.wake_at()
        if wake is not None and wake > self.bench.now and self.chance.random() < 0.7:
            self.bench.now = wake
        else:
            self.bench.now += self.chance.choice((0.01, 0.3, 1.5))

    def move(self) -> None:
        """A host gets another address, or several."""
        self.homes[self.chance.choice(HOSTS)] = self.chance.sample(ADDRESSES, self.chance.choice((1, 1, 2, 3)))

    def resolve(self) -> None:
        """The resolver answers for one host."""
        if self.lookups:
            host = self.lookups.pop(self.chance.randrange(len(self.lookups)))
            until = self.bench.now + self.chance.choice((1.0, 60.0))
            address = self.bench.frontier.address_for(host, self.homes[host.name], self.bench.now)
            lease = self.bench.frontier.looked_up(host, address, until, self.bench.now)
            if lease is not None:
                self.account.starts(lease, self.bench.now)

    def restart(self) -> None:
        """The process ends, in good order or not, and another takes the store up."""
        clean = self.chance.random() < 0.5
        if clean:
            while self.account.in_flight:
                self.answer()
            self.commit()
        for name in list(self.account.in_flight):
            self.account.ends(name, self.bench.now)
        # An answer that was not committed counts as never given: it will be asked for again before any page.
        committed = self.account.committed_floors
        self.account.floors = {
            origin: kept for origin, kept in self.account.floors.items() if kept == committed.get(origin)
        }
        self.account.committed_floors = dict(self.account.floors)
        self.lookups.clear()
        self.bench.now += self.chance.choice((0.001, 1.0, 100.0))  # arrivals count microseconds
        started = self.bench.now
        self.bench = Bench(self.store, now=started, clean=clean, **self.bounds)
        self.heard_of = dict.fromkeys(HOSTS, started)

    def pump(self) -> None:
        """The engine takes what it may have; then nobody who is free may be waiting."""
        frontier, now = self.bench.frontier, self.bench.now
        while len(self.account.in_flight) < CAPACITY:
            turn = frontier.next(now)
            if turn is None:
                self.no_free_host_waits()
                return
            if isinstance(turn, Lookup):
                self.lookups.append(turn.host)
            else:
                self.account.starts(turn, now)

    def no_free_host_waits(self) -> None:
        """With capacity to spare each host with work has its own reason to wait, and the wake-up is not too late."""
        now, wake = self.bench.now, self.bench.frontier.wake_at()
        busy = {ip for _, ip in self.account.in_flight.values()}
        for host in self.bench.frontier.hosts():
            if not host.work:
                assert host.waiting_urls <= 0 or host.given_up or host.stage == Stage.IN_FLIGHT, (
                    f"{host.name} is forgotten"
                )
            elif host.stage == Stage.WAITING:
                assert host.next_free > now, f"{host.name} is free and waits"
                assert wake is not None
                assert wake <= host.next_free + ROUNDING
                self.reason_to_wait(host)
            elif host.stage == Stage.IN_LINE and host.address not in busy:
                # Its address rests, at most its pause; after a start all addresses rest as long.
                assert wake is not None
                assert wake <= now + IP_PAUSE + 0.01

    def nothing_is_miscounted(self) -> None:
        """What waits is what the frontier says, and what is on disk is due at its moment and nowhere else."""
        frontier, store = self.bench.frontier, self.store
        known = {*frontier.workbench.hosts, *frontier.books.dirty}
        packed = {name: kept for name in HOSTS if name not in known and (kept := store.host(name)) is not None}
        elsewhere = [Host.unpack(name, kept) for name, kept in packed.items()]
        away = [host for host in elsewhere if host.on_disk]
        assert {place_of(host) for host in away} == set(store.due(99, Due(IN_MEMORY, "~")))
        assert all(not host.rows or host.given_up or host.on_disk for host in elsewhere)
        assert frontier.on_disk.hosts == len(away)
        assert frontier.on_disk.rows == sum(len(store.head(host.name, 999)) for host in away)
        in_memory = sum(host.waiting_urls for host in frontier.hosts() if not host.given_up)
        assert frontier.waiting_urls == in_memory + frontier.on_disk.rows

    def reason_to_wait(self, host: Host) -> None:
        """Its pause, a rest, another's robots.txt, the commit: no host waits for longer than one of these."""
        # A long pause whose reason another answer has taken back since is kept all the same.
        longest = FLOOR if host.name in self.slow else PAUSE
        chance = longest * 0.02 + 0.01  # what jitter adds, and the server's view of an end
        since = self.heard_of.get(host.name, 0.0)
        beat = self.bench.now + UNSTORED_WAIT_SECONDS  # when all its pages came back and were to be stored first
        latest = max(since + longest + chance, host.rest_until, host.held_until, beat)
        assert host.next_free <= latest + ROUNDING, f"{host.name} waits for no reason"

    def drain(self) -> None:
        """Every answer is good from now on: all that is queued is fetched, but for hosts that were given up."""
        for _ in range(6000):
            self.pump()
            if self.account.in_flight:
                self.answer(kindly=True)
            elif self.lookups:
                self.resolve()
            elif self.bench.frontier.waiting_urls <= 0:
                break
            else:
                self.bench.commit()
                wake = self.bench.frontier.wake_at()
                assert wake is not None, "URLs wait and nobody will be woken"
                self.bench.now = max(self.bench.now + 0.001, wake)
        self.bench.commit()
        assert self.bench.frontier.waiting_urls == 0
        packed = {name: self.store.host(name) for name in HOSTS}
        given_up = {name for name, kept in packed.items() if kept and Host.unpack(name, kept).given_up}
        assert set(self.store.hosts_with_work()) <= given_up


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_no_one_is_asked_too_soon_and_no_one_waits_in_vain(seed: int) -> None:
    """For any interleaving of answers, failures, restarts and changes of address."""
    schedule = Schedule(seed)
    for _ in range(150):
        schedule.step()
    schedule.drain()


@pytest.mark.parametrize("hosts", [1, 2, 4])
@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_the_law_holds_when_most_hosts_wait_on_disk(hosts: int, seed: int) -> None:
    """For any interleaving as well; nothing is forgotten there, counted twice or asked sooner for it."""
    schedule = Schedule(seed, max_hosts_in_memory=hosts)
    for _ in range(150):
        schedule.step()
        schedule.nothing_is_miscounted()
    schedule.drain()


@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_the_law_holds_when_all_hosts_are_of_one_domain(seed: int) -> None:
    """One at a time at the resolver or in line; one more waits in memory, the others come back."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("domains.STANDING", "domains.LINE", "workbench.LINE"):
            patch.setattr(f"crawlerproject.frontier.{name}", 1)
        patch.setattr(Schedule, "reason_to_wait", lambda self, host: None)  # some come back after half a minute
        schedule = Schedule(seed, domain_of=lambda name: "example", max_hosts_in_memory=3)
        for _ in range(150):
            schedule.step()
        schedule.drain()


@pytest.mark.parametrize("fault", ["pause", "address"])
def test_the_law_can_be_broken(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frontier without its pauses, or without its address clocks, is found out: the test above can fail."""
    if fault == "pause":
        monkeypatch.setattr(Conduct, "jittered", lambda self, delay, rng: delay - 0.1)
    else:
        monkeypatch.setattr(
            "crawlerproject.frontier.workbench.Workbench._line_up", lambda self, host, now: self._start(host)
        )

    with pytest.raises(AssertionError, match=r"too soon|in flight"):
        for seed in range(30):
            schedule = Schedule(seed)
            for _ in range(150):
                schedule.step()
