"""In which hours a host is taken to have most visitors."""

from __future__ import annotations

import math
import random

import pytest

from crawlerproject.rules.politeness.quiet_hours import HostHours, busy_from_of_country, hour_of, is_busy

DAY = 86_400.0


def learned(busiest_hour: float, busy: float, days: int = 1, apart_seconds: float = 300.0) -> HostHours:
    """Answers of a host whose visitors come and go in a day, ``busy`` times slower when most are there; with chance."""
    hours, rng = HostHours(), random.Random(3)
    for at in range(int(days * DAY / apart_seconds)):
        now = at * apart_seconds
        load = (1 + math.cos((now / 3600 - busiest_hour) * math.tau / 24)) / 2
        late = 5.0 if rng.random() < 0.02 else 0.0
        hours.learn(now, 0.1 * (1 + (busy - 1) * load) * rng.lognormvariate(0, 0.3) + late)
    return hours


@pytest.mark.parametrize("busiest_hour", range(0, 24, 3))
def test_a_days_answers_show_the_busiest_quarter(busiest_hour: int) -> None:
    """Its middle is the hour with most visitors, give or take an hour and chance."""
    found = learned(busiest_hour, busy=3.0).busy_from(0.0)
    assert found is not None
    assert min((found + 3 - busiest_hour) % 24, (busiest_hour - found - 3) % 24) <= 2


def test_less_than_a_day_and_no_curve_say_nothing() -> None:
    """An hour without answers may be the busiest; chance is no curve."""
    assert learned(12, busy=3.0, days=1).busy_from(0.0) is not None
    part = HostHours()
    for at in range(23 * 60):
        part.learn(at * 60.0, 0.1 + at / 600)
    assert part.busy_from(0.0) is None
    assert learned(12, busy=1.0, days=4).busy_from(0.0) is None


def test_what_is_learned_survives_the_store() -> None:
    """And an empty record is a host of which nothing is known."""
    hours = learned(12, busy=3.0)
    again = HostHours.unpack(hours.pack())
    assert again.busy_from(0.0) == hours.busy_from(0.0)
    assert HostHours.unpack(HostHours().pack()).busy_from(0.0) is None


@pytest.mark.parametrize(
    ("host", "busy_from"),
    [
        ("a.de", 15),
        ("a.co.uk", 16),
        ("a.jp", 7),
        ("a.br", 19),
        ("a.nz", 4),
        ("a.com", None),
        ("a.io", None),
        ("de", 15),
    ],
)
def test_before_that_it_is_the_evening_of_its_country(host: str, busy_from: int | None) -> None:
    """From 16 to 22 o'clock there; names that are sold everywhere say nothing."""
    assert busy_from_of_country(host) == busy_from


def test_a_quarter_of_the_day_is_busy_over_midnight_too() -> None:
    """Six hours in a row, whichever is the first; none where none is known."""
    for first in range(24):
        busy = [hour for hour in range(24) if is_busy(hour * 3600.0 + 59, first)]
        assert sorted((hour - first) % 24 for hour in busy) == list(range(6))
    assert not any(is_busy(hour * 3600.0, None) for hour in range(24))
    assert hour_of(7 * DAY - 1) == 23
