"""The adaptive delay in the chain: requests wait early, without taking the turn that the guard gives."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from crawlerproject.guard.guard import PaceGuard
from crawlerproject.middlewares.pace import PaceMiddleware
from tests.exchanges import under_lease
from tests.guard.test_guard_pace import Least, Time, guard

URL = "http://a.test/"


def asked(pace: PaceGuard) -> None:
    """A request of the host goes out and is answered."""
    request = Request(URL)

    async def exchange() -> None:
        entered = pace.wait(request)
        assert entered is not None
        await entered
        pace.leave(request, Response(URL))

    asyncio.run(exchange())


def waited_seconds(pace: PaceGuard, time: Time) -> float:
    """What a request of the host waits in the chain."""
    began = time.now

    async def wait() -> None:
        waits = PaceMiddleware(pace).process_request(Request(URL))
        assert waits is not None
        await waits

    asyncio.run(wait())
    return time.now - began


def test_a_request_waits_for_its_hosts_moment() -> None:
    """Five seconds after the answer before, with the preset's jitter."""
    pace, time = guard()
    assert waited_seconds(pace, time) == 0.0
    asked(pace)

    assert 5.0 <= waited_seconds(pace, time) <= 5.0 * 1.2


def test_waiting_takes_no_turn() -> None:
    """What a later middleware drops leaves the host free."""
    pace, time = guard(rng=Least())  # each wait draws its own jitter, and the second may draw more
    asked(pace)
    assert waited_seconds(pace, time) == pytest.approx(5.0)

    assert waited_seconds(pace, time) == 0.0
    assert pace.outlook("a.test")[1] == 0.0


def test_a_crawl_delay_that_is_known_stays_known() -> None:
    """Waiting early knows no robots.txt, and changes nothing about it."""
    pace, time = guard()
    request = Request(URL)

    async def exchange() -> None:
        entered = pace.wait(request, 60.0)
        assert entered is not None
        await entered
        pace.leave(request, Response(URL))

    asyncio.run(exchange())

    assert waited_seconds(pace, time) >= 60.0


def test_a_leased_request_does_not_wait() -> None:
    """It has waited in the workbench; no coroutine is made for it."""
    pace, _ = guard()
    lease: Any = SimpleNamespace(row=SimpleNamespace(host="a.test"))

    assert PaceMiddleware(pace).process_request(under_lease(Request(URL), lease)) is None
