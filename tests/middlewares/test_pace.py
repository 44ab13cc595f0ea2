"""The pace guard: leases are checked, everyone else waits."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from crawlerproject.errors import OperatorError
from crawlerproject.fetch.exchange import exchange_of
from crawlerproject.middlewares.leased import lease_in
from crawlerproject.middlewares.pace import PaceMiddleware
from crawlerproject.middlewares.refusal import Refused
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pace import PRESETS
from crawlerproject.wire import Wire
from tests.exchanges import told, under_lease

WALL = 1_700_000_000.0


class Time:
    """One moment for both clocks; sleeping moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        """Steady seconds."""
        return self.now

    def wall(self) -> float:
        """Epoch seconds."""
        return WALL + self.now

    async def sleep(self, seconds: float) -> None:
        """Whoever sleeps wakes at its time or later."""
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)


class Counts:
    """A stats collector of one method."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def inc_value(self, key: str) -> None:
        """Count one."""
        self.values[key] = self.values.get(key, 0) + 1


def guard(preset: str = "fixed5", **options: Any) -> tuple[PaceMiddleware, Time]:
    """The middleware over a clock that tests move."""
    time = Time()
    stats: Any = Counts()
    middleware = PaceMiddleware(
        PRESETS[preset],
        stats,
        clock=time.clock,
        wall=time.wall,
        sleep=time.sleep,
        rng=random.Random(1),
        **options,
    )
    return middleware, time


def leased(host: str = "a.test", ip: str = "192.0.2.1", delay: float = 5.0) -> Request:
    """A request as the scheduler makes it."""
    lease = SimpleNamespace(row=SimpleNamespace(host=host))
    return under_lease(Request(f"http://{host}/"), lease, address=ip, delay_seconds=delay)


def enter(middleware: PaceMiddleware, request: Request) -> Awaitable[None] | None:
    """What the download handler does before it sends a request."""
    return middleware.enter(request, lease_in(request))


def answer(middleware: PaceMiddleware, request: Request, status: int = 200, **headers: str) -> None:
    """The request's answer comes."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    middleware.leave(request, Response(request.url, status=status, headers=given))


def refusal(middleware: PaceMiddleware, request: Request) -> Reason | None:
    """Why a leased request is refused now; None: it is not."""
    try:
        assert enter(middleware, request) is None
    except Refused as refused:
        return refused.reason
    return None


def test_a_lease_in_time_passes() -> None:
    """At the promised pause after the answer's end."""
    middleware, time = guard()
    for _ in range(3):
        request = leased()
        assert refusal(middleware, request) is None
        answer(middleware, request)
        time.now += 5.0
    assert middleware.stats.values == {}  # type: ignore[union-attr]


def test_a_lease_too_soon_is_refused_and_counted() -> None:
    """The counter that must stay 0."""
    middleware, time = guard()
    request = leased()
    enter(middleware, request)
    answer(middleware, request)
    time.now += 4.9
    assert refusal(middleware, leased()) is Reason.PACE_GUARD
    assert middleware.stats.values == {"pace/guard_refused": 1, "refused/pace-guard": 1}  # type: ignore[union-attr]


def test_two_at_once_are_refused_at_a_host_and_at_an_address() -> None:
    """One in flight for each."""
    middleware, _ = guard()
    assert refusal(middleware, leased()) is None
    assert refusal(middleware, leased(ip="192.0.2.2")) is Reason.PACE_GUARD
    assert refusal(middleware, leased(host="b.test")) is Reason.PACE_GUARD
    assert refusal(middleware, leased(host="b.test", ip="192.0.2.2")) is None


def test_ports_of_a_name_are_one_host() -> None:
    """In flight or in its pause: another port of the name is refused to a lease, whatever its address."""
    middleware, time = guard()
    first = leased(host="a.test:81")
    assert refusal(middleware, first) is None
    assert refusal(middleware, leased(ip="192.0.2.2")) is Reason.PACE_GUARD
    answer(middleware, first)
    time.now += 4.9
    assert refusal(middleware, leased(host="a.test:82", ip="192.0.2.2")) is Reason.PACE_GUARD
    time.now += 0.2
    assert refusal(middleware, leased(host="a.test:82", ip="192.0.2.2")) is None


def test_an_address_has_its_own_pause() -> None:
    """PACE_IP_SECONDS between two hosts of one address; None: addresses have no clock."""
    middleware, time = guard()
    first = leased()
    enter(middleware, first)
    answer(middleware, first)
    time.now += 0.4
    assert refusal(middleware, leased(host="b.test")) is Reason.PACE_GUARD
    time.now += 0.1
    assert refusal(middleware, leased(host="b.test")) is None
    middleware, _ = guard(ip_seconds=None)
    assert refusal(middleware, leased()) is None
    assert refusal(middleware, leased(host="b.test")) is None


def test_a_refused_lease_does_not_end_the_one_in_flight() -> None:
    """Its exception is nobody's answer."""
    middleware, _ = guard()
    enter(middleware, leased())
    second = leased()
    assert refusal(middleware, second) is Reason.PACE_GUARD
    middleware.leave(second, None)
    assert refusal(middleware, leased()) is Reason.PACE_GUARD


def test_a_failure_ends_a_request() -> None:
    """The host's clock starts there as well."""
    middleware, time = guard()
    request = leased()
    enter(middleware, request)
    middleware.leave(request, None)
    assert refusal(middleware, leased()) is Reason.PACE_GUARD
    time.now += 5
    assert refusal(middleware, leased()) is None


def test_the_clock_starts_at_the_wires_end() -> None:
    """Not when the event loop came round to tell us."""
    middleware, time = guard()
    request = leased()
    enter(middleware, request)
    exchange_of(request).wire = Wire(ip="192.0.2.1", ended_at=time.wall())
    time.now += 0.2  # the loop's lag
    answer(middleware, request)
    time.now += 4.8
    assert refusal(middleware, leased()) is None


def run_all(middleware: PaceMiddleware, time: Time, requests: list[Request], seconds: float = 0.1) -> list[float]:
    """Send all at once outside a crawl, each answered ``seconds`` after it starts; the moments they started."""
    started: list[float] = []
    in_flight = 0

    async def one(request: Request) -> None:
        nonlocal in_flight
        pending = enter(middleware, request)
        assert pending is not None
        await pending
        in_flight += 1
        assert in_flight == 1
        started.append(time.now)
        await time.sleep(seconds)
        in_flight -= 1
        answer(middleware, request)

    async def together() -> None:
        await asyncio.gather(*map(one, requests))

    asyncio.run(together())
    return started


def test_requests_outside_a_crawl_wait_their_turn() -> None:
    """Twenty at once at one host: one in flight, five seconds between an answer's end and the next."""
    middleware, time = guard()
    started = run_all(middleware, time, [Request("http://a.test/") for _ in range(20)])
    assert len(started) == 20
    assert all(later - earlier >= 5.1 - 1e-6 for earlier, later in pairwise(started))
    assert started[-1] - started[0] < 19 * (5.1 * 1.1 + 0.1)


def test_ports_and_root_dots_share_a_clock_outside_a_crawl() -> None:
    """However the host is written, one request each five seconds."""
    middleware, time = guard()
    hosts = ("a.test", "a.test.", "a.test:81", "A.test.:82", "a.test:443")
    started = run_all(middleware, time, [Request(f"http://{host}/") for host in hosts])
    assert len(started) == 5
    assert all(later - earlier >= 5 for earlier, later in pairwise(started))


def test_a_crawl_delay_is_waited_for() -> None:
    """What robots.txt asks for holds in the shell too."""
    middleware, time = guard()
    requests = [told(Request("http://a.test/"), floor_seconds=60.0) for _ in range(3)]
    started = run_all(middleware, time, requests)
    assert all(later - earlier >= 60 for earlier, later in pairwise(started))


def test_slow_answers_lengthen_the_wait() -> None:
    """The adaptive delay: ten times the response time."""
    middleware, time = guard("default")
    requests = [Request("http://a.test/", meta={"download_latency": 2.0}) for _ in range(3)]
    started = run_all(middleware, time, requests)
    assert all(later - earlier >= 20 for earlier, later in pairwise(started))


def test_retry_after_rests_the_host() -> None:
    """429 and 503 hold outside a crawl as well."""
    middleware, time = guard()
    request = Request("http://a.test/")
    asyncio.run(_waited(middleware, request))
    ended = time.now
    answer(middleware, request, 429, Retry_After="300")
    asyncio.run(_waited(middleware, Request("http://a.test/2")))
    assert time.now >= ended + 300


async def _waited(middleware: PaceMiddleware, request: Request) -> None:
    pending = enter(middleware, request)
    assert pending is not None
    await pending


def test_hosts_on_one_address_wait_for_each_other() -> None:
    """Once an answer told the address."""
    middleware, time = guard()
    for host in ("a.test", "b.test"):
        request = Request(f"http://{host}/")
        asyncio.run(_waited(middleware, request))
        exchange_of(request).wire = Wire(ip="192.0.2.1", ended_at=time.wall(), ttfb_seconds=0.1)
        answer(middleware, request)
    time.now += 4.8
    other = leased("c.test")
    assert refusal(middleware, other) is None
    waits = enter(middleware, leased("d.test"))
    assert inspect.iscoroutine(waits)
    waits.close()


def test_what_is_no_web_address_passes() -> None:
    """data: and file: ask nobody."""
    middleware, _ = guard()
    assert middleware.process_request(Request("data:text/plain,x")) is None


def test_memory_is_bounded() -> None:
    """Hosts whose delay is over are forgotten, those in flight never."""
    middleware, time = guard()
    stays = leased("stays.test", "192.0.2.255")
    enter(middleware, stays)
    for n in range(20_000):
        request = leased(f"h{n}.test", f"ip{n}")
        enter(middleware, request)
        answer(middleware, request)
        time.now += 0.1
    assert len(middleware.hosts) < 2500
    assert refusal(middleware, leased("stays.test", "192.0.2.255")) is Reason.PACE_GUARD


def test_settings_make_it() -> None:
    """PACE_* through from_crawler; a wrong one is a sentence."""
    crawler = get_crawler(settings_dict={"PACE_PRESET": "mirror", "PACE_MIN_SECONDS": "0.5", "PACE_PER_IP": False})
    crawler._apply_settings()
    middleware = PaceMiddleware.from_crawler(crawler)
    assert middleware.preset == PRESETS["mirror"]._replace(min_seconds=0.5)
    assert middleware.ip_seconds is None
    for wrong in ({"PACE_PRESET": "fast"}, {"PACE_MIN_SECONDS": "soon"}, {"BACKOFF_START_SECONDS": -1}):
        crawler = get_crawler(settings_dict=wrong)
        crawler._apply_settings()
        with pytest.raises(OperatorError):
            PaceMiddleware.from_crawler(crawler)


def test_a_lease_waits_behind_a_spiders_own_request() -> None:
    """They share the clock: the lease's promise counts from there, and nothing is refused."""
    middleware, time = guard()
    own = Request("http://a.test/own")
    asyncio.run(_waited(middleware, own))
    answer(middleware, own)
    ended = time.now
    lease = leased()

    asyncio.run(_waited(middleware, lease))

    assert time.now >= ended + 5.0
    assert middleware.stats.values == {}  # type: ignore[union-attr]


def test_waiting_in_the_chain_takes_no_turn() -> None:
    """A middleware below may put another request in its place: the host must not stay taken."""
    middleware, _ = guard()

    async def early() -> None:
        pending = middleware.process_request(Request("http://a.test/"))
        assert pending is not None
        await pending

    asyncio.run(early())
    assert refusal(middleware, leased()) is None
