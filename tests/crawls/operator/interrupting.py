"""An extension for a crawl in a process of its own: Ctrl-C comes while Scrapy's engine still starts."""

from __future__ import annotations

import os
import signal

from scrapy import signals
from scrapy.crawler import Crawler


class InterruptedOpening:
    """Sends its own process a signal as soon as the spider has been opened."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> InterruptedOpening:
        """Scrapy's way to make one."""
        made = cls()
        crawler.signals.connect(made.interrupt, signal=signals.spider_opened)
        return made

    def interrupt(self) -> None:
        """SIGINT."""
        os.kill(os.getpid(), signal.SIGINT)
