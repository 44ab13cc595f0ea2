"""rules/limits: amounts as operators write them, and the moment when enough was had."""

from __future__ import annotations

import pytest

from crawlerproject.rules.limits import LIMITS, BadLimit, Limits, Spent, amount, limits_of, reached


@pytest.mark.parametrize(
    ("name", "text", "number"),
    [
        ("max_pages", "1000", 1000), ("max_pages", "10k", 10_000), ("max_pages", 5, 5), ("max_pages_per_host", "0", 0),
        ("max_time", "90", 90), ("max_time", "1.5h", 5400), ("max_time", "90 min", 5400), ("max_time", "2d", 172_800),
        ("max_time_per_host", "30s", 30),
        ("max_bytes", "10GB", 10**10), ("max_bytes", "1kb", 1000), ("max_bytes", "2MiB", 2 * 2**20),
        ("max_bytes_per_host", "1.5M", 1_500_000),
    ],
)  # fmt: skip
def test_amounts(name: str, text: str | int, number: float) -> None:
    """Decimal units as bytes are shown everywhere, binary ones by their own names; m is a minute of time."""
    assert amount(name, text) == number


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("max_pages", "many"),
        ("max_pages", "-1"),
        ("max_pages", "5h"),
        ("max_time", "1w"),
        ("max_bytes", ""),
        ("max_pages", "0.5"),
        ("max_bytes_per_host", "0.4"),
    ],
)
def test_what_is_no_amount_is_refused(name: str, text: str) -> None:
    """With the argument's name and an example."""
    with pytest.raises(BadLimit, match=f"^{name} is "):
        amount(name, text)


def test_a_limit_is_reached_at_its_number() -> None:
    """The first of pages, time and bytes that is; none of them when none is set."""
    given: dict[str, str | float] = {"max_pages": 3, "max_bytes": "1kB", "max_pages_per_host": 2}
    crawl, host = limits_of(given), limits_of(given, per_host=True)

    assert (crawl, host) == (Limits(3, 0, 1000), Limits(2, 0, 0))
    assert reached(crawl, Spent(2, 1e9, 999)) == ""
    assert reached(crawl, Spent(3, 0, 1000)) == "max_pages=3"
    assert reached(crawl, Spent(2, 0, 1000)) == "max_bytes=1000"
    assert reached(Limits(seconds=7200), Spent(0, 7200.0, 0)) == "max_time=7200"
    assert reached(Limits(bytes=10**10), Spent(0, 0, 10**10)) == "max_bytes=10000000000"
    assert reached(Limits(), Spent(10**9, 1e9, 10**15)) == ""
    assert len(LIMITS) == 6
