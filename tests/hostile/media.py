"""A project's spider with Scrapy's own media pipeline, as its documentation shows it: for SPIDER_MODULES."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy.http import Response
from scrapy.pipelines.files import FilesPipeline

from crawlerproject.spiders.web import WebSpider


class MediaSpider(WebSpider):
    """Every page's files are downloaded beside the crawl."""

    name = "web"
    custom_settings = {"ITEM_PIPELINES": {FilesPipeline: 1}, "FILES_STORE": "files"}

    def extract(self, response: Response) -> Iterator[Any]:
        """One item a page, with what the pipeline is to fetch."""
        yield {"file_urls": [response.urljoin(url) for url in response.css("img::attr(src)").getall()]}
