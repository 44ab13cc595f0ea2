"""An extension for a crawl in a process of its own, which is killed while it chooses known pages."""

from __future__ import annotations

import os
import signal
from typing import Any

from scrapy.crawler import Crawler

from crawlerproject.crawl.start import bootstrap
from crawlerproject.fleet.redis import revisit_round
from crawlerproject.frontier.learned import revisits

AT = "DIES_AT"
"""Setting: the page at which it dies."""
A_CHANGE = 3
"""Pages that are queued at a time, so that a small web makes several changes; in Redis less than twice as many."""


class DyingWhileChoosing:
    """Sends its own process SIGKILL at the page whose number is given, before the change that holds it is stored."""

    def __init__(self, at: int) -> None:
        self._left = at
        for module in (bootstrap, revisit_round):
            module.again = self._again  # type: ignore[attr-defined]
        bootstrap._REVISITS_AT_A_TIME = revisit_round._A_TURN = revisit_round._A_COMMIT = A_CHANGE

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DyingWhileChoosing:
        """Scrapy's way to make one."""
        return cls(crawler.settings.getint(AT))

    def _again(self, *page: Any) -> Any:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)
        return revisits.again(*page)
