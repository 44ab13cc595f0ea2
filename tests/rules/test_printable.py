"""Numbers as a person reads them."""

import math

import pytest

from crawlerproject.rules.printable import human_bytes, human_seconds, moment


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_960, "1.0 MB"),
        (2_500_000_000, "2.5 GB"),
        (7 * 10**12, "7.0 TB"),
    ],
)
def test_bytes_take_the_largest_unit(count: int, text: str) -> None:
    """Decimal units, one digit after the point."""
    assert human_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1.0, "0.0 s"),
        (0.04, "0.0 s"),
        (59.9, "59.9 s"),
        (59.96, "1 min 0 s"),
        (3600.0, "1 h 0 min"),
        (11_100.0, "3 h 5 min"),
        (187_200.0, "2 d 4 h"),
    ],
)
def test_durations_take_two_units(seconds: float, text: str) -> None:
    """The two largest units, never a negative one."""
    assert human_seconds(seconds) == text


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1.79e308, -1.79e308, 1e18, -1e18, 2.6e11])
def test_no_number_breaks_the_words(value: float) -> None:
    """Any float is a duration and a moment that can be shown."""
    assert human_seconds(value)
    assert moment(value)
