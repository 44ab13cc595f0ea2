"""Names on their way to an address: in turn, at the resolver's rate, none lost to a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crawlerproject.crawl.dispatch import DnsLookups
from crawlerproject.errors import FetchError, StorageError
from crawlerproject.fetch.resolver import Resolved
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.reasons import Reason
from tests.crawl.sessions import run_of


class Resolver:
    """Answers at once, for as many names as there is room."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.known: set[str] = set()
        self.rooms = [100]
        self.error: FetchError | None = None

    def at_hand(self, name: str) -> Resolved | None:
        """Its address, if no question is needed."""
        if name in self.known and self.error is not None:
            raise self.error
        return Resolved(("192.0.2.1",), 2000.0) if name in self.known else None

    def room(self) -> int:
        """How many questions may be asked now."""
        return self.rooms.pop(0) if len(self.rooms) > 1 else self.rooms[0]

    async def resolve(self, name: str, within_seconds: float | None = None) -> Resolved:
        """Its address."""
        self.asked.append(name)
        if self.error is not None:
            raise self.error
        return Resolved(("192.0.2.1",), 2000.0)


class Frontier:
    """Gives a lease to each host but those in ``busy``."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, float]] = []
        self.busy: set[str] = set()
        self.away = False
        self.named_by: dict[str, str] = {}

        self.names = self.leasing = self  # both questions go to this one object

    def namer(self, host: Host) -> str:
        """The domain."""
        return self.named_by.get(host.name, "")

    def address_for(self, host: Host, addresses: tuple[str, ...], now: float) -> str:
        """The first."""
        return addresses[0]

    def looked_up(self, host: Host, address: str, until: float, now: float) -> Any:
        """Its lease."""
        if self.away:
            raise StorageError("away")
        self.found.append((host.name, address, until))
        return None if host.name in self.busy else f"lease of {host.name}"


class Looking:
    """Look-ups of a frontier, and what came of them."""

    def __init__(self) -> None:
        self.resolver, self.frontier, self.run = Resolver(), Frontier(), run_of(lambda: 1000.0)
        self.leases: list[tuple[Any, FetchError | None]] = []
        self.nothing = 0
        resolver: Any = self.resolver
        frontier: Any = self.frontier
        self.proxied: set[str] = set()
        self.lookups = DnsLookups(resolver, frontier, self.run, self._found, self._none, self.proxied.__contains__)

    def _found(self, lease: Any, error: FetchError | None) -> None:
        self.leases.append((lease, error))

    def _none(self) -> None:
        self.nothing += 1

    def look_up(self, *hosts: Host) -> None:
        """All of them, to the end."""

        async def run() -> None:
            for host in hosts:
                self.lookups.begin(host)
            while self.lookups:
                await asyncio.sleep(0.001)

        asyncio.run(run())


@pytest.fixture
def looking() -> Looking:
    """Nothing asked yet."""
    return Looking()


def host(name: str, address: str = "") -> Host:
    """One that has to be looked up; ``address``: it had one before."""
    made = Host(name, 5.0)
    made.address = address
    return made


def test_a_host_gets_its_lease_with_its_address(looking: Looking) -> None:
    """Until when the address holds is the frontier's to know."""
    looking.look_up(host("a.test:8080"))

    assert looking.resolver.asked == ["a.test"]
    assert looking.frontier.found == [("a.test:8080", "192.0.2.1", 2000.0)]
    assert looking.leases == [("lease of a.test:8080", None)]


def test_a_host_that_must_stand_in_line_has_none_yet(looking: Looking) -> None:
    """Its address serves another host at the moment."""
    looking.frontier.busy = {"a.test"}
    looking.look_up(host("a.test"))

    assert (looking.leases, looking.nothing) == ([], 1)


def test_a_name_that_does_not_resolve_has_its_turn(looking: Looking) -> None:
    """At no address: the failure is logged and judged like any other."""
    looking.resolver.error = FetchError(Reason.DNS_NOT_FOUND, "no such name")
    looking.look_up(host("dead.test"))

    assert looking.frontier.found == [("dead.test", "unresolved:dead.test", 0.0)]
    assert looking.leases == [("lease of dead.test", looking.resolver.error)]


def test_hosts_that_are_being_crawled_go_first(looking: Looking) -> None:
    """No number of new hosts keeps them waiting."""
    looking.look_up(host("new1.test"), host("new2.test"), host("old.test", "192.0.2.9"))

    assert looking.resolver.asked == ["old.test", "new1.test", "new2.test"]


def test_domains_that_name_hosts_take_turns(looking: Looking) -> None:
    """However many one has named; hosts that their own domains or seeds name go first."""
    many = [f"{number}.dead.test" for number in range(50)]
    looking.frontier.named_by = dict.fromkeys(many, "evil.test") | {"a.test": "good.test", "b.test": "good.test"}
    looking.resolver.rooms = [0, 1]
    looking.look_up(*map(host, [*many, "a.test", "b.test", "own.test"]))

    assert looking.resolver.asked[:6] == ["own.test", many[0], "a.test", many[1], "b.test", many[2]]
    assert sorted(looking.resolver.asked) == sorted([*many, "a.test", "b.test", "own.test"])


def test_questions_keep_the_resolvers_rate(looking: Looking) -> None:
    """As many as there is room for, then again."""
    looking.resolver.rooms = [2, 0, 1, 100]
    looking.look_up(*(host(f"h{number}.test") for number in range(5)))

    assert sorted(looking.resolver.asked) == [f"h{number}.test" for number in range(5)]
    assert looking.resolver.rooms == [100]


def test_an_answer_at_hand_waits_for_nothing(looking: Looking) -> None:
    """No question is asked, so no rate is kept."""
    looking.resolver.rooms, looking.resolver.known = [0], {"known.test"}
    looking.look_up(host("known.test"))

    assert [lease for lease, _ in looking.leases] == ["lease of known.test"]
    assert looking.resolver.asked == []


def test_a_failure_at_hand_is_the_hosts_turn_too(looking: Looking) -> None:
    """It is told at once, and asked of nobody."""
    looking.resolver.known, looking.resolver.error = {"dead.test"}, FetchError(Reason.DNS_NOT_FOUND, "no such name")
    looking.lookups.begin(host("dead.test"))

    assert looking.leases == [("lease of dead.test", looking.resolver.error)]
    assert looking.frontier.found == [("dead.test", "unresolved:dead.test", 0.0)]
    assert looking.resolver.asked == []


def test_a_literal_address_is_asked_without_its_brackets(looking: Looking) -> None:
    """As the resolver reads it."""
    looking.look_up(host("[2001:db8::1]:8080"))

    assert looking.resolver.asked == ["2001:db8::1"]


def test_a_store_that_is_away_pauses_the_crawl(looking: Looking) -> None:
    """The host is looked up again later."""
    looking.frontier.away = True
    looking.look_up(host("a.test"))

    assert looking.run.paused == "away"
    assert (looking.leases, looking.nothing) == ([], 0)


def test_at_the_end_nothing_is_asked_any_more(looking: Looking) -> None:
    """Neither those in line nor those under way."""

    async def run() -> None:
        looking.resolver.rooms = [1, 0]
        looking.lookups.begin(host("now.test"))
        looking.lookups.begin(host("later.test"))
        await asyncio.sleep(0)
        looking.lookups.cancel()
        await asyncio.sleep(0.02)
        assert not looking.lookups

    asyncio.run(run())
    assert looking.leases == []


@pytest.mark.parametrize("reason", [Reason.DNS_FAILED, Reason.DNS_NOT_FOUND, Reason.PRIVATE_ADDRESS])
def test_a_name_that_a_proxy_resolves_need_not_be_found_here(looking: Looking, reason: Reason) -> None:
    """Its host goes without an address; one that is refused here is refused all the same."""
    looking.proxied.add("a.test")
    looking.resolver.error = FetchError(reason)

    looking.look_up(host("a.test"))

    [(lease, error)] = looking.leases
    assert lease == "lease of a.test"
    refused = reason is Reason.PRIVATE_ADDRESS
    assert (error is not None) == refused
    [(_, address, until)] = looking.frontier.found
    assert (address, until) == (("unresolved:a.test", 0.0) if refused else ("behind-proxy:a.test", 1060.0))
