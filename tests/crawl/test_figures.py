"""How a crawl stands, counted from its hosts: what politeness allows, what is left, why nothing moves."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from crawlerproject.crawl import figures
from crawlerproject.crawl.figures import FailureReporter
from crawlerproject.crawl.run import Run
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import Counts
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.inspection.crawl_progress import Progress, render_lines
from crawlerproject.rules.politeness.bottleneck import bound_by, load_of
from crawlerproject.stores.operator_files.watched_lists import NeverCrawlLists

NOW = 1000.0


class Ticks:
    """A clock of which each second reading is 20 ms later."""

    def __init__(self) -> None:
        self._readings = 0

    def __call__(self) -> float:
        self._readings += 1
        return self._readings // 2 * 0.02


def host(name: str, address: str = "", *, urls: int = 10, free: float = 0.0, rest: float = 0.0) -> Host:
    """A host with work and the default pace."""
    made = Host(name, 5.0)
    made.rows, made.next_free, made.address = urls, NOW + max(free, rest), address
    made.address_until = NOW + 3600
    made.rest_until = NOW + rest if rest else 0.0
    return made


def crawl(*hosts: Host, on_disk: Counts | None = None) -> Any:
    """A crawl as far as its figures go, on a real workbench."""
    bench: Workbench = Workbench(ip_pause_seconds=0.5)
    for one in hosts:
        bench.add(one)
    frontier = SimpleNamespace(
        hosts=SimpleNamespace(
            on_disk=SimpleNamespace(counts=on_disk or Counts()), waiting_urls=sum(one.waiting_urls for one in hosts)
        ),
        workbench=bench,
        wake_at=bench.wake_at,
        quiet_hours=None,
    )
    run = Run(SimpleNamespace(inc_value=None), NeverCrawlLists([], 60.0), clock=lambda: NOW)
    return SimpleNamespace(frontier=frontier, run=run, figures=figures.Figures(), reporter=FailureReporter([]))


def progress(look: Any) -> Progress:
    """Where it stands."""
    stands: Progress = look.figures.now(look.frontier, look.reporter, look.run, exact=True)
    return stands


def status(look: Any) -> dict[str, Any]:
    """What the running process would write of it."""
    return {"progress": progress(look)._asdict(), "cpu_share": 0.1, "lag_seconds": 0.0, "max_in_flight": 1000}


def test_forty_names_at_one_address() -> None:
    """2.0/s and not 8.0/s, 200 s and not 45 s; while one is asked the others stand in line: bound by politeness."""
    look = crawl(*(host(f"n{number}.test", "192.0.2.1") for number in range(40)))
    bench = look.frontier.workbench
    while (turn := bench.take(NOW)) is not None:
        assert turn.address

    now = progress(look)
    assert now.ceiling_per_second == pytest.approx(2.0)
    assert now.eta_seconds == pytest.approx(401 * 0.5 - 0.5)  # the one in flight has still to end
    assert (now.hosts_in_flight, now.hosts_in_line, now.hosts_waiting, now.hosts_ready) == (1, 39, 0, 0)
    assert bound_by(load_of(status(look))).what == "politeness"


def test_when_the_last_answer_has_ended_all_stand_in_line() -> None:
    """89 URLs queued, nothing in flight, no host of its own pause: once said to be bound by nothing."""
    look = crawl(*(host(f"n{number}.test", "192.0.2.1") for number in range(3)))
    bench = look.frontier.workbench
    turn = bench.take(NOW)
    while bench.take(NOW) is not None:
        pass
    turn.host.rows = 0
    bench.ended(turn.host, NOW, NOW + 5, work=False)

    assert (progress(look).hosts_in_flight, progress(look).hosts_in_line) == (0, 2)
    assert bound_by(load_of(status(look))).text.startswith("politeness: 2 hosts wait for the pause of their IP address")


def test_names_that_are_looked_up_wait_for_the_dns() -> None:
    """They are no ready hosts, and nothing else bounds them."""
    look = crawl(host("a.test"), host("b.test"))
    while look.frontier.workbench.take(NOW) is not None:
        pass

    assert progress(look).hosts_looked_up == 2
    assert bound_by(load_of(status(look))).what == "dns"


def test_rests_are_no_part_of_the_eta() -> None:
    """A host that does not resolve rests for an hour: no ETA of an hour, but the reason and the moment."""
    now = progress(crawl(host("example.org", urls=1, rest=3540.0)))

    assert now.eta_seconds is None
    assert now.next_free_seconds == 3540.0
    assert now.standing == ("example.org: rests, again in 59 min 0 s",)


def test_a_machine_slower_than_politeness_decides_the_end() -> None:
    """400 URLs at two answers a second: 200 s and not 45 s; hosts that rest and pauses are left out."""
    look = crawl(*(host(f"n{number}.test") for number in range(40)), host("rests.test", urls=1000, rest=3540.0))
    clock = SimpleNamespace(at=0.0)
    look.figures = figures.Figures(clock=lambda: clock.at)

    def eta(at: float, pages: int) -> float | None:
        clock.at, look.run.tallies.pages = at, pages
        return progress(look).eta_seconds

    assert eta(0.0, 0) == pytest.approx(45.0)  # robots.txt files come first: no answers
    assert eta(100.0, 10) == pytest.approx(45.0)
    assert eta(130.0, 70) == pytest.approx(200.0)
    assert eta(160.0, 70 + 3000) == pytest.approx(45.0)
    look.run.pause("the disk is full")
    assert eta(190.0, 3071) == pytest.approx(45.0)


def test_a_host_that_is_free_soon_explains_nothing() -> None:
    """While something moves, or will at once, the panel has no lines about rests."""
    assert progress(crawl(host("a.test", rest=3540.0), host("b.test", free=2.0))).standing == ()
    assert progress(crawl(host("a.test", rest=3540.0), host("b.test", "192.0.2.1"))).standing == ()
    assert len(progress(crawl(host("a.test", rest=3540.0), host("b.test", free=90.0))).standing) == 2


def test_another_host_that_answers_for_robots_is_no_long_wait() -> None:
    """It may answer at any moment: its hold is not counted as a pause."""
    held = host("a.test", urls=3, free=120.0)
    held.held_until, held.pace_free = NOW + 120, NOW

    assert progress(crawl(held)).eta_seconds == pytest.approx(2 * 5.0)


def test_hosts_on_disk_count_as_the_others_do() -> None:
    """As many again on disk, half of them resting: half as much again is allowed."""
    look = crawl(*(host(f"n{number}.test", f"192.0.2.{number}") for number in range(10)))
    look.frontier.hosts.on_disk.counts = Counts(hosts=10, rows=100, resting=5, done_at=NOW + 77)

    assert progress(look).ceiling_per_second == pytest.approx(15 * 0.2)
    assert progress(look).eta_seconds == pytest.approx(77.0)


def test_very_many_hosts_are_worked_out_in_parts() -> None:
    """Each look takes another part, hosts of one address in the same; after as many looks all are counted exactly."""
    hosts = [host(f"n{number}.test", f"10.0.{number % 2000}", urls=2) for number in range(20_000)]
    look = crawl(*hosts)
    first = progress(look).ceiling_per_second
    looks = [progress(look) for _ in range(20_000 // figures._HOSTS_A_LOOK)]

    assert first == pytest.approx(2000 * 2.0, rel=0.5)  # a part is what Python's hashes of this process make it
    assert looks[-1].ceiling_per_second == pytest.approx(2000 * 2.0)
    assert looks[-1].eta_seconds == pytest.approx(20 * 0.5 - 0.5)


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_look_at_many_hosts_takes_many_turns_and_finds_the_same() -> None:
    """Until it is whole the one before is shown; a slice of them is looked at in each turn of the event loop."""
    shown, one_slice = figures.Figures(clock=lambda: 0.0, worked=lambda: 0.0), figures._HOSTS_A_SLICE
    look = crawl(host("first.test"))

    def now() -> Progress:
        return shown.now(look.frontier, look.reporter, look.run)

    async def looks() -> None:
        assert now().hosts_ready == 1
        for number in range(3 * one_slice):
            look.frontier.workbench.add(host(f"n{number}.test", f"10.0.{number % 500}", rest=60.0 * (number % 3)))
        for _ in range(5):  # three slices, one of a single host, and the limits
            assert now().hosts_ready == 1
            await _turns(1)
        assert (now().hosts_ready, now().hosts_resting) == (1 + one_slice, 2 * one_slice)
        assert now() == progress(look) == shown.now(look.frontier, look.reporter, look.run, exact=True)

    asyncio.run(looks())


def test_looks_take_their_share_of_the_processor_however_often_they_are_asked_for() -> None:
    """One that took four turns of 20 ms is followed by the next after sixteen seconds; an exact one is made at once."""
    clock = SimpleNamespace(at=0.0)
    shown = figures.Figures(clock=lambda: clock.at, worked=Ticks())
    look = crawl(*(host(f"n{number}.test") for number in range(2 * figures._HOSTS_A_SLICE)))
    whole = len(look.frontier.workbench.hosts)

    async def ready(at: float) -> int:
        clock.at = at
        shown.now(look.frontier, look.reporter, look.run)
        await _turns(9)
        return shown.now(look.frontier, look.reporter, look.run).hosts_ready

    async def looks() -> None:
        assert shown.now(look.frontier, look.reporter, look.run).hosts_ready == whole
        look.frontier.workbench.add(host("second.test"))
        assert await ready(0.0) == whole + 1
        look.frontier.workbench.add(host("third.test"))
        assert await ready(15.9) == whole + 1
        assert await ready(16.1) == whole + 2
        look.frontier.workbench.add(host("fourth.test"))
        assert shown.now(look.frontier, look.reporter, look.run, exact=True).hosts_ready == whole + 3

    asyncio.run(looks())


def test_hosts_in_their_busy_hours_are_counted_and_said() -> None:
    """As long as their pause is longer for it: a line of the panel says how many, and what that costs."""
    look = crawl(host("a.test"), host("b.test"))
    look.frontier.quiet_hours = SimpleNamespace(slowed={"a.test"})
    slowed = progress(look)
    look.frontier.quiet_hours.slowed.clear()

    assert slowed.hosts_in_busy_hours == 1
    assert "1 host in its busy hours, at 1/3 of the pace: what takes days takes up to 20% longer (QUIET_HOURS)" in (
        render_lines(slowed, None, 1.0)
    )
    assert not any("QUIET_HOURS" in line for line in render_lines(progress(look), None, 1.0))
