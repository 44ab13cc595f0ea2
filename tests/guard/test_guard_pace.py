"""The pace guard: leases are checked, everyone else waits."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from crawlerproject.errors import OperatorError
from crawlerproject.frontier.politeness import HostPoliteness
from crawlerproject.guard.guard import PaceGuard, Refused
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import exchange_of, lease_in
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.politeness.pauses import PRESETS, RestLimits
from crawlerproject.settings import OURS
from tests.exchanges import under_lease


class Time:
    """A clock; sleeping moves it."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def clock(self) -> float:
        """Epoch seconds."""
        return self.now

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


class Least(random.Random):
    """Chance that adds nothing to a pause."""

    def random(self) -> float:
        """The least that it may be."""
        return 0.0


def guard(
    preset: str = "fixed5", ip_seconds: float | None = 0.5, rng: random.Random | None = None
) -> tuple[PaceGuard, Time]:
    """The guard over a clock that tests move."""
    time = Time()
    stats: Any = Counts()
    politeness = HostPoliteness(PRESETS[preset], RestLimits(60.0, 86_400.0, 86_400.0), max_failures=1_000)
    rng = rng or random.Random()
    clocks: dict[str, Any] = {"clock": time.clock, "stamps": time.clock, "sleep": time.sleep}
    return PaceGuard(politeness, stats, ip_seconds=ip_seconds, rng=rng, **clocks), time


def leased(host: str = "a.test", ip: str = "192.0.2.1", delay: float = 5.0) -> Request:
    """A request as the scheduler makes it."""
    lease = SimpleNamespace(row=SimpleNamespace(host=host), address=ip, delay_seconds=delay)
    return under_lease(Request(f"http://{host}/"), lease)


def enter(pace: PaceGuard, request: Request) -> Awaitable[None] | None:
    """What the download handler does before it sends a request; its Crawl-delay is in ``cb_kwargs``."""
    lease = lease_in(request)
    return pace.enter(request, lease) if lease else pace.wait(request, request.cb_kwargs.get("floor_seconds", 0.0))


def answer(pace: PaceGuard, request: Request, status: int = 200, **headers: str) -> None:
    """The request's answer comes."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    pace.leave(request, Response(request.url, status=status, headers=given))


def refusal(pace: PaceGuard, request: Request) -> Reason | None:
    """Why a leased request is refused now; None: it is not."""
    try:
        assert enter(pace, request) is None
    except Refused as refused:
        return refused.reason
    return None


def test_a_lease_in_time_passes() -> None:
    """At the promised pause after the answer's end."""
    pace, time = guard()
    for _ in range(3):
        request = leased()
        assert refusal(pace, request) is None
        answer(pace, request)
        time.now += 5.0
    assert pace.stats.values == {}  # type: ignore[union-attr]


def test_a_lease_too_soon_is_refused_and_counted() -> None:
    """The counter that must stay 0."""
    pace, time = guard()
    request = leased()
    enter(pace, request)
    answer(pace, request)
    time.now += 4.9
    assert refusal(pace, leased()) is Reason.PACE_GUARD
    assert pace.stats.values == {"pace/guard_refused": 1, "refused/pace-guard": 1}  # type: ignore[union-attr]


def test_a_lease_that_is_early_by_a_millisecond_waits() -> None:
    """What a timer may be early by is neither an error nor a pause that is too short."""
    pace, time = guard()
    request = leased()
    enter(pace, request)
    answer(pace, request)
    free_at = time.now + 5.0
    time.now = free_at - 0.0015
    waits = enter(pace, leased())
    assert waits is not None
    asyncio.run(cast("Any", waits))
    assert time.now == pytest.approx(free_at, abs=1e-6)
    assert pace.stats.values == {}  # type: ignore[union-attr]


def test_a_process_that_is_held_up_between_two_clocks_cuts_no_pause() -> None:
    """The guard's own clock is read last: by so much the pause is longer."""
    pace, time = guard()
    request = leased()
    enter(pace, request)
    exchange_of(request).wire = Wire(b"", ip="192.0.2.1", ended_at=time.now)
    ended_at, read = time.now, time.clock

    def held_up() -> float:
        now = read()
        time.now += 0.5
        return now

    pace.clock = pace.stamps = held_up
    answer(pace, request)
    pace.clock = pace.stamps = read
    time.now = ended_at + 4.9
    assert refusal(pace, leased()) is Reason.PACE_GUARD


def test_two_at_once_are_refused_at_a_host_and_at_an_address() -> None:
    """One in flight for each."""
    pace, _ = guard()
    assert refusal(pace, leased()) is None
    assert refusal(pace, leased(ip="192.0.2.2")) is Reason.PACE_GUARD
    assert refusal(pace, leased(host="b.test")) is Reason.PACE_GUARD
    assert refusal(pace, leased(host="b.test", ip="192.0.2.2")) is None


def test_ports_of_a_name_are_one_host() -> None:
    """In flight or in its pause: another port of the name is refused to a lease, whatever its address."""
    pace, time = guard()
    first = leased(host="a.test:81")
    assert refusal(pace, first) is None
    assert refusal(pace, leased(ip="192.0.2.2")) is Reason.PACE_GUARD
    answer(pace, first)
    time.now += 4.9
    assert refusal(pace, leased(host="a.test:82", ip="192.0.2.2")) is Reason.PACE_GUARD
    time.now += 0.2
    assert refusal(pace, leased(host="a.test:82", ip="192.0.2.2")) is None


def test_an_address_has_its_own_pause() -> None:
    """PACE_IP_SECONDS between two hosts of one address; None: addresses have no clock."""
    pace, time = guard()
    first = leased()
    enter(pace, first)
    answer(pace, first)
    time.now += 0.4
    assert refusal(pace, leased(host="b.test")) is Reason.PACE_GUARD
    time.now += 0.1
    assert refusal(pace, leased(host="b.test")) is None
    pace, _ = guard(ip_seconds=None)
    assert refusal(pace, leased()) is None
    assert refusal(pace, leased(host="b.test")) is None


def test_a_refused_lease_does_not_end_the_one_in_flight() -> None:
    """Its exception is nobody's answer."""
    pace, _ = guard()
    enter(pace, leased())
    second = leased()
    assert refusal(pace, second) is Reason.PACE_GUARD
    pace.leave(second, None)
    assert refusal(pace, leased()) is Reason.PACE_GUARD


def test_a_failure_ends_a_request() -> None:
    """The host's clock starts there as well."""
    pace, time = guard()
    request = leased()
    enter(pace, request)
    pace.leave(request, None)
    assert refusal(pace, leased()) is Reason.PACE_GUARD
    time.now += 5
    assert refusal(pace, leased()) is None


def test_the_clock_starts_at_the_wires_end() -> None:
    """Not when the event loop came round to tell us."""
    pace, time = guard()
    request = leased()
    enter(pace, request)
    exchange_of(request).wire = Wire(ip="192.0.2.1", ended_at=time.clock())
    time.now += 0.2  # the loop's lag
    answer(pace, request)
    time.now += 4.8
    assert refusal(pace, leased()) is None


def run_all(pace: PaceGuard, time: Time, requests: list[Request], seconds: float = 0.1) -> list[float]:
    """Send all at once outside a crawl, each answered ``seconds`` after it starts; the moments they started."""
    started: list[float] = []
    in_flight = 0

    async def one(request: Request) -> None:
        nonlocal in_flight
        pending = enter(pace, request)
        assert pending is not None
        await pending
        in_flight += 1
        assert in_flight == 1
        started.append(time.now)
        await time.sleep(seconds)
        in_flight -= 1
        answer(pace, request)

    async def together() -> None:
        await asyncio.gather(*map(one, requests))

    asyncio.run(together())
    return started


def test_requests_outside_a_crawl_wait_their_turn() -> None:
    """Twenty at once at one host: one in flight, five seconds between an answer's end and the next."""
    pace, time = guard()
    started = run_all(pace, time, [Request("http://a.test/") for _ in range(20)])
    assert len(started) == 20
    assert all(later - earlier >= 5.1 - 1e-6 for earlier, later in pairwise(started))
    assert started[-1] - started[0] < 19 * (5.1 * 1.1 + 0.1)


def test_ports_and_root_dots_share_a_clock_outside_a_crawl() -> None:
    """However the host is written, one request each five seconds."""
    pace, time = guard()
    hosts = ("a.test", "a.test.", "a.test:81", "A.test.:82", "a.test:443")
    started = run_all(pace, time, [Request(f"http://{host}/") for host in hosts])
    assert len(started) == 5
    assert all(later - earlier >= 5 for earlier, later in pairwise(started))


def test_a_crawl_delay_is_waited_for() -> None:
    """What robots.txt asks for holds in the shell too."""
    pace, time = guard()
    requests = [Request("http://a.test/", cb_kwargs={"floor_seconds": 60.0}) for _ in range(3)]
    started = run_all(pace, time, requests)
    assert all(later - earlier >= 60 for earlier, later in pairwise(started))


def test_slow_answers_lengthen_the_wait() -> None:
    """The adaptive delay: ten times the response time."""
    pace, time = guard("default")
    requests = [Request("http://a.test/", meta={"download_latency": 2.0}) for _ in range(3)]
    started = run_all(pace, time, requests)
    assert all(later - earlier >= 20 for earlier, later in pairwise(started))


def test_retry_after_rests_the_host() -> None:
    """429 and 503 hold outside a crawl as well."""
    pace, time = guard()
    request = Request("http://a.test/")
    asyncio.run(_waited(pace, request))
    ended = time.now
    answer(pace, request, 429, Retry_After="300")
    asyncio.run(_waited(pace, Request("http://a.test/2")))
    assert time.now >= ended + 300


async def _waited(pace: PaceGuard, request: Request) -> None:
    pending = enter(pace, request)
    assert pending is not None
    await pending


def test_hosts_on_one_address_wait_for_each_other() -> None:
    """Once an answer told the address."""
    pace, time = guard()
    for host in ("a.test", "b.test"):
        request = Request(f"http://{host}/")
        asyncio.run(_waited(pace, request))
        exchange_of(request).wire = Wire(ip="192.0.2.1", ended_at=time.clock(), ttfb_seconds=0.1)
        answer(pace, request)
    time.now += 4.8
    other = leased("c.test")
    assert refusal(pace, other) is None
    waits = enter(pace, leased("d.test"))
    assert inspect.iscoroutine(waits)
    waits.close()


def test_memory_is_bounded() -> None:
    """Hosts whose delay is over are forgotten, those in flight never."""
    pace, time = guard()
    stays = leased("stays.test", "192.0.2.255")
    enter(pace, stays)
    for n in range(20_000):
        request = leased(f"h{n}.test", f"ip{n}")
        enter(pace, request)
        answer(pace, request)
        time.now += 0.1
    assert len(pace.names) < 2500
    assert refusal(pace, leased("stays.test", "192.0.2.255")) is Reason.PACE_GUARD


def test_a_rest_is_kept_however_many_hosts_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the answer that asks for it is handled after its pause."""
    monkeypatch.setattr("crawlerproject.guard.guard._SWEEP_FROM", 1)
    pace, time = guard(ip_seconds=None)
    request = Request("http://own.test/")
    waits = enter(pace, request)
    assert waits is not None
    asyncio.run(cast("Any", waits))
    exchange_of(request).wire = Wire(ended_at=time.now)
    time.now += 30.0
    answer(pace, request, 503, Retry_After="300")
    _, wait = pace.outlook("own.test")
    assert wait is not None
    assert wait > 200.0


def test_settings_make_it() -> None:
    """PACE_* through from_crawler; a wrong one is a sentence."""
    given = {"PACE_PRESET": "mirror", "PACE_MIN_SECONDS": "0.5", "PACE_PER_IP": False}
    crawler = get_crawler(settings_dict=OURS | given)
    crawler._apply_settings()
    pace = PaceGuard.from_crawler(crawler)
    assert pace.politeness.preset == PRESETS["mirror"]._replace(min_seconds=0.5)
    assert pace.ip_seconds is None
    for wrong in ({"PACE_PRESET": "fast"}, {"PACE_MIN_SECONDS": "soon"}, {"BACKOFF_START_SECONDS": -1}):
        crawler = get_crawler(settings_dict=OURS | wrong)
        crawler._apply_settings()
        with pytest.raises(OperatorError):
            PaceGuard.from_crawler(crawler)


def test_a_lease_waits_behind_a_spiders_own_request() -> None:
    """They share the clock: the lease's promise counts from there, and nothing is refused."""
    pace, time = guard()
    own = Request("http://a.test/own")
    asyncio.run(_waited(pace, own))
    answer(pace, own)
    ended = time.now
    lease = leased()

    asyncio.run(_waited(pace, lease))

    assert time.now >= ended + 5.0
    assert pace.stats.values == {}  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [503, None])
def test_trouble_rests_the_host_for_the_back_off(status: int | None) -> None:
    """BACKOFF_START_SECONDS, doubled: as in a crawl, but a dead host is no worse than a busy one."""
    pace, time = guard()
    for longest in (66.0, 132.0):
        request = Request("http://a.test/")
        asyncio.run(_waited(pace, request))
        began = time.now
        pace.leave(request, None if status is None else Response(request.url, status=status))
        asyncio.run(_waited(pace, after := Request("http://a.test/2")))
        assert longest / 1.25 < time.now - began <= longest
        answer(pace, after)


def test_errors_that_ask_for_no_pause_cause_none() -> None:
    """Very many 500s in a row: no host is parked that a spider of its own asks."""
    pace, time = guard()
    for _ in range(20):
        request = Request("http://a.test/")
        asyncio.run(_waited(pace, request))
        began = time.now
        answer(pace, request, 500)
    assert time.now == began


def test_the_outlook_is_what_a_request_would_wait() -> None:
    """The pause, the floor of robots.txt included, and the rest of it; None while a request is in flight."""
    pace, time = guard()
    assert pace.outlook("a.test", 7.0) == (7.0, 0.0)
    request = Request("http://a.test/")
    asyncio.run(_waited(pace, request))
    assert pace.outlook("a.test") == (5.0, None)
    answer(pace, request)
    time.now += 2
    assert pace.outlook("a.test") == (5.0, 3.0)
    assert pace.outlook("a.test:81", 7.0) == (7.0, 5.0)
