"""The pauses of a worker, whose clock may be hastened, are longer than promised by as much as it can be."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.frontier.assembly import pause_stretch, politeness_of
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.politeness import HostPoliteness
from crawlerproject.reasons import Reason
from crawlerproject.runtime.clock import MOST_STEERING
from tests.crawl.sessions import settings_of
from tests.frontier.conftest import visit_of

NOW = 1_000_000.0
SHARED = "redis://127.0.0.1:6379/0"
WALL = visit_of(Reason.CHALLENGE, 403, 0.1)


@given(st.floats(0, 1e5), st.integers())
def test_jitter_only_lengthens(delay: float, seed: int) -> None:
    """Law: chance adds between nothing and a tenth."""
    jittered = politeness_of(settings_of(), max_failures=2).jittered(delay, random.Random(seed))
    assert delay <= jittered <= delay * 1.1 + 1e-9


@pytest.mark.parametrize("state_url", ["rocksdb:", SHARED])
def test_pauses_and_rests_are_stretched_in_a_fleet_alone(state_url: str) -> None:
    """The pause between pages, a rest that the host asks for, the rest after a failure, the closed breaker."""
    settings = settings_of(STATE_URL=state_url)
    politeness = politeness_of(settings, max_failures=2)
    longer = 1 + MOST_STEERING if state_url == SHARED else 1.0
    host, rng = Host("a.test", 2.0), random.Random(1)
    politeness.after(host, visit_of(Reason.FETCHED, 429, 0.1, retry_after_seconds=100.0), NOW, rng)

    assert pause_stretch(settings) == longer
    assert politeness.jittered(0.0, rng) == 0.0
    assert host.rest_until == pytest.approx(NOW + 100.0 * longer, abs=1e-6)
    assert politeness.jittered(2.0, random.Random(3)) == longer * politeness_of(settings_of(), max_failures=2).jittered(
        2.0, random.Random(3)
    )
    until = host.rest_until
    politeness.after(host, visit_of(Reason.FETCHED, 200, 0.1), NOW + 1, rng)
    assert host.rest_until == until
    for _ in range(2):
        politeness.after(host, visit_of(Reason.DISCONNECTED), NOW + 200, rng)
    rests = politeness.rests
    assert host.rest_until >= NOW + 200 + longer * rests.start_seconds


def walls_until_rest(politeness: HostPoliteness, host: Host, now: float = NOW) -> int:
    """How many walls in a row the host answers with until it rests for one."""
    for walls in range(1, 100):
        host.pages += 1
        consequence = politeness.after(host, WALL, now, random.Random(1))
        assert not consequence.again
        if host.rest_until > now:
            return walls
        assert (host.failures, consequence.opened) == (0, False)
    raise AssertionError("it never rests")


@pytest.mark.parametrize(("shown", "walls"), [(0, 1), (1, 6), (3, 6), (9, 10), (500, 21)])
def test_ours_a_wall_is_its_pages_until_many_come_in_a_row(shown: int, walls: int) -> None:
    """A walled login costs an open host nothing else; one that turns us away rests, at once if it has shown no page."""
    politeness, host = politeness_of(settings_of(), max_failures=5), Host("a.test", 2.0)
    host.pages = shown

    assert walls_until_rest(politeness, host) == walls
    assert host.failures == 1


def test_ours_a_good_answer_ends_a_row_of_walls() -> None:
    """However many there were in all; and a host that goes on after its rest is left alone as any that fails."""
    politeness, host = politeness_of(settings_of(), max_failures=5), Host("a.test", 2.0)
    host.pages, rng = 30, random.Random(1)
    for _ in range(10):
        for _ in range(20):
            host.pages += 1
            politeness.after(host, WALL, NOW, rng)
        politeness.after(host, visit_of(Reason.FETCHED, 200, 0.1), NOW, rng)
    assert (host.rest_until, host.failures) == (0.0, 0)

    walls_until_rest(politeness, host)
    later = [politeness.after(host, WALL, NOW + hours * 3600, rng).park for hours in range(1, 5)]
    assert later == [False, False, False, True]


@pytest.mark.parametrize("status", [429, 503])
def test_a_wall_that_asks_to_wait_is_waited_for(status: int) -> None:
    """RFC 6585 section 4, RFC 9110 15.6.4: the status counts, however many pages the host has shown."""
    politeness, host = politeness_of(settings_of(), max_failures=5), Host("a.test", 2.0)
    host.pages = 500
    politeness.after(host, visit_of(Reason.CHALLENGE, status, 0.1), NOW, random.Random(1))
    assert host.rest_until > NOW


def test_a_dead_host_sees_six_requests_whoever_names_its_pages() -> None:
    """Strangers' requests leave its breaker alone; five without an answer and one probe close its door for days."""
    politeness = politeness_of(settings_of(), max_failures=5)
    host, now, waits = Host("a.test", 5.0), NOW, []
    for _ in range(8):
        consequence = politeness.after(host, visit_of(Reason.DISCONNECTED, external=True), now, random.Random(1))
        waits.append(round((host.door.until - now) / 3600, 1))
        assert (consequence.door_until > 0) == (len(waits) > 5)
        now = host.door.until

    assert max(waits[:5]) < 1
    assert waits[5:] == [24.0, 48.0, 96.0]
    assert (host.failures, host.breaker_opened, host.rest_until) == (0, 0, 0.0)
