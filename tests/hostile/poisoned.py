"""The crawler's own spider, but for pages that end the process while they are read: for SPIDER_MODULES."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

from scrapy.http import Response

from crawlerproject.spiders.web import WebSpider

MARKER = b"this page kills its reader"


class PoisonedSpider(WebSpider):
    """As a parser with a fault would: no exception, no last word."""

    name = "web"

    def extract(self, response: Response) -> Iterator[Any]:
        """Called while a page is read."""
        if MARKER in response.body:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from ()
