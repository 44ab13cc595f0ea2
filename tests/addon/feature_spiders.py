"""Spiders that know nothing of this crawler, one for each line of docs/addon.md's table: for a foreign project.

Each has hosts of its own, named after it, and writes what it yields to out/NAME.jsonl.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import scrapy
from scrapy.exceptions import CloseSpider, DropItem
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.pipelines.files import FilesPipeline
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider
from scrapy_playwright.page import PageMethod

PORT = "%PORT%"


def at(path: str, host: str) -> str:
    """A URL of one of the arena's sites."""
    return f"http://{host}.test:{PORT}{path}"


class Feature:
    """What all have: a feed, and their own host."""

    name: str

    @classmethod
    def update_settings(cls, settings: Any) -> None:
        super().update_settings(settings)  # type: ignore[misc]
        settings.set("FEEDS", {f"out/{cls.name}.jsonl": {"format": "jsonlines", "overwrite": True}}, "spider")

    def at(self, path: str, host: str = "") -> str:
        return at(path, host or self.name)

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(self.at("/"))

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield self.said(response)

    def said(self, response: Response, **more: Any) -> dict[str, Any]:
        path = response.url.partition(f":{PORT}")[2]
        return {"path": path, "status": response.status, **more}

    def failed(self, failure: Any) -> Iterator[dict[str, Any]]:
        kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(failure.value).__mro__]
        yield {"path": failure.request.url.partition(f":{PORT}")[2], "failed": kinds}


class Login(Feature, scrapy.Spider):
    name = "login"

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield scrapy.FormRequest.from_response(
            cast("TextResponse", response), formdata={"user": "me"}, callback=self.inside
        )

    def inside(self, response: Response) -> Any:
        yield self.said(response)


class Retry(Feature, scrapy.Spider):
    name = "retry"

    async def start(self) -> AsyncIterator[Any]:
        for path in ("/flaky", "/hangup"):
            yield scrapy.Request(self.at(path))


class Redirect(Feature, scrapy.Spider):
    name = "redirect"

    async def start(self) -> AsyncIterator[Any]:
        for path in ("/moved", "/to-no", "/refresh"):
            yield scrapy.Request(self.at(path))

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield self.said(response, times=response.meta.get("redirect_times", 0))


class Offsite(Feature, scrapy.Spider):
    name = "offsite"
    allowed_domains = ["offsite.test"]

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield self.said(response)
        yield scrapy.Request(self.at("/", "elsewhere"))
        yield scrapy.Request(self.at("/home"))


class Depth(Feature, scrapy.Spider):
    name = "depth"
    custom_settings = {"DEPTH_LIMIT": 2}

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield self.said(response, depth=response.meta["depth"])
        yield response.follow(f"/{response.meta['depth'] + 1}")


class Errors(Feature, scrapy.Spider):
    """HttpError: a 404 reaches the errback, one that was asked for the callback."""

    name = "errors"

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(self.at("/404"), errback=self.failed)
        yield scrapy.Request(self.at("/404-wanted"), meta={"handle_httpstatus_list": [404]})
        yield scrapy.Request(self.at("/404-silent"))
        yield scrapy.Request(at("/", "nowhere"), errback=self.failed, meta={"dont_retry": True})
        yield scrapy.Request(self.at("/no/1"), errback=self.failed)


class Priority(Feature, scrapy.Spider):
    name = "priority"

    def parse(self, response: Response, **kwargs: Any) -> Any:
        for number in (0, 3, 1, 5, 2, 4):
            yield scrapy.Request(self.at(f"/{number}"), self.parse_one, priority=number)

    def parse_one(self, response: Response) -> Any:
        if response.url.endswith("/5"):
            yield scrapy.Request(self.at("/9"), self.parse_one, priority=9)


class Cache(Feature, scrapy.Spider):
    name = "cache"
    custom_settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": "cached"}

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield self.said(response, cached="cached" in response.flags)
        if response.meta["depth"] < 2:
            yield scrapy.Request(response.url, dont_filter=True)


class Headers(Feature, scrapy.Spider):
    """Referer, and the name that is sent, by which robots.txt is read."""

    name = "headers"
    custom_settings = {
        "USER_AGENT": "Mozilla/5.0 (compatible; foobot/2.1; +https://foo.example/)",
        "DEFAULT_REQUEST_HEADERS": {"Accept-Language": "eo"},
    }

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield response.follow("/next", self.parse_next)
        yield response.follow("/foobot", self.parse_next)

    def parse_next(self, response: Response) -> Any:
        yield self.said(response)


class Rules(Feature, CrawlSpider):
    name = "rules"
    rules = (Rule(LinkExtractor(allow=r"/item/"), callback="parse_item"), Rule(LinkExtractor(allow=r"/page/")))

    def parse_item(self, response: Response) -> Any:
        yield self.said(response)


class Sitemap(Feature, SitemapSpider):
    name = "sitemap"
    sitemap_rules = [("/item/", "parse_item")]

    async def start(self) -> AsyncIterator[Any]:
        self.sitemap_urls = [self.at("/robots.txt")]
        async for request in SitemapSpider.start(self):
            yield request

    def parse_item(self, response: Response) -> Any:
        yield self.said(response)


class Checked(Feature, scrapy.Spider):
    """For ``scrapy check``."""

    name = "checked"

    def parse(self, response: Response, **kwargs: Any) -> Any:
        """A page.

        @url http://checked.test:%PORT%/good
        @returns items 1 1
        @scrapes path status
        """
        yield self.said(response)

    def parse_bad(self, response: Response) -> Any:
        """A page without items.

        @url http://checked.test:%PORT%/bad
        @returns items 1 1
        """
        return []


class Choosy:
    """A pipeline and middlewares of a project."""

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        if item["path"] == "/b":
            raise DropItem("not wanted")
        return item | {"seen": True}

    def process_request(self, request: scrapy.Request) -> None:
        request.headers["X-Mine"] = "yes"

    def process_spider_output(self, response: Response, result: Any) -> Iterator[Any]:
        yield from result

    async def process_spider_output_async(self, response: Response, result: Any) -> AsyncIterator[Any]:
        async for one in result:
            yield one | {"spidermw": True} if isinstance(one, dict) else one


class Pipelines(Feature, scrapy.Spider):
    name = "pipelines"
    custom_settings = {
        "ITEM_PIPELINES": {f"{__name__}.Choosy": 300},
        "DOWNLOADER_MIDDLEWARES": {f"{__name__}.Choosy": 543},
        "SPIDER_MIDDLEWARES": {f"{__name__}.Choosy": 543},
    }

    async def start(self) -> AsyncIterator[Any]:
        for path in ("/a", "/b", "/c"):
            yield scrapy.Request(self.at(path))


class Files(Feature, scrapy.Spider):
    name = "files"
    custom_settings = {"ITEM_PIPELINES": {FilesPipeline: 1}, "FILES_STORE": "kept"}

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield {"file_urls": [self.at("/paper.pdf"), self.at("/photo.jpg")]}


class Bounds(Feature, scrapy.Spider):
    """DOWNLOAD_TIMEOUT is not used up by waiting for the pace (1.2 s by robots.txt); what was cut is a failure."""

    name = "bounds"
    custom_settings = {"DOWNLOAD_TIMEOUT": 1.0, "DOWNLOAD_MAXSIZE": 5_000, "RETRY_ENABLED": False}

    async def start(self) -> AsyncIterator[Any]:
        for path in ("/a", "/large", "/lost", "/b"):
            yield scrapy.Request(self.at(path), errback=self.failed)
        yield scrapy.Request(self.at("/silent", "silent"), errback=self.failed)
        yield scrapy.Request(self.at("/lost-part"), meta={"download_fail_on_dataloss": False})

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield self.said(response, flags=response.flags)


class Client(Feature, scrapy.Spider):
    """What Scrapy's own client does with a request and its answer."""

    name = "client"
    custom_settings = {"DOWNLOAD_WARNSIZE": 5_000, "DOWNLOAD_BIND_ADDRESS": "127.9.9.9"}

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(self.at("/search#part"), body=b'{"query": 1}')
        yield scrapy.Request(self.at("/zstd"), headers={"Host": "other.test"})
        own = {"Accept-Encoding": "identity"}
        yield scrapy.Request(self.at("/plain"), headers=own, meta={"bindaddress": "127.9.9.8"})
        yield scrapy.Request(self.at("/large"))
        yield scrapy.Request(self.at("/too-large"), meta={"download_maxsize": 100}, errback=self.failed)
        yield scrapy.Request(self.at("/no/1"), meta={"dont_obey_robotstxt": True})

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield self.said(response, text=response.text[:20], flags=response.flags)


class Browsed(Feature, scrapy.Spider):
    """scrapy-playwright's keys."""

    name = "browsed"

    async def start(self) -> AsyncIterator[Any]:
        clicks = [PageMethod("click", "button"), PageMethod("wait_for_selector", "#shown")]
        yield scrapy.Request(self.at("/"), meta={"playwright": True, "playwright_page_methods": clicks})
        kept = {"playwright": True, "playwright_include_page": True}
        yield scrapy.Request(self.at("/kept"), meta=kept, errback=self.failed)

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield self.said(response, shown=response.css("#shown::text").get())


class Resting(Feature, scrapy.Spider):
    """A host that asks to be left alone."""

    name = "resting"
    custom_settings = {"LOGSTATS_INTERVAL": 0.2}

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(self.at("/"), meta={"max_retry_times": 1})


class Delay(Feature, scrapy.Spider):
    name = "delay"
    custom_settings = {
        "DOWNLOAD_DELAY": 0.5, "DOWNLOAD_DELAY_JITTER": 0, "AUTOTHROTTLE_ENABLED": True,
        "AUTOTHROTTLE_START_DELAY": 0.6,
    }  # fmt: skip

    async def start(self) -> AsyncIterator[Any]:
        for path in ("/a", "/b", "/c", "/d"):
            yield scrapy.Request(self.at(path))


class Blocking(Feature, scrapy.Spider):
    """More pages of a slow host than there are places; those of a quick one are found when all those wait."""

    name = "blocking"
    custom_settings = {"CONCURRENT_REQUESTS": 2}

    async def start(self) -> AsyncIterator[Any]:
        for number in range(5):
            yield scrapy.Request(self.at(f"/{number}", "slow"))

    def parse(self, response: Response, **kwargs: Any) -> Any:
        if response.url.startswith(self.at("/", "slow")):
            for number in range(3):
                yield scrapy.Request(self.at(f"/{number}", "quick"))


class Promises(Feature, scrapy.Spider):
    """Everything off that Scrapy can switch off, the add-on too."""

    name = "promises"
    custom_settings = {"ADDONS": {}, "ROBOTSTXT_OBEY": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "DOWNLOAD_DELAY": 0}

    async def start(self) -> AsyncIterator[Any]:
        for path in ("/1", "/2", "/3", "/no/4"):
            yield scrapy.Request(self.at(path))
        yield scrapy.Request(self.at("/", "never"))


class Signals(Feature, scrapy.Spider):
    """Signals of the engine, and the two that our client does not send."""

    name = "signals"

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        for name in ("response_received", "response_downloaded", "item_scraped", "bytes_received", "headers_received"):
            count = spider.counting(name)
            crawler.signals.connect(count, getattr(scrapy.signals, name), weak=False)
        return spider

    def counting(self, name: str) -> Any:
        return lambda **_: self.crawler.stats.inc_value(f"signals/{name}")


class Jobs(Feature, scrapy.Spider):
    """Stops after its first page, and goes on where it is started again."""

    name = "jobs"
    custom_settings = {"JOBDIR": "job"}

    async def start(self) -> AsyncIterator[Any]:
        for path in ("/a", "/b", "/c"):
            yield scrapy.Request(self.at(path))

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield self.said(response)
        if not Path("job/stopped").exists():
            Path("job/stopped").touch()
            raise CloseSpider("enough")
