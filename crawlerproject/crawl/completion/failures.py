"""From the error with which a request ended to the outcome of its lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

from crawlerproject.errors import FetchError
from crawlerproject.guard.pace import Refused
from crawlerproject.items import FailedFetch, FailedRender, RenderFailed, failed
from crawlerproject.reasons import Reason

if TYPE_CHECKING:
    from crawlerproject.frontier.lease import Lease


def outcome_of_error(lease: Lease, error: BaseException) -> FailedFetch | FailedRender:
    """The outcome; its reason is ``INTERNAL_ERROR`` for an error of our own."""
    if isinstance(error, RenderFailed):
        return FailedRender(error.reason, error.detail or str(error), error.rendered, error.again)
    if isinstance(error, FetchError) and lease.row.kind.is_render and error.reason is Reason.OUR_LIMIT:
        return FailedRender(error.reason, str(error), again=True)
    if isinstance(error, FetchError) and not lease.row.kind.is_render:
        return FailedFetch(error.reason, error.detail or str(error), error.wire)
    if isinstance(error, FetchError | Refused):
        return failed(lease, error.reason, str(error))
    # Any other IgnoreRequest is the word of a middleware of the project.
    reason = Reason.MIDDLEWARE if isinstance(error, IgnoreRequest) else Reason.INTERNAL_ERROR
    return failed(lease, reason, str(error))
