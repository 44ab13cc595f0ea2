"""What visits are measured by: rates, weights, and how long a page may wait for its next.

Apart from ``change_rate``, which loads numpy: a crawl that visits no page again has no use for it.
"""

from __future__ import annotations

RATE_COUNT = 12
"""Rates of change that a belief weighs (``change_rate.RATES``)."""
NEAR_WEIGHT = 0.2
"""What a near-duplicate change (another date, another advertisement) counts beside a real one (ours)."""
TIERS = ((0.99, 2.0), (0.9, 7.0), (0.5, 14.0), (0.0, 30.0))
"""Longest wait in days by the share of pages that are less important: "Web Crawler" asks for 2 to 30 days by rank."""


def longest_wait_days(less_important: float) -> float:
    """The tier of a page, given the share of pages that are less important."""
    return next(days for share, days in TIERS if less_important >= share)
