"""A host that keeps failing: parked, probed once, left alone; and what of it a restart remembers."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.reasons import Reason
from tests.frontier.conftest import Bench

HOUR = 3600.0
DAY = 86400.0


def filled(bench: Bench, pages: int = 12) -> Host:
    """A host past its robots.txt, with pages."""
    bench.add(*(f"http://a.example/{number}" for number in range(pages)))
    bench.through_robots()
    return bench.frontier.workbench.hosts["a.example"]


def fail(bench: Bench, times: int, status: int | None = 500, **more: Any) -> Host:
    """Let the next leases fail, each as soon as it may be had."""
    host: Host | None = None
    for _ in range(times):
        while (lease := bench.next()) is None:
            wake = bench.frontier.workbench.wake_at()
            assert wake is not None
            bench.now = wake
        bench.answer(lease, status, **more)
        bench.commit()
        host = lease.host
        bench.now = host.next_free
    assert host is not None
    return host


def test_failures_in_a_row_park_a_host(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """The second failure here (HOST_MAX_FAILURES is 2) opens the breaker for an hour, and the log says so."""
    filled(bench)
    with caplog.at_level(logging.INFO):
        began = bench.now
        host = fail(bench, 2)

    assert 0.9 * HOUR <= host.next_free - began <= 1.1 * HOUR + 60
    assert "a.example failed 2 times in a row (fetched): it rests until" in caplog.text
    bench.now = host.next_free - 1
    assert bench.next() is None


def test_one_good_answer_closes_the_breaker(bench: Bench) -> None:
    """The probe is one request; when it is answered the host goes on at its pace, and counts from nothing."""
    filled(bench)
    host = fail(bench, 2)
    bench.now = host.next_free
    probe = bench.next()
    assert probe is not None
    assert bench.next() is None

    bench.answer(probe)

    assert (host.failures, host.breaker_opened) == (0, 0)
    assert host.next_free - bench.now < 10


def test_a_failed_probe_parks_for_longer(bench: Bench) -> None:
    """An error page from the probe: the host is there, but rests for two hours."""
    filled(bench)
    host = fail(bench, 2)
    probed = bench.now = host.next_free

    fail(bench, 1)

    assert 1.8 * HOUR <= host.next_free - probed <= 2.2 * HOUR
    assert not host.state


def test_a_host_that_does_not_answer_its_probe_is_left_alone(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Two failures and one probe here; then nothing more, and the log says so."""
    filled(bench)
    host = fail(bench, 3, None, reason=Reason.DISCONNECTED)

    assert host.state
    assert re.search(r"a\.example is left alone until \S+ \S+ UTC or the next start: its probe failed", caplog.text)
    assert bench.frontier.hosts.waiting_urls == 0
    bench.now += DAY - 3 * HOUR
    assert not bench.frontier.hosts.probe_again(bench.now)
    assert bench.next() is None


@pytest.mark.parametrize("crash", [False, True])
def test_the_breaker_survives_a_restart(bench: Bench, again: Callable[..., Bench], crash: bool) -> None:
    """Another process waits for the same probe; when it fails, the host is left alone at once."""
    filled(bench)
    parked = fail(bench, 2, None, reason=Reason.DISCONNECTED).next_free

    later = again(bench.store, now=parked - 1800, clean=not crash)

    assert later.next() is None
    later.now = parked
    host = fail(later, 1, None, reason=Reason.DISCONNECTED)
    assert host.state


def test_a_host_left_alone_is_probed_once_by_the_next_start(bench: Bench, again: Callable[..., Bench]) -> None:
    """A new start asks again, once, and not before the rest is over."""
    filled(bench)
    free = fail(bench, 3, None, reason=Reason.DISCONNECTED).next_free

    later = again(bench.store, now=free + 1)

    host = fail(later, 1, None, reason=Reason.DISCONNECTED)
    assert host.state
    assert later.next() is None


def test_rate_limits_are_no_failures(bench: Bench) -> None:
    """A host that says when to come back is not parked for it."""
    filled(bench)

    host = fail(bench, 6, 429, retry_after_seconds=30.0)

    assert (host.failures, host.breaker_opened) == (0, 0)
    assert host.escalation == 6


def test_one_block_escalates_once_and_is_forgiven(bench: Bench, again: Callable[..., Bench]) -> None:
    """Back-off doubles with each block; half an hour of quiet answers starts it anew, a restart between them or not."""
    filled(bench)
    first = bench.now
    host = fail(bench, 1, 429)
    assert 54 <= host.rest_until - first <= 66
    second = bench.now
    fail(bench, 1, 429)
    assert 108 <= host.rest_until - second <= 132

    later = again(bench.store, now=host.rest_until + 1801)
    calm = fail(later, 1, 200)

    assert calm.escalation == 0


def test_what_is_our_fault_is_not_held_against_a_host(bench: Bench) -> None:
    """A proxy that fails, an error of ours: the host is neither parked nor given up."""
    filled(bench)

    host = fail(bench, 4, None, reason=Reason.PROXY_FAILED)

    assert (host.failures, host.breaker_opened) == (0, 0)


def test_robots_that_has_moved_to_a_dead_host_parks_both(bench: Bench) -> None:
    """The origin is not asked for its redirect again and again while the other host never answers."""
    bench.add("http://a.example/1")
    redirects = 0
    for _ in range(40):
        lease = bench.next()
        if lease is None:
            wake = bench.frontier.workbench.wake_at()
            if wake is None:
                break
            bench.now = max(bench.now + 1, wake)
        elif lease.host.name == "a.example":
            redirects += 1
            bench.answer(lease, 302, location="http://dead.example/robots.txt")
        else:
            bench.answer(lease, None, reason=Reason.CONNECT_REFUSED)
        bench.commit()

    assert redirects <= 6
    assert bench.frontier.workbench.hosts.get("a.example") is None or bench.frontier.hosts.waiting_urls == 0


def test_a_crash_is_remembered_over_a_clean_start(bench: Bench, again: Callable[..., Bench]) -> None:
    """What was asked just before a crash left no trace; a clean stop and start soon afterwards keeps the pause too."""
    filled(bench)
    bench.commit()
    asked = bench.next()
    assert asked is not None
    crashed = bench.now

    again(bench.store, now=crashed, clean=False)
    later = again(bench.store, now=crashed + 1, clean=True)
    later.now = crashed + 4.9

    assert later.next() is None
    later.now = crashed + 5
    assert later.next() is not None
