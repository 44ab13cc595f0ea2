"""The one way in which a request is refused that is on its way already."""

from __future__ import annotations

import logging

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.statscollectors import StatsCollector

from crawlerproject.reasons import Reason

logger = logging.getLogger(__name__)


class Refused(IgnoreRequest):
    """A request that we will not send; ``reason`` is the word for log and stats, ``detail`` one line for humans."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason
        self.detail = detail


def refused(
    stats: StatsCollector | None, request: Request, reason: Reason, detail: str = "", *, logged: bool = False
) -> Refused:
    """Count a refusal (``refused/<reason>``) and return it, to be raised; a line, unless it is ``logged`` elsewhere.

    The request log has a leased request's; in the shell and in other spiders a refusal is news.
    """
    if stats is not None:
        stats.inc_value(f"refused/{reason}")
    level, known = logging.DEBUG if logged else logging.INFO, {"url": request.url, "reason": reason}
    logger.log(level, "Refused (%s): %s %s", reason, request.url, detail, extra=known)
    return Refused(reason, detail)
