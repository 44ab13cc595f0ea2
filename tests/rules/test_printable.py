"""Numbers as a person reads them."""

import math
import re
from pathlib import Path

import pytest

import crawlerproject
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


# A count in a message, before a plural. Not of a bound, which is named in capitals or ``most``.
_PLURAL = re.compile(
    r"(?:%d|\{(?![A-Z_]+:|most:|[^{}]*max_)[^{}]*:,\}) (?:answers|attempts|captures|domains|entries|errors|events|"
    r"hosts|links|lines|names|pages|partitions|pauses|records|requests|seeds|times|URLs)\b"
)
# These are always several: the hook is behind by a bound of ours, a host failed often.
_SEVERAL = {"hook_events.py", "frontier.py", "poison.py"}


def test_a_count_of_one_has_no_plural() -> None:
    """Every count in a message goes through ``counted``: "1 pages" was found in twenty places."""
    files = [path for path in Path(crawlerproject.__path__[0]).rglob("*.py") if path.name not in _SEVERAL]
    found = {path.name: _PLURAL.findall(path.read_text()) for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert _PLURAL.search('say(f"{done.pages:,} pages")')
    assert _PLURAL.search('info("%d hosts wait", 1)')
