"""The ring of the last hour: rates between rows, its bounds, and what it takes from a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crawlerproject.watch.last_hour import SPAN_SECONDS, STEP_SECONDS, LastHour, Levels, Sample, Totals, read_last_hour

NOW = 1_800_000_000.0
LEVELS = Levels(4.5, 10, 2, 100_000_000)


def filled(rows: int) -> LastHour:
    """A row each step: 10 pages, 1,000 bytes, one error; the last one at NOW."""
    hour = LastHour()
    for number in range(rows + 1):
        hour.add(NOW + (number - rows) * STEP_SECONDS, Totals(10 * number, 1000 * number, number), LEVELS)
    return hour


def test_rates_are_means_since_the_row_before() -> None:
    """The first look only begins to count."""
    hour = filled(2)

    rows = hour.since(0.0, NOW)
    assert [row.at for row in rows] == [NOW - STEP_SECONDS, NOW]
    assert [(row.pages, row.bytes, row.errors) for row in rows] == [(2.0, 200.0, 0.2)] * 2
    assert rows[-1][5:] == LEVELS


def test_a_timer_that_rings_again_at_once_adds_nothing() -> None:
    """Nor does it take the time from the next row."""
    hour = filled(1)
    hour.add(NOW + 0.001, Totals(10, 1000, 1), LEVELS)
    hour.add(NOW + STEP_SECONDS, Totals(20, 2000, 2), LEVELS)

    assert [row.pages for row in hour.since(0.0, NOW + STEP_SECONDS)] == [2.0, 2.0]


def test_it_holds_one_hour() -> None:
    """However long a crawl is."""
    hour = filled(2000)

    rows = hour.since(0.0, NOW)
    assert len(rows) == SPAN_SECONDS / STEP_SECONDS
    assert rows[0].at > NOW - SPAN_SECONDS
    assert hour.since(NOW - 12.0, NOW) == rows[-3:]


def test_counts_that_begin_anew_are_no_negative_rate() -> None:
    """A worker of a fleet may join again."""
    hour = filled(1)
    hour.add(NOW + 5, Totals(0, 0, 0), LEVELS)

    assert hour.since(NOW, NOW + 5)[0].pages == 0.0


def test_a_later_process_has_what_an_earlier_one_kept() -> None:
    """Through a file; without what is older than an hour or of a time to come."""
    kept = json.loads(json.dumps(filled(720).as_dict(NOW)))

    assert read_last_hour(kept, NOW).since(0.0, NOW) == filled(720).since(0.0, NOW)
    assert len(read_last_hour(kept, NOW + 1800).since(0.0, NOW + 1800)) == 360
    assert read_last_hour(kept, NOW - 7200).since(0.0, NOW) == []


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"format": 2, "columns": list(Sample._fields), "rows": [[1] * 9]},
        {"format": 1, "columns": ["at"], "rows": [[1]]},
        {"format": 1, "columns": list(Sample._fields), "rows": None},
        {"format": 1, "columns": list(Sample._fields), "rows": [["x"] * 9, [NOW], 7, [NOW, 5, None, 0, 0, 0, 0, 0, 0]]},
    ],
)
def test_a_file_that_is_none_of_ours_is_no_hour(facts: dict[str, Any]) -> None:
    """Of another version, torn, or made by somebody."""
    assert read_last_hour(facts, NOW).since(0.0, NOW) == []
