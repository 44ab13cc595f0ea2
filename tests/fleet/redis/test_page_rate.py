"""The rate that a worker reports."""

from __future__ import annotations

from crawlerproject.fleet.redis.page_rate import PageRate


def test_a_rate_is_of_some_seconds() -> None:
    """Reports in quick succession repeat it; it follows what was done since; a count that begins anew is no rate."""
    rate = PageRate(100.0)

    assert rate.of(40, 104.0) == 0.0
    assert rate.of(50, 110.0) == 5.0
    assert rate.of(90, 114.0) == 5.0
    assert rate.of(90, 130.0) == 2.0
    assert rate.of(3, 140.0) == 0.0
