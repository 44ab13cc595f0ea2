"""A pause between two requests, and when it was too short."""

import pytest

from crawlerproject.rules.politeness.pauses import ROUNDING_SECONDS, LastAnswers, Pause

NOW = 1_790_000_000.0  # epoch seconds, where a float has a quarter of a microsecond


@pytest.mark.parametrize(
    ("kept", "margin", "too_short"),
    [(5.0, 0.0, False), (4.999, -0.001, False), (4.9985, -0.0015, True), (-1.0, -6.0, True), (9.25, 4.25, False)],
)
def test_a_pause_is_judged_in_microseconds(kept: float, margin: float, *, too_short: bool) -> None:
    """Less than the rounding of two clocks is no haste; a request before that was in flight makes it negative."""
    pause = Pause("a.test", NOW, NOW + kept, 5.0)
    assert pause.kept_seconds == kept
    assert pause.margin_seconds == margin
    assert pause.too_short is too_short
    assert ROUNDING_SECONDS == 0.001


def test_the_latest_end_counts() -> None:
    """A long answer that began first ends last: the pause begins there."""
    answers = LastAnswers()
    assert [answers.ask("a.test", end) for end in (9.0, 6.0, 20.0)] == [None, 9.0, 9.0]
    assert answers.ask("b.test", 1.0) is None
    assert answers.ends == {"a.test": 20.0, "b.test": 1.0}
