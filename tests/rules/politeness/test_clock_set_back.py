"""How far ahead a stored moment may lie."""

from __future__ import annotations

import pytest

from crawlerproject.rules.politeness.clock_set_back import Longest, Waits, brought_back, robots_brought_back

NOW = 1_000_000.0
DAY = 86_400.0
LONGEST = Longest()
FREE = Waits(NOW - 10, NOW - 10, 0.0, 0.0, 5.0, 0)


@pytest.mark.parametrize(
    "waits",
    [
        FREE,
        FREE._replace(next_free=NOW + 5.1, name_free=NOW + 5.1),
        FREE._replace(delay_seconds=9 * DAY, next_free=NOW + 9 * DAY),  # a Crawl-delay of nine days is kept in full
        FREE._replace(rest_until=NOW + DAY - 1, last_trouble=NOW - 1, next_free=NOW + DAY - 1),  # Retry-After: a day
        FREE._replace(rest_until=NOW + 3600, next_free=NOW + 3600, failures=1),  # no connection
        FREE._replace(rest_until=NOW + 5 * 3600, last_trouble=NOW - 9 * DAY, next_free=NOW + 5 * 3600, failures=5),
    ],
)
def test_what_may_be_is_left_alone(waits: Waits) -> None:
    """Pauses, long floors, rests that were asked for and rests after failures."""
    assert brought_back(waits, NOW, LONGEST) is None


def test_a_pause_beyond_any_is_cut_to_the_pause() -> None:
    """Two days ahead: the host waits for its delay from now on."""
    cut = brought_back(FREE._replace(next_free=NOW + 2 * DAY, name_free=NOW + 2 * DAY), NOW, LONGEST)

    assert cut is not None
    assert cut.next_free == cut.name_free == pytest.approx(NOW + 5, abs=0.2)


def test_a_floor_counts_as_pause() -> None:
    """A Crawl-delay of an hour is what is left of two days and an hour."""
    cut = brought_back(FREE._replace(delay_seconds=3600.0, next_free=NOW + 2 * DAY + 3600), NOW, LONGEST)

    assert cut is not None
    assert cut.next_free == pytest.approx(NOW + 3600, rel=0.001)


def test_a_rest_is_cut_to_its_own_length() -> None:
    """It lasted from its trouble to its end, and lasts as long from now on."""
    ahead = NOW + 2 * DAY
    waits = FREE._replace(next_free=ahead + 90, rest_until=ahead + 90, last_trouble=ahead)

    cut = brought_back(waits, NOW, LONGEST)

    assert cut is not None
    assert (cut.rest_until, cut.next_free, cut.last_trouble) == (NOW + 90, NOW + 90, NOW)


def test_a_rest_after_a_failure_is_cut_to_what_that_failure_may_cost() -> None:
    """An hour for the first, four for the third, never more than BACKOFF_MAX_SECONDS."""
    for failures, hours in ((1, 1.1), (3, 4.4), (9, 24.0)):
        waits = FREE._replace(next_free=NOW + 5 * DAY, rest_until=NOW + 5 * DAY, failures=failures)
        cut = brought_back(waits, NOW, LONGEST)
        assert cut is not None
        assert cut.rest_until == cut.next_free == pytest.approx(NOW + hours * 3600)


def test_requests_that_were_charged_together() -> None:
    """A page in the browser asked 40 times: so many pauses may lie ahead."""
    waits = FREE._replace(next_free=NOW + 200)

    assert brought_back(waits, NOW, Longest(turn_requests=41)) is None
    assert brought_back(waits, NOW, LONGEST) is not None


def test_robots() -> None:
    """A copy is good for its TTL at most; one that cannot be reached is asked for again after the rest."""
    assert robots_brought_back(NOW + DAY - 1, 0.0, NOW, LONGEST) == NOW + DAY - 1
    assert robots_brought_back(NOW + 3 * DAY, 0.0, NOW, LONGEST) == NOW + DAY
    assert robots_brought_back(-(NOW + 3 * DAY), NOW + 7200, NOW, LONGEST) == -(NOW + 7200)
    assert robots_brought_back(-(NOW + 600), 0.0, NOW, LONGEST) == -(NOW + 600)
    assert robots_brought_back(0.0, 0.0, NOW, LONGEST) == 0.0
