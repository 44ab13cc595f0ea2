"""Whose a failure may be, and how often a line that is gone is tried."""

from __future__ import annotations

import pytest

from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.whose_failure import is_doubtful, next_try_seconds


@pytest.mark.parametrize(
    ("reason", "status", "reached_before", "any_reached", "doubtful"),
    [
        (Reason.CONNECT_REFUSED, None, False, True, True),
        (Reason.CONNECT_REFUSED, None, False, False, False),  # an answer, where no host is known to be good
        (Reason.DNS_FAILED, None, False, False, True),
        (Reason.DNS_NOT_FOUND, None, False, True, False),
        (Reason.DNS_NOT_FOUND, None, True, True, True),  # some resolvers say so of all names
        (Reason.TLS_CERTIFICATE, None, False, True, True),  # a captive portal's
        (Reason.BAD_RESPONSE, None, True, True, False),
        (Reason.INTERNAL_ERROR, None, True, True, False),
        (Reason.HTTP_ERROR, 500, True, True, False),
        (Reason.HTTP_ERROR, 511, True, True, True),  # RFC 6585 section 6
    ],
)
def test_what_may_be_our_own_doing(
    reason: Reason, status: int | None, reached_before: bool, any_reached: bool, doubtful: bool
) -> None:
    """What a cut line looks like; what only a server can have said is the server's."""
    assert is_doubtful(reason, status, reached_before=reached_before, any_reached=any_reached) is doubtful


def test_the_line_is_tried_soon_and_then_every_minute() -> None:
    """Seconds between tries: doubled from five on, however many have failed."""
    assert [next_try_seconds(failed) for failed in (0, 1, 2, 3, 4, 10**9)] == [5, 10, 20, 40, 60, 60]
