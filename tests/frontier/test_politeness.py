"""The pauses of a worker, whose clock may be hastened, are longer than promised by as much as it can be."""

from __future__ import annotations

import random

import pytest

from crawlerproject.frontier.assembly import pause_stretch, politeness_of
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.politeness import FetchOutcome
from crawlerproject.reasons import Reason
from crawlerproject.runtime.clock import MOST_STEERING
from tests.crawl.sessions import settings_of

NOW = 1_000_000.0
SHARED = "redis://127.0.0.1:6379/0"


@pytest.mark.parametrize("state_url", ["rocksdb:", SHARED])
def test_pauses_and_rests_are_stretched_in_a_fleet_alone(state_url: str) -> None:
    """The pause between pages, a rest that the host asks for, the rest after a failure, the closed breaker."""
    settings = settings_of(STATE_URL=state_url)
    politeness = politeness_of(settings, max_failures=2)
    longer = 1 + MOST_STEERING if state_url == SHARED else 1.0
    host, rng = Host("a.test", 2.0), random.Random(1)
    politeness.after(host, FetchOutcome(Reason.FETCHED, 429, 0.1, 100.0), NOW, rng)

    assert pause_stretch(settings) == longer
    assert politeness.jittered(0.0, rng) == 0.0
    assert host.rest_until == pytest.approx(NOW + 100.0 * longer, abs=1e-6)
    assert politeness.jittered(2.0, random.Random(3)) == longer * politeness_of(settings_of(), max_failures=2).jittered(
        2.0, random.Random(3)
    )
    until = host.rest_until
    politeness.after(host, FetchOutcome(Reason.FETCHED, 200, 0.1), NOW + 1, rng)
    assert host.rest_until == until
    for _ in range(2):
        politeness.after(host, FetchOutcome(Reason.DISCONNECTED, None, None), NOW + 200, rng)
    rests = politeness.rests
    assert host.rest_until >= NOW + 200 + longer * rests.start_seconds
