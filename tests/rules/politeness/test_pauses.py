"""Paces, rests and retries: their formulas, their bounds, and the budget of questions to DNS."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pauses import (
    FAILURES,
    PRESETS,
    Breaker,
    BreakerLimits,
    HostPaces,
    PacePreset,
    QuestionRate,
    Rest,
    RestLimits,
    after_answer,
    after_success,
    after_trouble,
    breaker_failed,
    delay_seconds,
    failure_rest_seconds,
    pace_preset,
    parked_seconds,
    rest_seconds,
    retry_after_seconds,
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


LIMITS = RestLimits(60.0, 86_400.0, 86_400.0)
NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT, RFC 9110 5.6.7
CAP = 86_400.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 120 ", 120),
        ("0", 0),
        ("1.5", 1.5),
        ("120, 60", 120),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", CAP),
        ("99999999999", CAP),
        ("9" * 5000, CAP),
        ("-5", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("١٢٠", None),
        ("Sun, 99 Nov 1994 08:50:37 GMT", None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    """RFC 9110 10.2.3: seconds or a date in any of three forms; absurd values are capped or unread."""
    assert retry_after_seconds(header, NOW, CAP) == seconds


@given(st.text(max_size=40))
def test_retry_after_takes_any_text(header: str) -> None:
    """Law: None, or between 0 and the cap."""
    seconds = retry_after_seconds(header, NOW, CAP)
    assert seconds is None or 0 <= seconds <= CAP


@given(st.integers(-5, 5000), st.integers())
def test_rest_is_bounded(escalation: int, seed: int) -> None:
    """Law: within a tenth of the doubling, never above the maximum."""
    seconds = rest_seconds(escalation, 60, 86_400, random.Random(seed))
    assert 54 <= seconds <= 86_400


def test_rest_doubles() -> None:
    """60, 120, 240 s and so on, give or take a tenth."""
    rng = random.Random(1)
    for escalation, middle in ((1, 60), (2, 120), (3, 240), (6, 1920)):
        assert rest_seconds(escalation, 60, 86_400, rng) == pytest.approx(middle, rel=0.1)


def test_each_block_rests_longer() -> None:
    """Trouble right after a rest ended is the next block."""
    rest, now, rng, waits = Rest(), 1000.0, random.Random(2), []
    for _ in range(4):
        rest = after_trouble(rest, now, None, LIMITS, rng)
        waits.append(rest.until - now)
        now = rest.until + 1
    assert rest.escalation == 4
    assert all(later > 1.5 * earlier for earlier, later in pairwise(waits))


def test_a_backlog_that_fails_together_escalates_once() -> None:
    """One block, one escalation, however many answers tell of it."""
    first = after_trouble(Rest(), 1000.0, None, LIMITS, random.Random(3))
    rest = first
    for second in range(20):
        rest = after_trouble(rest, 1000.5 + second, None, LIMITS, random.Random(second))
    assert (rest.escalation, rest.until) == (1, first.until)


def test_retry_after_wins() -> None:
    """A host that names its time is taken at its word, shorter or longer than our own."""
    assert after_trouble(Rest(), 1000.0, 7.0, LIMITS, random.Random(4)).until == 1007
    assert after_trouble(Rest(), 1000.0, 50_000.0, LIMITS, random.Random(4)).until == 51_000
    assert after_trouble(Rest(), 1000.0, 1e9, LIMITS, random.Random(4)).until == 1000 + 86_400


def test_retry_after_within_a_rest_may_lengthen_it_only() -> None:
    """The latest promise holds."""
    rest = after_trouble(Rest(), 1000.0, 100.0, LIMITS, random.Random(5))
    assert after_trouble(rest, 1010.0, 10.0, LIMITS, random.Random(5)).until == 1100
    assert after_trouble(rest, 1010.0, 600.0, LIMITS, random.Random(5)).until == 1610


def test_retry_after_of_nothing_is_none() -> None:
    """ "Retry-After: 0" with a 429 is no leave to hammer."""
    assert after_trouble(Rest(), 1000.0, 0.0, LIMITS, random.Random(6)).until >= 1054


def test_forgiven_after_quiet_half_an_hour() -> None:
    """Counted from the end of the rest, not from the trouble."""
    rest = Rest(5, until=5000.0, last_trouble=1000.0)
    assert after_success(rest, 6799.0) == rest
    assert after_success(rest, 6800.0) == Rest()
    assert after_trouble(rest, 6800.0, None, LIMITS, random.Random(7)).escalation == 1
    assert after_trouble(rest, 6799.0, None, LIMITS, random.Random(7)).escalation == 6


@given(st.lists(st.tuples(st.floats(0, 5000), st.one_of(st.none(), st.floats(0, 1e6))), max_size=30), st.integers())
def test_a_rest_is_never_shortened(troubles: list[tuple[float, float | None]], seed: int) -> None:
    """Law: whatever comes, ``until`` only grows, and escalation by at most one."""
    rest, now, rng = Rest(), 1000.0, random.Random(seed)
    for gap, asked in troubles:
        now += gap
        after = after_trouble(rest, now, asked, LIMITS, rng)
        assert after.until >= rest.until
        assert after.escalation <= rest.escalation + 1
        assert after.until <= now + 86_400 or after.until == rest.until
        rest = after


def test_every_reason_has_a_row() -> None:
    """No outcome is without an answer, and none is tried for ever: a dead site sees at most six requests."""
    assert set(FAILURES) == set(Reason)
    assert all(1 <= failure.max_tries <= 6 and failure.base_wait_seconds >= 0 for failure in FAILURES.values())


def test_a_host_that_fails_again_rests_longer() -> None:
    """The base wait of the last failure's kind, doubled with each in a row, up to the maximum."""
    hour = FAILURES[Reason.DNS_NOT_FOUND]
    assert [failure_rest_seconds(hour, failures, CAP) for failures in (0, 1, 2, 3, 9)] == [3600, 3600, 7200, 14400, CAP]
    assert failure_rest_seconds(FAILURES[Reason.DISCONNECTED], 10_000, 1e9) == 60 * 1024


def test_the_breaker_opens_at_the_limit_and_probes() -> None:
    """Five failures park a host; each failed probe parks it for twice as long."""
    limits, rng, breaker = BreakerLimits(), random.Random(9), Breaker()
    for failures in range(1, 5):
        breaker = breaker_failed(breaker, 1000.0, limits, rng)
        assert breaker == Breaker(failures)
    breaker = breaker_failed(breaker, 1000.0, limits, rng)
    assert breaker[:2] == (5, 1)
    assert breaker.until == pytest.approx(4600, abs=361)

    again = breaker_failed(breaker, 1000.0, limits, rng)

    assert again[:2] == (6, 2)
    assert again.until - 1000 == pytest.approx(7200, rel=0.1)


@given(st.integers(0, 10**9))
def test_a_host_that_does_not_answer_is_left_alone_for_longer_each_time(opened: int) -> None:
    """Law: a day at least and a week at most, never shorter than before, at most twice as long."""
    before, after = parked_seconds(opened), parked_seconds(opened + 1)

    assert 86_400 <= before <= after <= min(2 * before, 7 * 86_400)


@given(st.floats(0, CAP), st.integers(0))
def test_a_dead_host_is_probed_six_times_a_month(answer_seconds: float, seed: int) -> None:
    """Law: none in the day after it is given up, six in the 29 days after, whatever each takes to fail."""
    limits, rng = BreakerLimits(), random.Random(seed)
    breaker, given_up = breaker_failed(breaker_failed(Breaker(5, 0), NOW, limits, rng), NOW, limits, rng), NOW
    probes: list[float] = []
    now = given_up
    while (now := max(now + parked_seconds(breaker.opened), breaker.until)) <= given_up + 29 * 86_400:
        probes.append(now)
        breaker = breaker_failed(breaker, now, limits, rng)
        now += answer_seconds / 100  # a request lasts for minutes at most

    assert probes[0] >= given_up + 86_400
    assert len(probes) in (5, 6)
