"""A spider as Scrapy's tutorial has it, which knows nothing of this crawler: for ``scrapy runspider``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response


class PlainSpider(Spider):
    """Asks for all URLs at once, and for one more of each page's links."""

    name = "plain"

    def __init__(self, urls: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = urls.split(",")

    async def start(self) -> AsyncIterator[Request]:
        """All at once: the middleware keeps the pace."""
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        """Follow what a page links to."""
        if response.status == 200:
            yield from response.follow_all(css="a")  # type: ignore[call-arg]
