"""Dates as sitemaps and feeds write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.feeds.entry_dates import entry_date

DAY = 1_714_521_600.0  # 2024-05-01
NOON = DAY + 43_200


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        # https://www.w3.org/TR/NOTE-datetime, and what is written for it.
        ("2024-05-01", DAY),
        ("2024-05", DAY),
        ("20240501", DAY),
        ("2024-05-01T00:00Z", DAY),
        ("2024-05-01T02:00:00+02:00", DAY),
        ("2024-5-1", DAY),
        ("2024/05/01 12:00", NOON),
        ("2024-05-01 12:00:00 GMT", NOON),
        ("2024-05-01T12:00:00.000Z", NOON),
        ("2024-05-01T17:30:00 +05:30", NOON),
        ("2024-05-01T24:00:00Z", DAY + 86_400),
        # RFC 822 5.1, with RFC 5322's years.
        ("Wed, 01 May 2024 00:00:00 GMT", DAY),
        ("Wed, 1 May 24 12:00 UT", NOON),
        ("01 May 2024 17:30:00 +0530", NOON),
        ("Wed, 01 May 2024 17:30:00 +05:30", NOON),
        ("Wed, 01 May 2024 06:30:00 -05:30", NOON),
        ("Wed, 01 May 2024 08:00:00 EDT", NOON),
        ("Wed, 01 May 2024 12:00:00 GMT+0000", NOON),
        ("Wed, 01 May, 2024 12:00:00 +0000", NOON),
        ("Wed, May 1, 2024 12:00 PM", NOON),
        ("Wednesday, 1 May 2024 00:00:60", DAY + 60),
        ("Wed May  1 12:00:00 2024", NOON),
        ("Wed May  1 08:00:00 EDT 2024", NOON),
        ("12:00 1 May 2024", NOON),
        ("Wed, 01 May 2024", DAY),
        ("01-May-2024", DAY),
        ("1 May 124", DAY),
        # No dates.
        ("2024-13-01", None),
        ("31 Feb 2024", None),
        ("Wed, 01 May 2024 25:00:00", None),
        ("yesterday", None),
        ("May", None),
        ("", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("99999", None),
        ("1 May 1950", None),
    ],
)
def test_dates(text: str, moment: float | None) -> None:
    """W3C's forms, RFC 822's, and the common mistakes in both; a wrong date is no date."""
    assert entry_date(text) == moment


WORDS = ("0", "9", "24", "99", "2024", "99999", ",", "-", "/", ":", "T", "Z", "+05:30", "EST", "may", "pm", "\u0662")


@given(st.lists(st.sampled_from(WORDS)))
def test_nothing_raises(words: list[str]) -> None:
    """Whatever stands where a date should."""
    for text in ("".join(words), " ".join(words)):
        moment = entry_date(text)
        assert moment is None or moment > 0
