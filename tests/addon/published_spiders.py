"""Thirty published spiders, as small ones of ours that do what each does; beside the name where the idiom is published.

Each has a host of its own (``address``) with the same small shop of quotations, and writes its items to OUT/NAME.jsonl.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from itemloaders.processors import MapCompose, TakeFirst
from scrapy import FormRequest, Request, signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import DropItem
from scrapy.http import JsonRequest
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.pipelines.files import FilesPipeline
from scrapy.spiders import CrawlSpider, CSVFeedSpider, Rule, SitemapSpider, XMLFeedSpider

PORT = os.environ.get("SHOP_PORT", "80")
OUT = Path(os.environ.get("SHOP_OUT", "."))
NAMES: list[str] = []


def address(name: str) -> str:
    """The loopback address that is this spider's site."""
    return f"127.71.0.{NAMES.index(name) + 1}"


class Published:
    """A feed, and a host of its own."""

    name: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        NAMES.append(cls.name)
        cls.site = f"http://{address(cls.name)}:{PORT}"
        for name in ("start_urls", "sitemap_urls"):
            if given := cls.__dict__.get(name):
                setattr(cls, name, [cls.site + path for path in given])

    site: str

    @classmethod
    def update_settings(cls, settings: Any) -> None:
        super().update_settings(settings)  # type: ignore[misc]
        settings.set("FEEDS", {str(OUT / f"{cls.name}.jsonl"): {"format": "jsonlines"}}, "spider")


class QuotesSave(Published, scrapy.Spider):
    name = "quotes_save"  # Scrapy's tutorial, "Our first Spider"
    start_urls = ["/page/1/", "/page/2/"]

    def parse(self, response: Any, **_: Any) -> None:
        (OUT / f"quotes-{response.url.split('/')[-2]}.html").write_bytes(response.body)


class Quotes(Published, scrapy.Spider):
    name = "quotes"  # Scrapy's tutorial, "Following links"
    start_urls = ["/page/1/"]

    def parse(self, response: Any, **_: Any) -> Any:
        for quote in response.css("div.quote"):
            yield {"text": quote.css("span.text::text").get(), "tags": quote.css("a.tag::text").getall()}
        if (following := response.css("li.next a::attr(href)").get()) is not None:
            yield Request(response.urljoin(following), callback=self.parse)


class QuotesFollow(Published, scrapy.Spider):
    name = "quotes_follow"  # Scrapy's tutorial, "A shortcut for creating Requests"
    start_urls = ["/page/1/"]

    def parse(self, response: Any, **_: Any) -> Any:
        yield from ({"author": quote.css("small::text").get()} for quote in response.css("div.quote"))
        yield from response.follow_all(css="li.next a", callback=self.parse)


class Author(Published, scrapy.Spider):
    name = "author"  # Scrapy's tutorial, "More examples and patterns"
    start_urls = ["/page/1/"]

    def parse(self, response: Any, **_: Any) -> Any:
        yield from response.follow_all(css=".author + a", callback=self.parse_author)
        yield from response.follow_all(css="li.next a", callback=self.parse)

    def parse_author(self, response: Any) -> Any:
        yield {"name": response.css("h3::text").get()}


class QuotesTag(Published, scrapy.Spider):
    name = "quotes_tag"  # Scrapy's tutorial, "Using spider arguments"
    tag = "life"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{self.site}/tag/{self.tag}/", self.parse)

    def parse(self, response: Any, **_: Any) -> Any:
        yield {"title": response.css("title::text").get()}


class ToscrapeCss(Published, scrapy.Spider):
    name = "toscrape_css"  # scrapy/quotesbot, toscrape-css
    start_urls = ["/page/1/"]

    def parse(self, response: Any, **_: Any) -> Any:
        for quote in response.css("div.quote"):
            yield {"text": quote.css("span.text::text").extract_first()}
        if url := response.css("li.next > a::attr(href)").extract_first():
            yield Request(response.urljoin(url))


class ToscrapeXpath(Published, scrapy.Spider):
    name = "toscrape_xpath"  # scrapy/quotesbot, toscrape-xpath
    start_urls = ["/page/1/"]

    def parse(self, response: Any, **_: Any) -> Any:
        for quote in response.xpath('//div[@class="quote"]'):
            yield {"text": quote.xpath('./span[@class="text"]/text()').extract_first()}
        if url := response.xpath('//li[@class="next"]/a/@href').extract_first():
            yield Request(response.urljoin(url))


class Books(Published, scrapy.Spider):
    name = "books"  # scrapy/booksbot
    start_urls = ["/books/"]

    def parse(self, response: Any, **_: Any) -> Any:
        for url in response.css("article h3 > a::attr(href)").extract():
            yield Request(response.urljoin(url), callback=self.parse_book)

    def parse_book(self, response: Any) -> Any:
        yield {"title": response.css("h1::text").get(), "price": response.css("p.price::text").get()}


class BooksCrawl(Published, CrawlSpider):
    name = "books_crawl"  # Scrapy's docs, "CrawlSpider example"; scrapy-book, "easy"
    start_urls = ["/books/"]
    rules = (Rule(LinkExtractor(allow=r"/book/"), callback="parse_book"), Rule(LinkExtractor(restrict_css="li.next")))

    def parse_book(self, response: Any) -> Any:
        yield {"title": response.css("h1::text").get(), "text": response.meta["link_text"]}


class BasicManual(Published, scrapy.Spider):
    name = "basic_manual"  # scrapy-book, "manual": pages by priority, items by ItemLoader
    start_urls = ["/books/"]

    def parse(self, response: Any, **_: Any) -> Any:
        for url in response.xpath("//li[@class='next']/a/@href").extract():
            yield Request(response.urljoin(url), priority=1)
        for url in response.xpath("//h3/a/@href").extract():
            yield Request(response.urljoin(url), callback=self.parse_item)

    def parse_item(self, response: Any) -> Any:
        loader = ItemLoader(item={}, response=response)
        loader.default_output_processor = TakeFirst()
        loader.add_css("title", "h1::text", MapCompose(str.strip, str.title))
        loader.add_value("url", response.url)
        yield loader.load_item()


class Scroll(Published, scrapy.Spider):
    name = "scroll"  # Zyte's "Learn Scrapy", infinite scroll
    start_urls = ["/api/quotes?page=1"]

    def parse(self, response: Any, **_: Any) -> Any:
        data = json.loads(response.text)
        yield from data["quotes"]
        if data["has_next"]:
            yield Request(f"{self.site}/api/quotes?page={data['page'] + 1}")


class Login(Published, scrapy.Spider):
    name = "login"  # Scrapy's docs, "Using FormRequest.from_response() to simulate a user login"
    start_urls = ["/login"]

    def parse(self, response: Any, **_: Any) -> Any:
        return FormRequest.from_response(response, formdata={"username": "a", "password": "b"}, callback=self.inside)

    def inside(self, response: Any) -> Any:
        yield {"inside": b"Logout" in response.body, "path": response.url.rpartition("/")[2]}


class ViewState(Published, scrapy.Spider):
    name = "viewstate"  # Zyte's "Learn Scrapy", forms that load one another
    start_urls = ["/search"]

    def parse(self, response: Any, **_: Any) -> Any:
        state = response.css("input#state::attr(value)").get()
        for author in response.css("select#author > option::attr(value)").getall():
            form = {"author": author, "state": state}
            yield FormRequest(f"{self.site}/filter", formdata=form, callback=self.parse_filtered)

    def parse_filtered(self, response: Any) -> Any:
        yield {"filtered": response.text}


class Script(Published, scrapy.Spider):
    name = "script"  # Scrapy's docs, "Parsing JavaScript code"
    start_urls = ["/js/"]

    def parse(self, response: Any, **_: Any) -> Any:
        yield from json.loads(re.findall(r"var data = (\[.*?\]);", response.text, re.DOTALL)[0])


class Table(Published, scrapy.Spider):
    name = "table"  # Zyte's "Learn Scrapy", tableful
    start_urls = ["/tableful/"]

    def parse(self, response: Any, **_: Any) -> Any:
        for row in response.xpath("//tr"):
            yield {"cells": row.xpath("./td/text()").getall()}


class Csv(Published, CSVFeedSpider):
    name = "csv"  # Scrapy's docs, "CSVFeedSpider example"
    start_urls = ["/feed.csv"]
    delimiter = ";"
    headers = ["id", "name"]

    def parse_row(self, response: Any, row: Any) -> Any:
        return dict(row)


class Xml(Published, XMLFeedSpider):
    name = "xml"  # Scrapy's docs, "XMLFeedSpider example"
    start_urls = ["/feed.xml"]
    itertag = "item"

    def parse_node(self, response: Any, selector: Any) -> Any:
        return {"id": selector.xpath("@id").get(), "name": selector.xpath("name/text()").get()}


class Sitemap(Published, SitemapSpider):
    name = "sitemap"  # Scrapy's docs, "SitemapSpider examples", by rules
    sitemap_urls = ["/sitemap.xml"]
    sitemap_rules = [("/book/", "parse_book"), ("/author/", "parse_author")]

    def parse_book(self, response: Any) -> Any:
        yield {"book": response.css("h1::text").get()}

    def parse_author(self, response: Any) -> Any:
        yield {"author": response.css("h3::text").get()}


class SitemapRobots(Published, SitemapSpider):
    name = "sitemap_robots"  # Scrapy's docs, "SitemapSpider examples", by robots.txt and other URLs
    sitemap_urls = ["/robots.txt"]
    sitemap_rules = [("/book/", "parse_page")]

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        yield Request(f"{self.site}/page/3/", self.parse_page)

    def parse_page(self, response: Any) -> Any:
        yield {"url": response.url}


class Inline(Published, scrapy.Spider):
    name = "inline"  # Scrapy's docs, "Inline requests"
    start_urls = ["/page/3/"]

    async def parse(self, response: Any, **_: Any) -> Any:
        more = Request(response.urljoin("/author/ann"))
        found = await self.crawler.engine.download_async(more)
        yield {"title": response.css("title::text").get(), "author": found.css("h3::text").get()}


class CbKwargs(Published, scrapy.Spider):
    name = "cb_kwargs"  # Scrapy's docs, "Passing additional data to callback functions"
    start_urls = ["/page/3/"]

    def parse(self, response: Any, **_: Any) -> Any:
        yield Request(response.urljoin("/author/ann"), self.parse_second, cb_kwargs={"main_url": response.url})

    def parse_second(self, response: Any, main_url: str) -> Any:
        yield {"main_url": main_url, "other_url": response.url}


class MetaItem(Published, scrapy.Spider):
    name = "meta_item"  # the idiom before cb_kwargs, in most tutorials: an item goes along in meta
    start_urls = ["/books/"]

    def parse(self, response: Any, **_: Any) -> Any:
        for link in response.css("h3 a"):
            yield response.follow(link, self.parse_book, meta={"item": {"listed": link.css("::text").get()}})

    def parse_book(self, response: Any) -> Any:
        yield response.meta["item"] | {"price": response.css("p.price::text").get()}


class Errback(Published, scrapy.Spider):
    name = "errback"  # Scrapy's docs, "Using errbacks to catch exceptions in request processing"

    async def start(self) -> AsyncIterator[Any]:
        for path in ("/page/3/", "/missing", "/broken"):
            yield Request(self.site + path, self.parse, errback=self.failed, dont_filter=True)

    def parse(self, response: Any, **_: Any) -> Any:
        yield {"good": response.url}

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": failure.value.response.status, "kind": failure.type.__name__}


class Statuses(Published, scrapy.Spider):
    name = "statuses"  # Scrapy's docs, HttpErrorMiddleware: a broken link checker
    handle_httpstatus_list = [404]
    start_urls = ["/page/3/", "/missing"]

    def parse(self, response: Any, **_: Any) -> Any:
        yield {"url": response.url, "status": response.status}


class Prices(Published, scrapy.Spider):
    name = "prices"  # Scrapy's docs, "Price validation" and "Duplicates filter"
    start_urls = ["/books/"]
    custom_settings = {"ITEM_PIPELINES": {f"{__name__}.PricePipeline": 300}}

    def parse(self, response: Any, **_: Any) -> Any:
        for link in response.css("h3 a"):
            yield {"name": link.css("::text").get(), "price": 10 if "1" in link.attrib["href"] else None}


class PricePipeline:
    """Raises the price, and drops what has none."""

    def process_item(self, item: Any) -> Any:
        if not item["price"]:
            raise DropItem("Missing price")
        return item | {"price": item["price"] * 1.15}


class Header(Published, scrapy.Spider):
    name = "header"  # Scrapy's docs, "Writing your own downloader middleware"
    start_urls = ["/echo"]
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {f"{__name__}.HeaderMiddleware": 543}}

    def parse(self, response: Any, **_: Any) -> Any:
        yield {"echo": response.text, "flags": response.flags}


class HeaderMiddleware:
    """Adds one field to a request and a flag to its response."""

    def process_request(self, request: Any) -> None:
        request.headers["X-Mine"] = "yes"

    def process_response(self, request: Any, response: Any) -> Any:
        return response.replace(flags=[*response.flags, "mine"])


class Links(Published, scrapy.Spider):
    name = "links"  # Scrapy's docs, link extractors: a whole site, with depth and domain as bounds
    start_urls = ["/"]
    custom_settings = {"DEPTH_LIMIT": 2}
    allowed_domains = ["127.71.0.27"]

    def parse(self, response: Any, **_: Any) -> Any:
        yield {"url": response.url, "depth": response.meta["depth"]}
        for link in LinkExtractor().extract_links(response):
            yield Request(link.url)


class Files(Published, scrapy.Spider):
    name = "files"  # Scrapy's docs, "Using the Files Pipeline"
    start_urls = ["/page/3/"]
    custom_settings = {"ITEM_PIPELINES": {FilesPipeline: 1}, "FILES_STORE": str(OUT / "files")}

    def parse(self, response: Any, **_: Any) -> Any:
        yield {"file_urls": [response.urljoin("/feed.csv"), response.urljoin("/feed.xml")]}


class Again(Published, scrapy.Spider):
    name = "again"  # Scrapy's docs, get_retry_request
    start_urls = ["/empty"]

    def parse(self, response: Any, **_: Any) -> Any:
        if not response.text:
            yield get_retry_request(response.request, spider=self, reason="empty", max_retry_times=1)
            return
        yield {"text": response.text}


class Sessions(Published, scrapy.Spider):
    name = "sessions"  # Scrapy's docs, "Multiple cookie sessions per spider"

    async def start(self) -> AsyncIterator[Any]:
        for jar in (1, 2):
            yield Request(f"{self.site}/cookie?{jar}", meta={"cookiejar": jar})

    def parse(self, response: Any, **_: Any) -> Any:
        jar = {"cookiejar": response.meta["cookiejar"]}
        yield response.follow(f"/echo?{jar['cookiejar']}", self.parse_echo, meta=jar)

    def parse_echo(self, response: Any) -> Any:
        yield {"cookie": re.findall("Cookie: (.*)", response.text)}


class Posts(Published, scrapy.Spider):
    name = "posts"  # Scrapy's docs, "JsonRequest usage example", and a search server's GET with a body

    async def start(self) -> AsyncIterator[Any]:
        yield JsonRequest(f"{self.site}/filter", data={"name": "value"})
        yield Request(f"{self.site}/filter?get", body=b'{"query": {}}')

    def parse(self, response: Any, **_: Any) -> Any:
        yield {"answer": response.text}


class Closed(Published, scrapy.Spider):
    name = "closed"  # Scrapy's docs, signals: spider_closed, and a count of one's own
    start_urls = ["/page/3/"]

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.spider_closed, signal=signals.spider_closed)
        return spider

    def spider_closed(self, spider: Any) -> None:
        self.crawler.stats.set_value("own/closed", 1)

    def parse(self, response: Any, **_: Any) -> Any:
        self.crawler.stats.inc_value("own/pages")
        yield {"url": response.url}
