"""How long URLs without a page wait."""

import pytest

from crawlerproject.reasons import Reason
from crawlerproject.rules.revisits.refetch import DAY_SECONDS
from crawlerproject.rules.revisits.waits import wait_seconds

# Refused for good, of a row that is no page, or not an end of a page at all.
NEVER = {
    Reason.RENDERED, Reason.SUBSCRIBED, Reason.INVALID_URL, Reason.SCHEME, Reason.DEPTH, Reason.URL_LENGTH,
    Reason.BUDGET, Reason.TRAP, Reason.STRANGER, Reason.STRANGER_DOOR, Reason.SITEMAP_BUDGET,
    Reason.REQUISITE_BUDGET, Reason.ROBOTS_REDIRECT, Reason.NOFOLLOW, Reason.RENDER_PACE, Reason.HOST_PARKED,
    Reason.FOREIGN_ENTRY, Reason.BAD_PORT, Reason.TOO_MANY_PORTS, Reason.TOO_MANY_HOSTS, Reason.TOO_MANY_NAMES,
    Reason.POISON, Reason.HUB_UNPROVEN, Reason.PAUSED,
    Reason.HOST_LIMIT, Reason.CRAWL_LIMIT, Reason.RENDER_TIMEOUT, Reason.RENDER_FAILED, Reason.LOST,
}  # fmt: skip


def days(reason: Reason, status: int = 0, last_days: float = 0.0) -> float | None:
    """The wait in days."""
    seconds = wait_seconds(reason, status, last_days * DAY_SECONDS)
    return None if seconds is None else seconds / DAY_SECONDS


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_its_place(reason: Reason) -> None:
    """Either it is looked at again or it is named here."""
    assert (days(reason) is None) == (reason in NEVER)


@pytest.mark.parametrize(
    ("reason", "status", "first"),
    [
        (Reason.HTTP_ERROR, 500, 2.0),
        (Reason.HTTP_ERROR, 404, 14.0),
        (Reason.REDIRECT, 301, 14.0),
        (Reason.RATE_LIMITED, 503, 2.0),
        (Reason.DISCONNECTED, 0, 2.0),
        (Reason.DNS_NOT_FOUND, 0, 14.0),
        (Reason.ROBOTS, 0, 2.0),
        (Reason.INTERNAL_ERROR, 0, 14.0),
    ],
)
def test_what_passes_is_looked_at_sooner(reason: Reason, status: int, first: float) -> None:
    """Two days or two weeks, then twice as long each time, at most thirty days."""
    assert [days(reason, status, last) for last in (0.0, first, 20.0, 30.0)] == [first, 2 * first, 30.0, 30.0]


def test_another_end_shortens_no_wait() -> None:
    """A host that was missing and now breaks off is not asked more often for it."""
    assert days(Reason.DISCONNECTED, 0, 14.0) == 28.0
    assert days(Reason.DNS_NOT_FOUND, 0, 2.0) == 14.0
