"""Decides when a recrawl looks again at a URL that has shown no page yet.

Its first answer was no 200, or none came, or it was refused in its queue before any visit. Nothing is known of such a
page but why there is none, so its waits are those of pages (``scale.TIERS``): the shortest after what passes by itself,
the third after what seldom does, and twice the last one each time, up to the longest. Nutch asks for a missing page
after one and a half of its interval each time, up to its longest (``AbstractFetchSchedule.setPageGoneSchedule``).
"""

from __future__ import annotations

from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.backoff import THEIR_FAILURES
from crawlerproject.rules.revisits.refetch import DAY_SECONDS
from crawlerproject.rules.revisits.scale import TIERS

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
