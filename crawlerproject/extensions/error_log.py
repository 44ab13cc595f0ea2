"""Errors of the program itself, kept apart from what the web does wrong: ``log/errors.log`` with their tracebacks.

Nielsen's two kinds: what is anticipated is one line of the request log; what is not has a file of its own, and many of
it in a row stop the crawl (OWN_ERRORS_MAX_IN_A_ROW).
"""

from __future__ import annotations

import logging
from contextlib import suppress

from scrapy.crawler import Crawler

from crawlerproject.extensions.crawl_task import CrawlExtension

_FORMAT = "%(asctime)s [%(name)s] %(levelname)s: %(message)s"


class _ErrorFile(logging.FileHandler):
    """Made with the first traceback; where no file can be made now, the log of the crawl alone has it."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # else it would end what logs: a crawl that Scrapy closes would never come to its end
            super().emit(record)


class ErrorLog(CrawlExtension):
    """Copies every logged traceback into the crawl's folder; the file is made with the first of them."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._handler: logging.Handler | None = None

    def spider_opened(self) -> None:
        """Begin to copy tracebacks."""
        if (scheduler := self.scheduler) is None:
            return
        handler = _ErrorFile(scheduler.crawl.folder.errors_log, encoding="utf-8", delay=True)
        handler.setLevel(logging.ERROR)
        handler.setFormatter(logging.Formatter(_FORMAT))
        handler.addFilter(lambda record: bool(record.exc_info))
        logging.getLogger().addHandler(handler)
        self._handler = handler

    def spider_closed(self) -> None:
        """Close the file."""
        if self._handler is not None:
            logging.getLogger().removeHandler(self._handler)
            self._handler.close()
            self._handler = None
