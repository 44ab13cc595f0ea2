"""Paces: their formula, their bounds, and the budget of questions to DNS."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.politeness.pace import (
    PRESETS,
    HostPaces,
    PacePreset,
    QuestionRate,
    after_answer,
    delay_seconds,
    jitter_seconds,
    pace_preset,
)

SAMPLES = st.lists(st.floats(0, 60), max_size=5).map(tuple)


@pytest.mark.parametrize(
    ("name", "samples", "floor", "delay"),
    [
        ("thirtyfold", (1.5,) * 5, 0, 45),  # Mischel: 1,500 ms mean x 30 = 45 s
        ("thirtyfold", (1.0, 2.0, 1.0, 2.0, 1.5), 0, 45),
        ("thirtyfold", (0.1,) * 5, 0, 15),  # never under 15 s
        ("thirtyfold", (20.0,), 0, 600),  # no upper bound
        ("thirtyfold", (), 0, 15),
        ("mirror", (0.4,), 0, 0.4),  # Marginalia: 400 ms -> 400 ms
        ("mirror", (0.1,), 0, 0.25),
        ("mirror", (9.0,), 0, 2.5),
        ("mirror", (), 0, 1),
        ("fixed70", (), 0, 70),  # Nielsen: at least 70 s
        ("fixed70", (30.0,), 0, 70),
        ("fixed5", (), 0, 5),
        ("fixed5", (30.0,), 0, 5),
        ("default", (), 0, 5),
        ("default", (0.1,) * 5, 0, 5),
        ("default", (1.2,) * 5, 0, 12),
        ("default", (60.0,), 0, 120),
        ("default", (60.0,), 600, 600),  # Crawl-delay holds above the maximum
        ("mirror", (0.4,), 10, 10),
        ("fixed70", (), 10, 70),
    ],
)
def test_worked_examples(name: str, samples: tuple[float, ...], floor: float, delay: float) -> None:
    """clamp(multiplier x mean, min, max), and a floor above all."""
    assert delay_seconds(PRESETS[name], samples, floor) == pytest.approx(delay)


def test_the_window_forgets_the_oldest() -> None:
    """The mean is of the last five answers."""
    samples: tuple[float, ...] = ()
    for seconds in (100.0, 1.5, 1.5, 1.5, 1.5, 1.5):
        samples = after_answer(PRESETS["thirtyfold"], samples, seconds, ok=True)
    assert delay_seconds(PRESETS["thirtyfold"], samples) == 45


@given(st.sampled_from(sorted(PRESETS)), SAMPLES, st.one_of(st.none(), st.floats(0, 100)))
def test_a_bad_answer_never_lowers_the_delay(name: str, samples: tuple[float, ...], ttfb: float | None) -> None:
    """Law: a failed or 5xx answer leaves the delay or lengthens it."""
    preset = PRESETS[name]
    samples = samples[-preset.window :] if preset.window else ()
    after = after_answer(preset, samples, ttfb, ok=False)
    assert delay_seconds(preset, after) >= delay_seconds(preset, samples)


def test_a_slow_failure_lengthens_the_delay() -> None:
    """A struggling server is left alone for longer."""
    preset = PRESETS["default"]
    assert delay_seconds(preset, after_answer(preset, (0.1,), 20.0, ok=False)) > 60


@given(st.sampled_from(sorted(PRESETS)), SAMPLES, st.floats(0, 1e6))
def test_floor_and_bounds_hold(name: str, samples: tuple[float, ...], floor: float) -> None:
    """Law: never under the floor nor the minimum; above the maximum only for the floor."""
    preset = PRESETS[name]
    delay = delay_seconds(preset, samples, floor)
    assert delay >= max(floor, preset.min_seconds)
    if preset.max_seconds is not None:
        assert delay <= max(floor, preset.max_seconds)


@given(st.floats(0, 1e5), st.integers())
def test_jitter_only_lengthens(delay: float, seed: int) -> None:
    """Law: chance adds between nothing and a tenth."""
    assert 0 <= jitter_seconds(delay, random.Random(seed)) <= delay * 0.1 + 1e-9


def test_numbers_override_a_preset() -> None:
    """PACE_* settings replace single numbers."""
    preset = pace_preset("default", {"min_seconds": 1, "start_seconds": 2, "window": None})
    assert preset == (10, 5, 1, 120, 2)


@pytest.mark.parametrize(
    ("name", "numbers", "says"),
    [
        ("fast", {}, "default, fixed5, thirtyfold, mirror, fixed70"),
        ("default", {"min_seconds": -1.0}, "PACE_MIN_SECONDS"),
        ("default", {"multiplier": float("nan")}, "PACE_MULTIPLIER"),
        ("default", {"max_seconds": 1.0}, "below PACE_MIN_SECONDS"),
    ],
)
def test_wrong_settings_are_a_sentence(name: str, numbers: dict[str, float], says: str) -> None:
    """The operator learns which setting is wrong."""
    with pytest.raises(ValueError, match=says):
        pace_preset(name, numbers)


def test_a_seconds_worth_at_once_and_then_as_time_passes() -> None:
    """No more than a second's worth is ever saved up."""
    rate = QuestionRate(10.0)
    assert rate.room(0.0) == 10
    for _ in range(10):
        rate.ask(0.0)
    assert rate.room(0.0) == 0
    assert rate.room(0.35) == 3
    assert rate.room(60.0) == 10


def test_what_is_reserved_waits_for_its_moment_and_goes_before_what_is_not() -> None:
    """A tenth of a second apart, and there is room again once they all were sent."""
    rate = QuestionRate(10.0)
    waits = [rate.ask(0.0) for _ in range(25)]
    assert waits[:10] == [0.0] * 10
    assert waits[10:] == [(number + 1) / 10 for number in range(15)]
    assert rate.room(0.0) == -15
    assert rate.room(1.0) == -5
    assert rate.room(2.0) == 5


def test_a_clock_that_is_set_back_stops_nobody() -> None:
    """Time before it counts for nothing; time after it as always."""
    rate = QuestionRate(10.0)
    for _ in range(10):
        rate.ask(1000.0)
    assert rate.room(10.0) == 0
    assert rate.room(10.5) == 5


def test_less_than_one_a_second_is_still_one_now_and_then() -> None:
    """A rate below one does not mean none."""
    rate = QuestionRate(0.1)
    assert rate.room(0.0) == 1
    rate.ask(0.0)
    assert rate.room(5.0) == 0
    assert rate.room(10.0) == 1


BASE = PRESETS["default"]
LINES = """
# ours
slow.example.org   delay_seconds=20   # agreed by mail
*.example.org      min_seconds=8
own.test:8080      delay_seconds=0.1
fast.test          multiplier=2 min_seconds=1 max_seconds=3
""".splitlines()


@pytest.mark.parametrize(
    ("host", "preset"),
    [
        ("slow.example.org", PacePreset(0, 0, 20, 20, 20)),
        ("example.org", BASE._replace(min_seconds=8)),
        ("a.b.example.org:81", BASE._replace(min_seconds=8)),
        ("notexample.org", BASE),
        ("own.test:8080", PacePreset(0, 0, 0.1, 0.1, 0.1)),
        ("own.test", BASE),
        ("fast.test:81", BASE._replace(multiplier=2, min_seconds=1, max_seconds=3)),
        ("localhost", BASE),
    ],
)
def test_the_most_specific_line_counts(host: str, preset: PacePreset) -> None:
    """A host key before a name, a name before its domains, everyone else as the preset says."""
    paces, problems = HostPaces.parse(LINES)

    assert problems == []
    assert len(paces) == 4
    assert paces.preset(host, BASE) == preset


def test_robots_remains_a_floor() -> None:
    """What the operator sets never goes below what the owner asks for."""
    paces, _ = HostPaces.parse(["own.test delay_seconds=1"])

    assert delay_seconds(paces.preset("own.test", BASE), (0.1,), 30) == 30


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("http://a.test/ delay_seconds=1", "is no host"),
        ("* delay_seconds=1", "is no host"),
        ("a.*.test delay_seconds=1", "is no host"),
        ("a.test", "names no number"),
        ("a.test delay=1", "has 'delay'"),
        ("a.test delay_seconds=soon", "a number of 0 or more"),
        ("a.test delay_seconds=-1", "a number of 0 or more"),
        ("a.test delay_seconds=5 min_seconds=1", "would make idle"),
    ],
)
def test_bad_lines_are_reported_by_number(line: str, why: str) -> None:
    """The line's number and what is wrong with it; the others hold."""
    paces, (problem,) = HostPaces.parse(["b.test delay_seconds=2", "", line])

    assert len(paces) == 1
    assert problem.line == 3
    assert why in problem.why
