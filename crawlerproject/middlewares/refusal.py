"""The one way in which our downloader middlewares refuse a request."""

from __future__ import annotations

import logging

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.statscollectors import StatsCollector

from crawlerproject.middlewares.leased import lease_in
from crawlerproject.reasons import Reason

logger = logging.getLogger(__name__)


class Refused(IgnoreRequest):
    """A request that we will not send; ``reason`` is the word for log and stats, ``detail`` one line for humans."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason
        self.detail = detail


def refused(stats: StatsCollector | None, request: Request, reason: Reason, detail: str = "") -> Refused:
    """Count a refusal (``refused/<reason>``), log one line, and return what the middleware raises."""
    if stats is not None:
        stats.inc_value(f"refused/{reason}")
    # In the shell and in other spiders a refusal is news; in a crawl the request log has it.
    level = logging.DEBUG if lease_in(request) is not None else logging.INFO
    logger.log(level, "Refused (%s): %s %s", reason, request.url, detail)
    return Refused(reason, detail)
