"""Decides how long pages wait for their next visit, by their importance; and URLs that have shown no page yet.

Of a URL without a page the first answer was no 200, or none came, or it was refused in its queue before any visit. All
that is known is why, so its waits are those of pages (``TIERS``): the shortest after what passes by itself, the third
after what seldom does, and twice the last one each time, up to the longest. Nutch requests a missing page after one and
a half of its interval each time, up to its longest (``AbstractFetchSchedule.setPageGoneSchedule``).

numpy is loaded by ``change_rate`` alone: a crawl that visits no page again has no use for it.
"""

from __future__ import annotations

from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.backoff import THEIR_FAILURES
from crawlerproject.rules.revisits.refetch import DAY_SECONDS

RATE_COUNT = 12
"""Rates of change that a belief weighs (``change_rate.RATES``)."""
NEAR_WEIGHT = 0.2
"""What a near-duplicate change (another date, another advertisement) counts beside a real one (ours)."""
TIERS = ((0.99, 2.0), (0.9, 7.0), (0.5, 14.0), (0.0, 30.0))
"""Longest wait in days by the share of pages that are less important: "Web Crawler" asks for 2 to 30 days by rank."""

_SOON_SECONDS, _LATER_SECONDS, _LONGEST_SECONDS = (TIERS[tier][1] * DAY_SECONDS for tier in (0, 2, 3))

# What seldom passes by itself: the URL leads nowhere, or elsewhere, or to what no reader takes.
_LATER = frozenset(
    {
        Reason.FETCHED,  # 204 and the like
        Reason.NOT_MODIFIED,
        Reason.REDIRECT,
        Reason.HTTP_ERROR,  # below 500
        Reason.CHALLENGE,
        Reason.DNS_NOT_FOUND,
        Reason.TLS_CERTIFICATE,
        Reason.TLS_FAILED,
        Reason.PRIVATE_ADDRESS,
        Reason.BAD_RESPONSE,
        Reason.HEADER_TOO_LARGE,
        Reason.MIDDLEWARE,
        Reason.INTERNAL_ERROR,  # another version may read it
    }
)
_SOON = (
    THEIR_FAILURES - _LATER
    | {Reason.PROXY_FAILED, Reason.OUR_LIMIT, Reason.PACE_GUARD}
    | {Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE, Reason.NEVERCRAWL, Reason.SCOPE, Reason.EXTENSION}
)


def wait_seconds(reason: str, status: int, last_seconds: float) -> float | None:
    """How long a URL waits after an end like this (``status`` 0: no answer); None: a recrawl does not know it.

    ``last_seconds``: its last wait; 0 the first time.
    """
    if reason in _SOON or (reason == Reason.HTTP_ERROR and status >= 500):
        first = _SOON_SECONDS
    elif reason in _LATER:
        first = _LATER_SECONDS
    else:
        return None
    return min(max(first, 2 * last_seconds), _LONGEST_SECONDS)


def longest_wait_days(less_important: float) -> float:
    """The tier of a page, given the share of pages that are less important."""
    return next(days for share, days in TIERS if less_important >= share)
