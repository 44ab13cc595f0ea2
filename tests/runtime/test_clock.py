"""The crawl's clock comes to another one slowly, never goes back, and is never much faster than time is."""

from __future__ import annotations

import random
import time
from runpy import run_path
from types import SimpleNamespace

import pytest

from crawlerproject.runtime import clock
from crawlerproject.runtime.clock import MOST_STEERING, SteeredClock

EPOCH = 1_000_000.0


class Machine:
    """A clock in the test's hand."""

    def __init__(self) -> None:
        self.seconds = 50.0

    def __call__(self) -> float:
        """Seconds."""
        return self.seconds


@pytest.fixture
def machine() -> Machine:
    """The machine's own."""
    return Machine()


def test_it_is_the_machines_until_it_follows_another(machine: Machine) -> None:
    """Then it is that one's at once."""
    clock = SteeredClock(machine, EPOCH)
    machine.seconds += 5
    assert clock.now() == EPOCH + 55
    clock.follow(EPOCH - 700)
    machine.seconds += 5

    assert clock.now() == EPOCH - 640
    assert clock.apart(EPOCH - 700) == 0
    assert clock.apart(EPOCH) == -700


@pytest.mark.parametrize("apart", [0.02, -0.02])
def test_it_comes_to_another_within_the_time_it_is_given(machine: Machine, apart: float) -> None:
    """And stays with it, though it is not steered again."""
    clock = SteeredClock(machine, EPOCH)
    clock.steer(EPOCH + apart, 60.0)
    machine.seconds += 30
    assert clock.apart(EPOCH + apart) == pytest.approx(-apart / 2)
    machine.seconds += 30
    assert clock.apart(EPOCH + apart) == pytest.approx(0, abs=1e-6)
    machine.seconds += 3000
    assert clock.apart(EPOCH + apart) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_no_pause_is_cut_by_more_than_the_most_steering(machine: Machine, seed: int) -> None:
    """Wherever the other clock jumps: what has passed here has passed by the machine's, to within 500 millionths."""
    rng, clock = random.Random(seed), SteeredClock(machine, EPOCH)
    before, shown = machine.seconds, clock.now()
    for _ in range(200):
        if rng.random() < 0.5:
            clock.steer(EPOCH + rng.uniform(-900, 900), 60.0)
        machine.seconds += rng.expovariate(0.1)
        passed, seen = machine.seconds - before, clock.now() - shown
        assert passed * (1 - MOST_STEERING) - 1e-6 <= seen <= passed * (1 + MOST_STEERING) + 1e-6
        before, shown = machine.seconds, clock.now()


def test_a_busy_machine_does_not_set_the_clock_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes between readings of both clocks is no part of what they are apart: the quickest counts."""
    passed, waits = 0.0, iter([0.1, 0.157, 0.3] + [0.1, 0.0, 0.0] + [0.2, 0.001, 0.157] * 6)

    def read() -> float:
        nonlocal passed
        passed += next(waits)
        return passed

    monkeypatch.setattr(clock, "since_boot", read)
    monkeypatch.setattr(clock, "time", SimpleNamespace(time=lambda: EPOCH + read()))

    assert clock.epoch_of_boot() == pytest.approx(EPOCH)
    assert next(waits, None) is None


def test_a_night_in_which_the_machine_slept_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures after it bear its date; the pauses that ended meanwhile were kept. A clock that is set is not asked."""
    slept = {time.CLOCK_BOOTTIME: 0.0, time.CLOCK_MONOTONIC: 0.0, time.CLOCK_REALTIME: 0.0}
    read = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda which: read(which) + slept[which])
    fresh = run_path(clock.__file__)  # which binds what there is to read
    crawls, before, resolvers = fresh["SteeredClock"](), time.time(), fresh["steady"]()
    slept[time.CLOCK_BOOTTIME] += 8 * 3600.0
    slept[time.CLOCK_REALTIME] -= 86_400.0

    assert crawls.now() - before == pytest.approx(8 * 3600.0, abs=5.0)
    assert fresh["steady"]() - resolvers == pytest.approx(8 * 3600.0, abs=5.0)
