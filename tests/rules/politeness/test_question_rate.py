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


def test_what_cannot_wait_goes_at_the_cost_of_what_can() -> None:
    """Debts are paid back before there is room again."""
    rate = QuestionRate(10.0)
    for _ in range(25):
        rate.ask(0.0)
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
