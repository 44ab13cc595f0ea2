"""The law of pace: over random schedules nobody is asked before their time, and nobody who is free is left waiting.

The test plays the web, the resolver, the clock, the browser, the commit loop and the crashes. It keeps its own account
of every answer, and knows of the frontier only what it hands out, when it wants to be woken, and where its hosts stand.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlerproject.fleet.local.local_mail import LocalHosts
from crawlerproject.frontier.frontier_state import UNSTORED_WAIT_SECONDS, unsure_until
from crawlerproject.frontier.hosts.host import Host, Stage
from crawlerproject.frontier.hosts.on_disk import place_of
from crawlerproject.frontier.learned.render_gains import RenderLimits
from crawlerproject.frontier.leasing import Lookup
from crawlerproject.frontier.other_workers import Message, RobotsGiven, RobotsWanted, unpack_message
from crawlerproject.frontier.passage import Lease, caused_externally
from crawlerproject.frontier.politeness import HostPoliteness
from crawlerproject.frontier.subrequests import Subrequest
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.address_turns import LONGEST_APART_SECONDS
from crawlerproject.rules.robots.policy import MAX_REDIRECTS
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL
from crawlerproject.rules.url.refused_urls import Exclusion
from crawlerproject.rules.url.urls import host_name, parse
from crawlerproject.stores.crawl_folders import alone, shared_out
from crawlerproject.stores.protocols import IN_MEMORY, Changes, Due, QueuedPage
from tests.frontier.conftest import Bench, gives_way_until
from tests.stores.memory_store import MemoryStore

STEPS = 300
PAUSE, IP_PAUSE, ROBOTS_TTL = 5.0, 0.5, 86400.0  # the default preset, and the bench's
FLOOR = 20.0  # of hosts that ask for a longer pause
ROUNDING = 1e-6
CAPACITY = 4
HOSTS = [f"h{number}.example" for number in range(4)]
HOSTS += ["h0.example:8080", "h0.example:8081", "h1.example:8080", "p.example:1080", "p.example:2080"]
ADDRESSES = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
# A page that is in the browser all the time, of a host that is never asked.
ELSEWHERE = QueuedPage("page.example", parse("http://page.example/").key, "http://page.example/", 10, 1, 0, "", "")
FAILURES = [Reason.DISCONNECTED, Reason.CONNECT_REFUSED, Reason.FIRST_BYTE_TIMEOUT, Reason.TLS_FAILED]


class Account:
    """What was promised to whom, by the answers that they gave."""

    def __init__(self) -> None:
        self.free_at: dict[str, float] = {}
        self.ip_free_at: dict[str, float] = {}
        self.name_ended: dict[str, float] = {}  # the last answer of any port of a name
        self.name_free_at: dict[str, float] = {}  # by the rests that it asked for, and what the asked port's pace is
        self.floors: dict[str, tuple[float, float]] = {}  # by origin: seconds, and until when its robots.txt is good
        self.committed_floors: dict[str, tuple[float, float]] = {}
        self.in_flight: dict[str, tuple[Lease, str]] = {}  # by host

    def starts(self, lease: Lease, now: float) -> None:
        """A request goes out: the law."""
        host, ip = lease.host.name, lease.address
        name = host_name(host)
        assert name not in map(host_name, self.in_flight), f"{name} has a request in flight"
        assert ip not in {each for _, each in self.in_flight.values()}, f"{ip} has a request in flight"
        assert now >= self.free_at.get(host, 0.0) - ROUNDING, f"{host} was asked too soon"
        ended = self.name_ended.get(name, 0.0)
        own_pause = max(PAUSE, self.floor(host, now)) if ended else 0.0
        assert now >= ended + own_pause - ROUNDING, f"{host} was asked too soon after another port"
        assert now >= self.name_free_at.get(name, 0.0) - ROUNDING, f"{host} was asked too soon for its name"
        assert not ended or now >= ended + lease.delay_seconds - ROUNDING, f"{host} was asked before what is promised"
        assert now >= self.ip_free_at.get(ip, 0.0) - ROUNDING, f"{ip} was asked too soon"
        self.in_flight[host] = (lease, ip)

    def floor(self, host: str, now: float) -> float:
        """The longer of what its two robots.txt ask for."""
        both = (self.floors.get(f"{scheme}://{host}", (0.0, 0.0)) for scheme in ("http", "https"))
        return max(seconds if until > now else 0.0 for seconds, until in both)

    def ends(self, host: str, now: float, rest_seconds: float = 0.0) -> None:
        """Its answer ended, or the process that waited for it did; a rest that it asked for is its name's."""
        _, ip = self.in_flight.pop(host)
        name = host_name(host)
        self.free_at[host] = now + max(PAUSE, self.floor(host, now), rest_seconds)
        self.name_ended[name] = now
        self.name_free_at[name] = max(self.name_free_at.get(name, 0.0), self.free_at[host])
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
        self.dns_lookups: list[Host] = []
        self.added: set[str] = set()
        self.strangers = set(self.chance.sample(HOSTS, 4))  # hosts that mostly other domains name
        self.heard_of: dict[str, float] = {}  # the last answer of a host, or for it, or the start of the process
        self.kind = self.chance.random() < 0.5  # most answers are good
        self.slow: set[str] = set()  # hosts that ever asked for a longer pause
        self.draining = False
        self.shown: list[Lease] = []  # pages in the browser
        self.wanted: list[Subrequest] = []  # by these, and neither granted nor refused
        self.embedded = 0  # sub-requests that were sent
        self.open_browser()

    def step(self) -> None:
        """One thing happens; then the engine asks for what it may have."""
        acts: list[Callable[[], None]] = [self.add, self.somehow, self.somehow, self.somehow, self.wait, self.wait]
        acts += [self.commit, self.move, self.resolve, self.resolve, self.subrequest, self.subrequest]
        if self.chance.random() < 0.3:
            acts.append(self.shown_ends)
        if self.chance.random() < 0.03:
            acts = [self.restart, self.exclude]
        self.chance.choice(acts)()
        self.pump()

    def open_browser(self) -> None:
        """Some pages are to be rendered, up to three at work at once."""
        renders = self.bench.frontier.renders
        renders.mode, renders.closed, renders._limits = "always", "", RenderLimits("always", 3)

    def subrequest(self) -> None:
        """A page in the browser asks for a file of some host: its own, another's, several at one address."""
        now = self.bench.now
        page = self.chance.choice(self.shown).row if self.shown else ELSEWHERE
        met = [host.name for host in self.bench.frontier.workbench.hosts.values() if host.robots_until("http") > now]
        name = self.chance.choice([self.chance.choice(HOSTS), *met, *met])
        address = parse(f"{self.chance.choice(('http', 'http', 'https'))}://{name}/{self.chance.randrange(99)}.js")
        until = now + self.chance.choice((1.0, 10.0, 60.0, 5000.0))
        made = Subrequest(
            address,
            page,
            until,
            name == page.host,
            {},
            "",
            10.0,
            refused=lambda _: self.wanted.remove(made),
            granted=lambda: self.wanted.remove(made),
            answered=lambda _: None,
        )
        self.wanted.append(made)
        if self.bench.frontier.subrequests.ask(made, now) is not None:
            self.wanted.remove(made)

    def shown_ends(self) -> None:
        """A page leaves the browser; what it still wanted is of no use any more."""
        if not self.shown:
            if self.wanted:
                self.bench.frontier.subrequests.withdraw(self.wanted.pop(self.chance.randrange(len(self.wanted))))
            return
        lease = self.shown.pop(self.chance.randrange(len(self.shown)))
        for made in [made for made in self.wanted if made.page is lease.row]:
            self.bench.frontier.subrequests.withdraw(made)
            self.wanted.remove(made)
        self.bench.frontier.finish_render(lease, self.bench.now, again=self.chance.random() < 0.1)

    def take(self, lease: Lease) -> None:
        """A lease was handed out: a page for the browser, or a request."""
        if lease.row.kind.is_render:
            self.shown.append(lease)
            return
        if lease.subrequest is not None:
            lease.subrequest.granted()
            self.embedded += 1
        self.account.starts(lease, self.bench.now)

    def add(self) -> None:
        """A page with links, to some of the hosts."""
        number = len(self.added)
        urls = [
            f"{self.chance.choice(('http', 'http', 'https'))}://{self.chance.choice(HOSTS)}/{number + n}"
            for n in range(3)
        ]
        strange = [url for url in urls if parse(url).host in self.strangers and self.chance.random() < 0.8]
        self.bench.add(*strange, flags=FLAG_EXTERNAL)
        self.bench.add(*(url for url in urls if url not in strange))
        self.added.update(urls)

    def somehow(self) -> None:
        """An answer, in a kind web mostly a good one."""
        self.answer(kindly=self.kind and self.chance.random() < 0.8)

    def answer(self, *, kindly: bool = False) -> None:
        """One of the requests in flight ends, somehow."""
        if not self.account.in_flight:
            return
        name = self.chance.choice(sorted(self.account.in_flight))
        lease, _ = self.account.in_flight[name]
        outcome = 200 if kindly else self.chance.choice((200, 200, 200, 200, 404, 302, 500, 429, 503, None, None))
        rest = self.chance.choice((0.0, 30.0, 4000.0)) if outcome in (429, 503) else 0.0
        body, more = b"", dict[str, Any]()
        if lease.row.kind.is_robots:
            body = self.robots(lease, outcome, more, kindly=kindly)
        if outcome is None:
            more["reason"] = self.chance.choice(FAILURES)
        if (
            not lease.row.kind.is_robots
            and lease.stored
            and outcome == 200
            and not self.draining
            and self.chance.random() < 0.7
        ):
            more["render"] = "a.warc.gz 0 1 0 0"
        strange = lease.subrequest.external if lease.subrequest else caused_externally(lease.row)
        spared = strange and lease.host.door.rested  # it has rested for strangers, and rests for no more of them
        self.account.ends(name, self.bench.now, 0.0 if spared else rest)
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
        """A commit: what came before it outlives a crash."""
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
        if self.dns_lookups:
            host = self.dns_lookups.pop(self.chance.randrange(len(self.dns_lookups)))
            until = self.bench.now + self.chance.choice((1.0, 60.0))
            address = self.bench.frontier.leasing.address_for(host, self.homes[host.name], self.bench.now)
            lease = self.bench.frontier.leasing.looked_up(host, address, until, self.bench.now)
            if lease is not None:
                self.take(lease)

    def exclude(self) -> None:
        """The operator changes NeverCrawl.txt: what waits at an excluded host is refused, however much it is."""
        excluded = self.chance.sample(HOSTS, self.chance.choice((0, 0, 1, 2)))
        self.bench.never.list = Exclusion.parse(excluded)[0]

    def restart(self) -> None:
        """The process ends, in good order or not, and another takes the store up."""
        clean = self.chance.random() < 0.5
        if clean:
            while self.account.in_flight:
                self.answer()
            while self.shown:
                self.shown_ends()
            self.commit()
        for name in list(self.account.in_flight):
            self.account.ends(name, self.bench.now)
        # An answer that was not committed counts as never given: it will be asked for again before any page.
        committed = self.account.committed_floors
        self.account.floors = {
            origin: kept for origin, kept in self.account.floors.items() if kept == committed.get(origin)
        }
        self.account.committed_floors = dict(self.account.floors)
        self.dns_lookups.clear()
        self.shown.clear()
        self.wanted.clear()
        self.bench.now += self.chance.choice((0.001, 1.0, 100.0))  # arrivals count microseconds
        started = self.bench.now
        self.bench = self.started(started, clean=clean)
        self.open_browser()
        self.heard_of = dict.fromkeys(HOSTS, started)

    def started(self, now: float, *, clean: bool) -> Bench:
        """Another process."""
        return Bench(self.store, now=now, clean=clean, **self.bounds)

    def pump(self) -> None:
        """The engine takes what it may have; then nobody who is free may be waiting."""
        frontier, now = self.bench.frontier, self.bench.now
        while len(self.account.in_flight) < CAPACITY:
            turn = frontier.leasing.next(now)
            if turn is None:
                self.no_free_host_waits()
                return
            if isinstance(turn, Lookup):
                self.dns_lookups.append(turn.host)
            else:
                self.take(turn)

    def no_free_host_waits(self) -> None:
        """With capacity to spare each host with work has its own reason to wait, and the wake-up is not too late."""
        now, wake = self.bench.now, self.bench.frontier.wake_at()
        busy = {ip for _, ip in self.account.in_flight.values()}
        for host in self.bench.frontier.workbench.hosts.values():
            if not host.work:
                assert host.waiting_urls <= 0 or host.state or host.stage == Stage.IN_FLIGHT, (
                    f"{host.name} is forgotten"
                )
                assert not host.subrequests, f"what a page wants of {host.name} is forgotten"
            elif host.stage == Stage.WAITING and host.ports is not None and host.ports.turn is not None:
                assert host.ports.turn.stage != Stage.WAITING, f"{host.name} waits for a turn that is over"
            elif host.stage == Stage.WAITING:
                assert host.next_free > now, f"{host.name} is free and waits"
                assert wake is not None
                assert wake <= host.next_free + ROUNDING
                self.reason_to_wait(host)
            elif host.stage == Stage.IN_LINE and host.address not in busy:
                # Its address rests, at most its pause; after a start all addresses rest as long. Or its own requests
                # kept others waiting there, to which it gives way.
                assert wake is not None
                begin_from = gives_way_until(self.bench.frontier.workbench.ips, host)
                assert begin_from <= now + LONGEST_APART_SECONDS + 0.01
                assert wake <= max(now + IP_PAUSE, begin_from) + 0.01

    def nothing_is_miscounted(self) -> None:
        """What waits is what the frontier says, and what is on disk is due at its moment and nowhere else."""
        frontier, store = self.bench.frontier, self.store
        known = {*frontier.workbench.hosts, *frontier.hosts.dirty}
        packed = {name: kept for name in HOSTS if name not in known and (kept := store.host(name)) is not None}
        elsewhere = [Host.unpack(name, kept) for name, kept in packed.items()]
        away = [host for host in (*elsewhere, *frontier.hosts.dirty.values()) if host.on_disk]
        assert {place_of(host) for host in away} == set(store.due(99, Due(IN_MEMORY, "~")))
        assert all(not host.rows or host.state or host.on_disk for host in elsewhere)
        assert frontier.hosts.on_disk.counts.hosts == len(away)
        assert frontier.hosts.on_disk.counts.rows == sum(len(store.head(host.name, 999)) for host in away)
        in_memory = sum(host.waiting_urls for host in frontier.workbench.hosts.values() if not host.state)
        assert frontier.hosts.waiting_urls == in_memory + frontier.hosts.on_disk.counts.rows

    def reason_to_wait(self, host: Host) -> None:
        """Its pause, a rest, another's robots.txt, the commit: no host waits for longer than one of these."""
        if (host.rendering or self.bench.frontier.renders.full) and not host.subrequests:
            return  # nothing but pages for the browser
        # A long pause whose reason another answer has taken back since is kept all the same.
        ports = [name for name in HOSTS if host_name(name) == host_name(host.name)]
        longest = FLOOR if self.slow & set(ports) else PAUSE
        chance = longest * 0.02 + 0.01  # what jitter adds, and the server's view of an end
        since = max(self.heard_of.get(name, 0.0) for name in ports)
        commit = self.bench.now + UNSTORED_WAIT_SECONDS  # when all its pages came back and were to be stored first
        rest = host.rest_until
        if host.ports is not None:  # after a start only the end of another port's rest is stored, not of its answer
            rest += longest
        door = (
            host.door.until if host.subrequests else 0.0
        )  # for what strangers' pages want, and render pages wait anyway
        latest = max(since + longest + chance, rest, host.held_until, commit, door)
        assert host.next_free <= latest + ROUNDING, f"{host.name} waits for no reason"

    def drain(self) -> None:
        """Every answer is good from now on: all that is queued is fetched, but for hosts that were given up."""
        self.draining = True
        self.bench.never.list = Exclusion.parse([])[0]
        for _ in range(6000):
            self.pump()
            if self.account.in_flight:
                self.answer(kindly=True)
            elif self.shown:
                self.shown_ends()
            elif self.wanted:
                self.bench.frontier.subrequests.withdraw(self.wanted.pop())
            elif self.dns_lookups:
                self.resolve()
            elif self.bench.frontier.hosts.waiting_urls <= 0:
                break
            else:
                self.bench.commit()
                wake = self.bench.frontier.wake_at()
                assert wake is not None, "URLs wait and nobody will be woken"
                self.bench.now = max(self.bench.now + 0.001, wake)
        self.bench.commit()
        assert self.bench.frontier.hosts.waiting_urls == 0
        packed = {name: self.store.host(name) for name in HOSTS}
        given_up = {name for name, kept in packed.items() if kept and Host.unpack(name, kept).state}
        assert set(self.store.hosts_with_work()) <= given_up


@settings(max_examples=100)
@given(st.integers(0, 2**32))
@example(7698477)  # a host that no own request had reached was taken for one that waits for its first look-up
def test_no_one_is_asked_too_soon_and_no_one_waits_in_vain(seed: int) -> None:
    """For any interleaving of answers, failures, restarts and changes of address."""
    schedule = Schedule(seed)
    for _ in range(STEPS):
        schedule.step()
    schedule.drain()
    assert not schedule.wanted


@pytest.mark.parametrize("hosts", [1, 2, 4])
@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_the_law_holds_when_most_hosts_wait_on_disk(hosts: int, seed: int) -> None:
    """For any interleaving as well; nothing is forgotten there, counted twice or asked sooner for it."""
    schedule = Schedule(seed, max_hosts_in_memory=hosts)
    for _ in range(STEPS // 2):
        schedule.step()
        schedule.nothing_is_miscounted()
    schedule.drain()


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_the_law_holds_when_all_hosts_are_of_one_domain(seed: int) -> None:
    """One at a time at the resolver or in line; one more waits in memory, the others come back."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("hosts.domain_turns.STANDING", "hosts.domain_turns.LINE", "hosts.ip_clocks.LINE"):
            patch.setattr(f"crawlerproject.frontier.{name}", 1)
        patch.setattr(Schedule, "reason_to_wait", lambda self, host: None)  # some come back after half a minute
        schedule = Schedule(seed, domain_of=lambda name: "example", max_hosts_in_memory=3)
        for _ in range(STEPS // 2):
            schedule.step()
        schedule.drain()


class OneOfSeveral(Schedule):
    """The history of a worker in a local fleet; the test plays the others, and delivers what is committed once."""

    PLAN = shared_out(alone(64), ["worker-1", "worker-2"])

    def __init__(self, seed: int) -> None:
        self.inbox: list[Message] = []
        self.written = self.given = self.came = 0
        super().__init__(seed, ownership=LocalHosts(self.PLAN, "worker-1"))

    def step(self) -> None:
        """As ever, or a message comes."""
        if self.inbox and self.chance.random() < 0.2:
            self.read()
        elif self.chance.random() < 0.02:
            self.want()
        super().step()

    def add(self) -> None:
        """Links to hosts of others are not this worker's matter."""
        number = len(self.added)
        own = [host for host in HOSTS if self.PLAN.holder(host) == "worker-1"]
        urls = [f"http://{self.chance.choice(own)}/{number + n}" for n in range(3)]
        self.bench.add(*urls)
        self.added.update(urls)

    def want(self) -> None:
        """The other worker was redirected to one of our hosts."""
        theirs, ours = ([host for host in HOSTS if self.PLAN.holder(host) == f"worker-{n}"] for n in (2, 1))
        origin, target = f"http://{self.chance.choice(theirs)}", f"http://{self.chance.choice(ours)}/robots-moved"
        self.inbox.append(RobotsWanted(origin, target, "R", origin + "/robots.txt"))

    def read(self) -> None:
        """A message takes effect."""
        message = self.inbox.pop(0)
        self.bench.frontier.read(message, self.bench.now)
        self.came += 1
        if isinstance(message, RobotsGiven):
            self.given += 1
            host = message.origin.partition("://")[2]
            self.heard_of[host] = self.bench.now
            if message.status is not None:
                self.account.floors[message.origin] = (0.0, self.bench.now + ROBOTS_TTL)

    def commit(self) -> None:
        """What is written to the other worker is in its hands now, and answered by it some time."""
        super().commit()
        mail = self.store.messages
        for box in mail.boxes():
            assert self.PLAN.workers[self.PLAN.holders[box.partition]] == "worker-2"
            for number, packed in mail.of(box, 0, 2**62, 2**62):
                self.store.apply(Changes(delivered=[(box, number)]))
                self.written += 1
                if isinstance(message := unpack_message(packed), RobotsWanted):
                    status = None if self.chance.random() < 0.3 and not self.draining else 200
                    reason = Reason.FETCHED if status else Reason.ROBOTS_UNREACHABLE
                    self.inbox.append(RobotsGiven(message.origin, status, b"", reason))

    def started(self, now: float, *, clean: bool) -> Bench:
        """Another process, with the same plan; what was not committed is gone."""
        unsure = unsure_until(self.store, now, clean_start=clean)
        self.bounds["ownership"] = LocalHosts(self.PLAN, "worker-1", unsure)
        return super().started(now, clean=clean)

    def pump(self) -> None:
        """No host of another worker is ever asked."""
        super().pump()
        assert all(self.PLAN.holder(host) == "worker-1" for host in self.account.in_flight)
        while self.draining and self.inbox:
            self.read()


def test_the_law_holds_for_a_worker_of_a_local_fleet() -> None:
    """It asks its own hosts alone, and no robots.txt that others fetch or want is forgotten."""
    written = given = came = 0
    for seed in range(25):
        schedule = OneOfSeveral(seed)
        for _ in range(STEPS):
            schedule.step()
        schedule.drain()
        assert not schedule.wanted
        written, given, came = written + schedule.written, given + schedule.given, came + schedule.came
    assert min(written - given, given, came - given) > 0  # most answers come while it drains


def test_the_schedules_have_pages_in_the_browser_and_closed_doors() -> None:
    """The laws above would hold for nothing if no page ever asked for a file, and no stranger ever waited."""
    sent = shown = waited = went_on = 0
    for seed in range(20):
        schedule = Schedule(seed)
        before: set[str] = set()
        for _ in range(STEPS):
            schedule.step()
            shown += len(schedule.shown)
            at_door = {host.name for host in schedule.bench.frontier.workbench.hosts.values() if host.at_door}
            waited, went_on, before = waited + len(at_door), went_on + len(before - at_door), at_door
        sent += schedule.embedded

    assert sent > 25
    assert shown > 25
    assert waited > 25
    assert went_on > 0


@pytest.mark.parametrize("fault", ["pause", "address", "ports"])
def test_the_law_can_be_broken(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frontier without its pauses, or without its address clocks, is found out: the test above can fail."""
    if fault == "pause":
        monkeypatch.setattr(HostPoliteness, "jittered", lambda self, delay, rng: delay - 0.1)
    elif fault == "ports":
        monkeypatch.setattr(
            "crawlerproject.frontier.hosts.names_and_domains.PortsOfNames.share", lambda self, host: None
        )
    else:
        monkeypatch.setattr(
            "crawlerproject.frontier.workbench.Workbench._line_up", lambda self, host, now: self._start(host, now)
        )

    with pytest.raises(AssertionError, match=r"too soon|in flight"):
        for seed in range(30):
            schedule = Schedule(seed)
            for _ in range(STEPS):
                schedule.step()
