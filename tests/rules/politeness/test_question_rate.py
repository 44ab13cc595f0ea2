"""So many questions a second, and what cannot wait is counted too."""

from __future__ import annotations

from crawlerproject.rules.politeness.question_rate import QuestionRate


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
