"""Failures wait until it is known whose they are: the host's, or this machine's network's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crawlerproject.crawl.network_outage import Outage
from crawlerproject.fetch.pool import Endpoint
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.passage import Lease
from crawlerproject.items import LeaseResult
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.row_kinds import FLAG_HUB
from crawlerproject.stores.protocols import QueuedPage
from tests.crawl.sessions import run_of

WEEK = 604_800.0
_sleep = asyncio.sleep


class Line:
    """A network that can be cut, with a clock that sleeping moves; notes what becomes of each failure."""

    def __init__(self, longest_seconds: float = WEEK) -> None:
        self.now = 1000.0
        self.up = True
        self.tried: list[Endpoint] = []
        self.blamed: list[str] = []
        self.spared: list[str] = []
        self.at: dict[float, Callable[[], None]] = {}  # what happens when the clock comes to it
        self.run = run_of(lambda: self.now)
        pages: Any = self
        self.outage = Outage(self.run, pages, self.reaches, lambda: None, longest_seconds)

    async def reaches(self, endpoint: Endpoint) -> bool:
        """Whether a connection opens."""
        self.tried.append(endpoint)
        return self.up

    async def sleep(self, seconds: float) -> None:
        """In no time."""
        self.now += seconds
        for moment in [moment for moment in self.at if moment <= self.now]:
            self.at.pop(moment)()
        await _sleep(0)

    def finish(self, result: LeaseResult) -> None:
        """The host's."""
        self.blamed.append(result.lease.host.name)

    def requeue_blameless(self, result: LeaseResult) -> None:
        """Ours."""
        self.spared.append(result.lease.host.name)

    def lease(self, host: str, scheme: str = "http", flags: int = 0) -> Lease:
        """A page's."""
        url = f"{scheme}://{host}/"
        row = QueuedPage(host, url.encode(), url, 0, 1, 0, "", "", 0, flags, "")
        return Lease(row, Host(host, 1.0), f"192.0.2.{sum(host.encode()) % 250}", self.now, 1.0)

    def answer(self, *hosts: str, scheme: str = "http", sent: float | None = None) -> None:
        """Good answers, to requests of this moment unless ``sent`` is another."""
        for host in hosts:
            lease = self.lease(host, scheme)
            wire = Wire(ip=lease.address, port=80, status=200, started_at=self.now if sent is None else sent)
            assert not self.outage.withholds(
                LeaseResult(lease.row, Reason.FETCHED, wire.status or None, lease=lease, wire=wire)
            )

    def fail(self, host: str, reason: Reason = Reason.CONNECT_TIMEOUT, wire: Wire | None = None, **more: Any) -> bool:
        """Whether the failure waits, or is spared at once; ``wire``: of a request that was sent."""
        return self.outage.withholds(LeaseResult.failed(self.lease(host, **more), reason, wire=wire))

    async def settled(self) -> None:
        """When nothing is looked into any more."""
        while self.outage._task is not None:
            await _sleep(0)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    """One that works."""
    made = Line()
    monkeypatch.setattr(asyncio, "sleep", made.sleep)
    return made


def play(story: Awaitable[None]) -> None:
    """Run it in an event loop."""

    async def played() -> None:
        await story

    asyncio.run(played())


def test_the_next_answer_blames_the_host(line: Line) -> None:
    """An answer to a request that was sent after the failure; one that was on its way before proves nothing."""

    async def story() -> None:
        line.answer("a.test", "b.test")
        sent, line.now = line.now, line.now + 0.5
        assert line.fail("dead.test")
        line.answer("a.test", sent=sent)
        assert line.blamed == []
        line.answer("a.test")
        assert line.blamed == ["dead.test"]
        await line.settled()

    play(story())

    assert line.tried == []


def test_silence_is_looked_into(line: Line) -> None:
    """Nothing else answers for a second: a known address takes a connection, so the host is dead. Once a minute."""

    async def story() -> None:
        line.answer("a.test", "b.test")
        assert line.fail("dead.test")
        await line.settled()
        assert line.blamed == ["dead.test"]
        assert not line.fail("other.test")  # at once
        line.now += 60.0
        assert line.fail("third.test")
        await line.settled()

    play(story())

    assert len(line.tried) == 4  # two at a time
    assert line.blamed[1:] == ["third.test"]
    assert line.run.outage == ""


def test_a_cut_line_blames_no_host(line: Line) -> None:
    """The crawl waits and says so; what failed is spared, what fails later too; it goes on when a host is reached."""
    said = []

    def meanwhile() -> None:
        said.append((line.run.halted, line.outage.shut, line.outage.takes_probe(), line.outage.takes_probe()))
        assert line.fail("c.test")

    def back() -> None:
        line.up = True

    async def story() -> None:
        line.answer(*(f"{name}.test" for name in "abcdefghijk"))
        line.up = False
        assert line.fail("a.test")
        assert line.fail("b.test", Reason.DNS_FAILED)
        line.at = {line.now + 30.0: meanwhile, line.now + 8 * 3600.0: back}
        await line.settled()

    play(story())

    assert (line.spared, line.blamed) == (["a.test", "b.test", "c.test"], [])
    ((why, shut, first, second),) = said
    assert "is this machine's network up?" in why
    assert (shut, first, second) == (True, True, False)  # one turn goes with a try
    assert (line.run.outage, line.outage.shut) == ("", False)
    assert {line.tried.count(endpoint) for endpoint in line.tried} <= {
        *range(100, 140)
    }  # in turn: eight in as many hours
    assert 8 * 3600 <= line.now - 1000.0 <= 8 * 3600 + 70


def test_the_request_that_goes_with_a_try_ends_it_too(line: Line) -> None:
    """The known addresses are all dead by now, but the network is there."""

    async def story() -> None:
        line.answer("a.test", "b.test")
        line.up = False
        assert line.fail("c.test")
        line.at = {line.now + 300.0: lambda: line.answer("d.test")}
        await line.settled()

    play(story())

    assert line.run.outage == ""
    assert line.now < 1000.0 + 400.0


def test_plain_answers_prove_nothing_to_https(line: Line) -> None:
    """A captive portal answers for every host that is asked without TLS, and shows others its own certificate."""

    async def story() -> None:
        line.answer("a.test", "b.test", scheme="https")
        line.up = False
        assert line.fail("c.test", Reason.TLS_CERTIFICATE, scheme="https")
        line.answer("portal.test")
        assert line.blamed == []
        line.at = {line.now + 100.0: lambda: line.answer("portal.test"), line.now + 200.0: line.outage.close}
        await line.settled()

    play(story())

    assert (line.spared, line.blamed) == (["c.test"], [])
    assert {endpoint.tls for endpoint in line.tried} == {True}
    assert line.now > 1200.0


def test_one_site_is_compared_with_nothing(line: Line) -> None:
    """Its failure counts at once, as ever: a dead site cannot be told from a dead line."""

    async def story() -> None:
        line.answer("a.test")
        assert not line.fail("a.test")

    play(story())


def test_a_start_without_a_network(line: Line) -> None:
    """Five different hosts fail before any has answered. After a day they are taken to be dead."""
    ended = []

    async def story() -> None:
        assert [line.fail(f"{name}.test", Reason.DNS_FAILED) for name in "abcade"] == [False] * 5 + [True]
        line.at = {line.now + 86_000.0: lambda: ended.append(line.run.outage)}
        await line.settled()
        assert not line.fail("f.test", Reason.DNS_FAILED)

    play(story())

    assert ended != [""]
    assert 86_400.0 < line.now - 1000.0 < 86_600.0
    assert line.spared == ["e.test"]


def test_what_must_be_sent_once_is_not_spared(line: Line) -> None:
    """A hub's POST that broke off may have done its work; one that was never sent waits as any request does."""

    async def story() -> None:
        line.answer("a.test", "b.test")
        assert not line.fail("hub.test", Reason.DISCONNECTED, flags=FLAG_HUB)
        assert line.fail("hub.test", Reason.CONNECT_TIMEOUT, flags=FLAG_HUB)
        line.outage.close()

    play(story())

    assert line.spared == ["hub.test"]


def test_a_stop_in_between_leaves_no_request_without_a_line(line: Line) -> None:
    """What a server saw is ended, and so logged; what never left waits. Another worker's pages are not ended here."""

    async def story(end: Callable[[], None]) -> None:
        line.answer("a.test", "b.test")
        assert line.fail("unsent.test", Reason.CONNECT_TIMEOUT)
        assert line.fail("cut.test", Reason.DISCONNECTED, wire=Wire(started_at=line.now))
        end()

    play(story(line.outage.close))
    assert (line.blamed, line.spared) == (["cut.test"], ["unsent.test"])
    play(story(line.outage.forget))
    assert (line.blamed, line.spared) == (["cut.test"], ["unsent.test", "unsent.test", "cut.test"])


@pytest.mark.parametrize("longest_seconds", [WEEK, 0.0])
def test_limits_of_ours_are_not_a_hosts_fault(longest_seconds: float, caplog: pytest.LogCaptureFixture) -> None:
    """No file is left for a connection: the request waits, at once and always, and the log says so once a minute."""
    line = Line(longest_seconds)

    for _ in range(3):
        assert line.fail("a.test", Reason.OUR_LIMIT)

    assert (line.spared, line.blamed) == (["a.test"] * 3, [])
    assert caplog.text.count("LimitNOFILE") == 1


def test_it_can_be_switched_off() -> None:
    """NETWORK_MAX_WAIT_SECONDS=0: every failure is the host's, at once."""
    line = Line(longest_seconds=0.0)

    async def story() -> None:
        line.answer("a.test", "b.test")
        assert not line.fail("c.test")

    play(story())
