"""Pauses in a host's busy hours: longer there, as usual elsewhere, and only for hosts with much to ask."""

from __future__ import annotations

import pytest

from crawlerproject.frontier.politeness import QuietHours
from crawlerproject.rules.politeness.pauses import HostPaces
from crawlerproject.rules.politeness.quiet_hours import SLOWER
from crawlerproject.stores.protocols import Changes
from tests.frontier.conftest import Bench, next_of
from tests.stores.memory_store import MemoryStore

EVENING, MORNING = 17 * 3600.0, 4 * 3600.0  # of UTC; in Germany an hour later
MANY = 1_000  # pages of five seconds: more than an hour


class Quiet(Bench):
    """With quiet hours, and one host that has work."""

    def __init__(self, store: MemoryStore, host: str = "a.de", pages: int = MANY, now: float = EVENING) -> None:
        super().__init__(store, now=now, max_urls=10**6)
        self.hours = self.politeness.quiet_hours = QuietHours(store)
        self.add(*(f"http://{host}/{number}" for number in range(pages)))

    def pause(self, robots: bytes = b"", ttfb_seconds: float = 0.1) -> float:
        """Promised after the next page."""
        lease = next_of(self)
        if lease.row.kind.is_robots:
            self.answer(lease, body=robots)
            lease = next_of(self)
        self.answer(lease, ttfb_seconds=ttfb_seconds)
        return lease.host.delay_seconds


def test_a_host_is_slower_in_the_evening_of_its_country() -> None:
    """And at its usual pace in the morning: never faster."""
    assert Quiet(MemoryStore()).pause() == 5.0 * SLOWER
    assert Quiet(MemoryStore(), now=MORNING).pause() == 5.0
    assert Quiet(MemoryStore(), now=EVENING + 6 * 3600).pause() == 5.0


@pytest.mark.parametrize(
    ("host", "pages", "robots"),
    [("a.de", 100, b""), ("a.com", MANY, b""), ("a.de", MANY, b"User-agent: *\nCrawl-delay: 7")],
)
def test_who_is_left_at_the_usual_pace(host: str, pages: int, robots: bytes) -> None:
    """Little to ask, no country, and an owner's own word."""
    bench = Quiet(MemoryStore(), host, pages)
    assert bench.pause(robots) == (7.0 if robots else 5.0)
    assert bench.hours.slowed == set()


def test_an_operators_line_for_a_host_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """HOST_PACE_FILE says what the pause is."""
    bench = Quiet(MemoryStore())
    paces, _ = HostPaces.parse(["a.de delay_seconds=4"])
    monkeypatch.setattr(bench.politeness, "_preset", lambda host: paces.preset(host.name, bench.politeness.preset))
    assert bench.pause() == 4.0


def test_own_hours_are_learned_and_outlive_a_restart() -> None:
    """A site of Germany whose visitors come in the morning is asked slowly then, and no more in the evening."""
    store = MemoryStore()
    bench = Quiet(store, now=0.0)
    next_hour = 0.0
    for hour in range(24):
        for minute in range(0, 60, 8):
            bench.now = next_hour = max(bench.now, hour * 3600.0 + minute * 60)
            bench.pause(ttfb_seconds=0.3 if 6 <= hour < 12 else 0.1)
    assert next_hour < 86_400
    facts = bench.hours.facts()
    store.apply(Changes(facts=facts))
    bench.hours.stored(Changes(), facts)

    hours = QuietHours(store)
    host = bench.frontier.hosts.find("a.de")
    assert hours.paced(host, 5.0, 86_400 + 8 * 3600.0) == 5.0 * SLOWER
    assert hours.slowed == {"a.de"}
    assert hours.paced(host, 5.0, 86_400 + EVENING) == 5.0
    assert hours.slowed == set()


def test_short_queues_cost_no_write() -> None:
    """Nothing is learned of a host that is done within the hour."""
    bench = Quiet(MemoryStore(), pages=100)
    bench.pause()
    assert bench.hours.facts() == []
