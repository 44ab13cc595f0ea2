"""Rests, Retry-After, retries and the circuit breaker."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.backoff import (
    FAILURES,
    Breaker,
    BreakerLimits,
    Rest,
    RestLimits,
    after_success,
    after_trouble,
    breaker_failed,
    failure_rest_seconds,
    left_alone_seconds,
    rest_seconds,
    retry_after_seconds,
)

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
    before, after = left_alone_seconds(opened), left_alone_seconds(opened + 1)

    assert 86_400 <= before <= after <= min(2 * before, 7 * 86_400)


@given(st.floats(0, CAP), st.integers(0))
def test_a_dead_host_is_probed_six_times_a_month(answer_seconds: float, seed: int) -> None:
    """Law: none in the day after it is given up, six in the 29 days after, whatever each takes to fail."""
    limits, rng = BreakerLimits(), random.Random(seed)
    breaker, given_up = breaker_failed(breaker_failed(Breaker(5, 0), NOW, limits, rng), NOW, limits, rng), NOW
    probes: list[float] = []
    now = given_up
    while (now := max(now + left_alone_seconds(breaker.opened), breaker.until)) <= given_up + 29 * 86_400:
        probes.append(now)
        breaker = breaker_failed(breaker, now, limits, rng)
        now += answer_seconds / 100  # a request lasts for minutes at most

    assert probes[0] >= given_up + 86_400
    assert len(probes) in (5, 6)
