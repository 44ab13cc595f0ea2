"""Names to addresses: hosts file, a real DNS server on loopback, caches and the address rules."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from crawlerproject.errors import FetchError, OperatorError
from crawlerproject.fetch.resolver import (
    MAX_TTL_SECONDS,
    MIN_TTL_SECONDS,
    HostsFile,
    Resolved,
    Resolver,
    known_addresses,
    parse_hosts,
    resolved_addresses,
    resolver_for,
)
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.refused_urls import AddressRules
from crawlerproject.settings import OURS
from tests.fetch.servers import run

ZONE: dict[tuple[str, str], Any] = {  # (name, type) -> records, or a response code
    ("plain.test.", "A"): ["300 A 93.184.216.34", "300 A 93.184.216.35"],
    ("short.test.", "A"): ["1 A 93.184.216.34"],
    ("long.test.", "A"): ["9999999 A 93.184.216.34"],
    ("alias.test.", "A"): ["90 CNAME plain.test.", "300 A 93.184.216.34"],
    ("six.test.", "AAAA"): ["300 AAAA 2606:2800:220:1::1"],
    ("empty.test.", "A"): [],
    ("inside.test.", "A"): ["300 A 10.0.0.1"],
    ("both.test.", "A"): ["300 A 10.0.0.1", "300 A 93.184.216.34"],
    ("servfail.test.", "A"): dns.rcode.SERVFAIL,
    ("refused.test.", "A"): dns.rcode.REFUSED,
    ("silent.test.", "A"): None,
}


class NameServer(asyncio.DatagramProtocol):
    """Answers from ZONE; NXDOMAIN for names it has not, silence for None."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, str]] = []
        self.deaf = 0  # to so many questions more
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """A question."""
        query = dns.message.from_wire(data)
        question = query.question[0]
        name, kind = question.name.to_text().lower(), dns.rdatatype.to_text(question.rdtype)
        self.questions.append((name, kind))
        if self.deaf:
            self.deaf -= 1
            return
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        records = ZONE.get((name, kind), [])
        if records is None:
            return
        if isinstance(records, dns.rcode.Rcode):
            answer.set_rcode(records)
        elif not any(known == name for known, _ in ZONE):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        else:
            for record in records:
                ttl, rtype, value = record.split()
                owner = "plain.test." if rtype == "A" and name == "alias.test." else name
                answer.answer.append(dns.rrset.from_text(owner, int(ttl), "IN", rtype, value))
        self.transport.sendto(answer.to_wire(), addr)


class Clock:
    """A clock the test moves."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def resolving(
    hosts: str = "/nonexistent/hosts", rules: AddressRules | None = None, **options: Any
) -> AsyncIterator[tuple[Resolver, NameServer, Clock]]:
    """A resolver that asks our own name server."""
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    address = "{}:{}".format(*transport.get_extra_info("sockname"))
    clock = Clock()
    given = {"timeout_seconds": 10.0, "max_per_second": 500.0} | options
    resolver = Resolver(hosts, [address], rules or AddressRules(), clock=clock, **given)
    try:
        yield resolver, server, clock
    finally:
        await resolver.close()
        transport.close()


async def reason_of(resolver: Resolver, name: str) -> Reason:
    """The reason a look-up fails for."""
    with pytest.raises(FetchError) as failed:
        await resolver.resolve(name)
    return failed.value.reason


@pytest.mark.parametrize(
    ("name", "addresses", "ttl_seconds"),
    [
        ("plain.test", ("93.184.216.34", "93.184.216.35"), 300),
        ("PLAIN.Test.", ("93.184.216.34", "93.184.216.35"), 300),
        ("short.test", ("93.184.216.34",), MIN_TTL_SECONDS),
        ("long.test", ("93.184.216.34",), MAX_TTL_SECONDS),
        ("alias.test", ("93.184.216.34",), 90),
        ("six.test", ("2606:2800:220:1::1",), 300),
        ("both.test", ("93.184.216.34",), 300),
        ("93.184.216.34", ("93.184.216.34",), MAX_TTL_SECONDS),
        ("2606:2800:220:1:0::1", ("2606:2800:220:1::1",), MAX_TTL_SECONDS),
        ("[2606:2800:220:1::1]", ("2606:2800:220:1::1",), MAX_TTL_SECONDS),
    ],
)
def test_names_that_resolve(name: str, addresses: tuple[str, ...], ttl_seconds: float) -> None:
    """Addresses that are allowed, and the TTL within its bounds."""

    async def main() -> None:
        async with resolving() as (resolver, _, clock):
            assert await resolver.resolve(name) == (addresses, clock.now + ttl_seconds)

    run(main())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.test", Reason.DNS_NOT_FOUND),
        ("empty.test", Reason.DNS_NOT_FOUND),
        ("", Reason.DNS_NOT_FOUND),
        ("a" * 300, Reason.DNS_NOT_FOUND),
        ("a..test", Reason.DNS_NOT_FOUND),
        ("x" * 64 + ".test", Reason.DNS_NOT_FOUND),
        ("b\xfccher.test", Reason.DNS_NOT_FOUND),
        ("servfail.test", Reason.DNS_FAILED),
        ("refused.test", Reason.DNS_FAILED),
        ("silent.test", Reason.DNS_FAILED),
        ("inside.test", Reason.PRIVATE_ADDRESS),
        ("127.0.0.1", Reason.PRIVATE_ADDRESS),
        ("::ffff:10.0.0.1", Reason.PRIVATE_ADDRESS),
    ],
)
def test_names_that_do_not(name: str, reason: Reason) -> None:
    """Each failure has its word."""

    async def main() -> None:
        async with resolving(timeout_seconds=0.6) as (resolver, _, _):
            assert await reason_of(resolver, name) == reason

    run(main())


def cached(resolver: Resolver, name: str) -> Resolved | None:
    """What is known without a question; None for a failure as well."""
    try:
        return resolver.at_hand(name)
    except FetchError:
        return None


def test_answers_are_kept_for_their_time() -> None:
    """No second question before the TTL is over, and one after it."""

    async def main() -> None:
        async with resolving() as (resolver, server, clock):
            assert cached(resolver, "plain.test") is None
            first = await resolver.resolve("plain.test")
            assert await resolver.resolve("plain.test") is first
            assert cached(resolver, "plain.test") is first
            clock.now += 299
            assert await resolver.resolve("plain.test") is first
            assert len(server.questions) == 1
            clock.now += 2
            assert cached(resolver, "plain.test") is None
            assert (await resolver.resolve("plain.test")).expires_at == clock.now + 300

    run(main())


@pytest.mark.parametrize(
    "inside",
    ["A 127.0.0.1", "A 10.0.0.1", "A 169.254.169.254", "AAAA ::1", "AAAA ::ffff:10.0.0.1", "AAAA fd00:ec2::254"],
)
def test_a_name_that_moves_inside_is_refused(monkeypatch: pytest.MonkeyPatch, inside: str) -> None:
    """DNS rebinding: public at first, inside when that is over (TTL 0: c-ares itself keeps answers for their TTL)."""
    kind = inside.split(maxsplit=1)[0]

    async def main() -> None:
        async with resolving() as (resolver, _, clock):
            monkeypatch.setitem(ZONE, ("turning.test.", "A"), ["0 A 93.184.216.34"])
            assert (await resolver.resolve("turning.test")).addresses == ("93.184.216.34",)
            monkeypatch.setitem(ZONE, ("turning.test.", "A"), [])
            monkeypatch.setitem(ZONE, ("turning.test.", kind), [f"0 {inside}"])
            clock.now += 61
            assert await reason_of(resolver, "turning.test") == Reason.PRIVATE_ADDRESS
            assert cached(resolver, "turning.test") is None

    run(main())


def test_a_server_that_is_busy_for_a_while_is_asked_again() -> None:
    """After quick answers c-ares waits for less than a second in all; the time that is set is ours to keep."""

    async def ask() -> tuple[str, ...]:
        async with resolving() as (resolver, server, _):
            for name in ("plain.test", "short.test", "long.test", "both.test"):
                await resolver.resolve(name)
            server.deaf = 3
            return (await resolver.resolve("alias.test")).addresses

    assert asyncio.run(ask()) == ("93.184.216.34",)


def test_the_rate_bounds_what_really_leaves() -> None:
    """Two servers, names that exist by AAAA alone, that fail, that are never answered: each datagram is counted."""
    rate, names = 20.0, [f"{name}.test" for name in ("six", "servfail", "silent", "plain")]
    names += [f"{number}.{name}" for number in range(12) for name in ("silent.test", "missing.test")]
    sent: list[float] = []

    class Counting(NameServer):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            sent.append(time.monotonic())
            if b"silent" not in data:
                super().datagram_received(data, addr)

    async def main() -> int:
        loop = asyncio.get_running_loop()
        servers = [await loop.create_datagram_endpoint(Counting, local_addr=("127.0.0.1", 0)) for _ in range(2)]
        addresses = ["{}:{}".format(*transport.get_extra_info("sockname")) for transport, _ in servers]
        resolver = Resolver("/none", addresses, AddressRules(), timeout_seconds=1.5, max_per_second=rate)
        found = await asyncio.gather(*map(resolver.resolve, names), return_exceptions=True)
        await resolver.close()
        for transport, _ in servers:
            transport.close()
        assert [str(getattr(answer, "reason", "")) for answer in found[:4]] == ["", "dns-failed", "dns-failed", ""]
        return int(resolver.counts()["questions"])

    counted = run(main())

    assert len(sent) == counted > len(names) * 1.5, "no question was repeated, so nothing is shown"
    late_seconds = 0.1  # two processes' turns may bring two datagrams closer together
    for first, last in combinations(range(len(sent)), 2):
        assert last - first + 1 <= rate * (1 + sent[last] - sent[first] + late_seconds) + 1


def test_failures_are_kept_for_a_short_time() -> None:
    """A missing name is not asked for again within the negative TTL."""

    async def main() -> None:
        async with resolving() as (resolver, server, clock):
            for _ in range(3):
                assert await reason_of(resolver, "missing.test") == Reason.DNS_NOT_FOUND
            assert server.questions == [("missing.test.", "A")]
            assert cached(resolver, "missing.test") is None
            clock.now += 61
            assert await reason_of(resolver, "missing.test") == Reason.DNS_NOT_FOUND

    run(main())


def test_every_question_is_counted_and_what_is_at_hand_costs_none(tmp_path: Path) -> None:
    """A and AAAA are two; a hosts file, a literal and what was answered before are none."""
    path = tmp_path / "hosts"
    path.write_text("93.184.216.34 listed.test\n")

    async def main() -> None:
        async with resolving(str(path), max_per_second=10) as (resolver, server, clock):
            assert resolver.room() == 10
            assert resolver.at_hand("listed.test")
            assert resolver.at_hand("93.184.216.34")
            assert not resolver.at_hand("plain.test")
            for name in ("listed.test", "93.184.216.34", "plain.test", "plain.test", "six.test"):
                await resolver.resolve(name)
            assert resolver.at_hand("PLAIN.test.")
            assert len(server.questions) == 3
            assert resolver.room() == 7
            clock.now += 0.25
            assert resolver.room() == 9

    run(main())


def test_concurrent_look_ups_share_a_question() -> None:
    """A hundred askers, one question; one asker's end does not disturb the others."""

    async def main() -> None:
        async with resolving() as (resolver, server, _):
            tasks = [asyncio.ensure_future(resolver.resolve("plain.test")) for _ in range(100)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(answers[0], asyncio.CancelledError)
            assert all(answer == answers[1] for answer in answers[1:])
            assert len(server.questions) == 1

    run(main())


def test_hosts_file_comes_first_and_is_read_again(tmp_path: Path) -> None:
    """A listed name asks nobody; a changed file counts within a second, a removed one as empty."""
    path = tmp_path / "hosts"
    path.write_text("127.1.2.3 plain.test own.test # comment\n")

    async def main() -> None:
        async with resolving(str(path), AddressRules(["127.0.0.0/8"])) as (resolver, server, clock):
            assert (await resolver.resolve("Own.test")).addresses == ("127.1.2.3",)
            assert (await resolver.resolve("plain.test")).addresses == ("127.1.2.3",)
            assert server.questions == []
            path.write_text("127.4.5.6 own.test\n")
            os.utime(path, (1, 1))
            clock.now += 2
            assert (await resolver.resolve("own.test")).addresses == ("127.4.5.6",)
            path.unlink()
            clock.now += 2
            assert (await resolver.resolve("plain.test")).addresses == ("93.184.216.34", "93.184.216.35")

    run(main())


def test_hosts_file_is_under_the_rules(tmp_path: Path) -> None:
    """A name listed as loopback is refused like any other."""
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n")

    async def main() -> None:
        async with resolving(str(path)) as (resolver, _, _):
            assert await reason_of(resolver, "localhost") == Reason.PRIVATE_ADDRESS

    run(main())


def test_hosts_lines() -> None:
    """IPv4 first, aliases, comments; what is no line of a hosts file is passed over."""
    text = "::1 a B.\n127.0.0.1 a a # c\n#127.0.0.9 x\nnonsense y\n127.0.0.2\n\n"
    assert parse_hosts(text) == {"a": ("127.0.0.1", "::1"), "b": ("::1",)}


def test_unreadable_hosts_file_stops_the_start(tmp_path: Path) -> None:
    """A directory in place of the file is the operator's to mend."""
    with pytest.raises(OperatorError, match="FETCH_HOSTS_FILE"):
        HostsFile(str(tmp_path))


def test_names_stay_while_the_hosts_file_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without a free descriptor has not lost the hosts that are listed."""
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 a\n")
    hosts = HostsFile(str(path))
    path.write_text("127.0.0.1 a b\n")

    with monkeypatch.context() as full:
        full.setattr("crawlerproject.fetch.resolver.open", _no_descriptor, raising=False)
        assert hosts.addresses("a", 0.0) == ("127.0.0.1",)
    assert hosts.addresses("b", 10.0) == ("127.0.0.1",)


def _no_descriptor(*_: object, **__: object) -> object:
    raise OSError(errno.EMFILE, "Too many open files")


def test_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest name goes first."""
    monkeypatch.setattr("crawlerproject.fetch.resolver.MAX_NAMES", 2)

    async def main() -> None:
        async with resolving() as (resolver, _, _):
            for name in ("plain.test", "six.test", "alias.test"):
                await resolver.resolve(name)
            assert cached(resolver, "plain.test") is None
            assert cached(resolver, "six.test")
            assert cached(resolver, "alias.test")

    run(main())


def test_one_resolver_a_crawler() -> None:
    """Scheduler and handler share one; a wrong network stops the start."""
    crawler = get_crawler(settings_dict=OURS)
    assert resolver_for(crawler) is resolver_for(crawler)
    assert resolver_for(get_crawler(settings_dict=OURS)) is not resolver_for(crawler)
    with pytest.raises(OperatorError, match="FETCH_ALLOW_NETWORKS"):
        resolver_for(get_crawler(settings_dict=OURS | {"FETCH_ALLOW_NETWORKS": ["ten"]}))


NAMES = ["a.test", "b.test", "[2001:db8::1]", "192.0.2.9", "nowhere.invalid"]


def settings(tmp_path: Path) -> Settings:
    """Two names that share two addresses; nothing listens where the DNS should be (RFC 863: discard)."""
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 a.test b.test\n192.0.2.2 a.test b.test\n")
    servers, rate = ["127.0.0.1:9"], 500.0
    return Settings({"FETCH_HOSTS_FILE": str(hosts), "FETCH_DNS_SERVERS": servers, "FETCH_DNS_MAX_PER_SECOND": rate})


def test_what_is_known_needs_no_question(tmp_path: Path) -> None:
    """Of several addresses the one with the fewest names, as the crawl chooses; a name that is unknown is left out."""
    assert known_addresses(NAMES, settings(tmp_path)) == {
        "a.test": "192.0.2.1",
        "b.test": "192.0.2.2",
        "[2001:db8::1]": "2001:db8::1",
        "192.0.2.9": "192.0.2.9",
    }


def test_a_dns_that_does_not_answer_is_no_error(tmp_path: Path) -> None:
    """What it would have known is unknown."""
    assert resolved_addresses(NAMES, settings(tmp_path)) == known_addresses(NAMES, settings(tmp_path))
