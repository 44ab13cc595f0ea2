"""Ordinary Scrapy idioms in a spider of one's own: none of them switches a promise off, hangs a crawl or widens it.

Each in a fresh foreign project under the add-on and in ours; judged by the servers' log.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from crawlerproject.reports.warc_check import check_file
from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.arena import PACE_SECONDS, SETTINGS, Arena, Asked, answer, arena, page
from tests.hostile.ledger import pays
from tests.web import zygote
from tests.web.running import PROJECT

RULES = answer("User-agent: *\nDisallow: /no", mime="text/plain")
ADDON = '\nADDONS = {"crawlerproject.addon.PoliteCrawl": 100}\nCOMMANDS_MODULE = "crawlerproject.commands"\n'
# A server notes an answer's end when its thread has its turn; what breaks the pace comes at once.
PACED = PACE_SECONDS - 0.02

IDIOMS = '''
import asyncio
import scrapy
from scrapy.exceptions import DropItem, IgnoreRequest
from crawlerproject.spiders.web import WebSpider


class Mine:
    """A middleware and a pipeline of a tutorial."""

    def process_request(self, request):
        return None

    def process_item(self, item):
        return item


class Raises(Mine):
    def process_item(self, item):
        raise KeyError("title") if "url" not in item or item["url"].endswith("/bad") else RuntimeError("all the same")


class Drops(Mine):
    def process_item(self, item):
        raise DropItem("not wanted")


class Meddles:
    """Drops one request, answers one, puts another in the place of two."""

    def process_request(self, request):
        if request.url.endswith("/drop"):
            raise IgnoreRequest("not this one")
        if request.url.endswith("/fake"):
            return scrapy.http.HtmlResponse(request.url, body=b"<title>fake</title>", request=request)
        if request.url.endswith("/swap"):
            return scrapy.Request(request.url + "ped", callback=request.callback)

    def process_response(self, request, response):
        return request.replace(url=request.url + "/again") if request.url.endswith("/late") else response


SCRAPYS = "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"
CHAIN = {__name__ + ".Mine": 543}
ALL = {
    "DOWNLOADER_MIDDLEWARES": CHAIN, "SPIDER_MIDDLEWARES": {}, "EXTENSIONS": {}, "ITEM_PIPELINES": {},
    "DOWNLOAD_HANDLERS": {"http": SCRAPYS}, "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    "HTTPERROR_ALLOW_ALL": False, "REDIRECT_ENABLED": True, "RETRY_ENABLED": True, "RETRY_TIMES": 1,
}


class Plain(scrapy.Spider):
    name = "plain"
    custom_settings = {
        "DOWNLOADER_MIDDLEWARES": CHAIN, "DOWNLOAD_HANDLERS": {"http": SCRAPYS}, "ADDONS": {},
        "REDIRECT_ENABLED": True, "RETRY_ENABLED": True, "RETRY_TIMES": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    }

    async def start(self):
        forged = {"robots_checked": True, "lease": "twelve months", "address": "12 High Street", "delay_seconds": 0}
        for path in ("1", "2", "3", "no/4", "moved", "503"):
            yield scrapy.Request(self.site + path, meta=dict(forged), dont_filter=True)
        yield scrapy.Request(self.never)

    def parse(self, response):
        yield {"url": response.url, "address": response.meta["address"]}


class Handled(Plain):
    name = "handled"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": CHAIN, "DOWNLOAD_HANDLERS": {"http": SCRAPYS}}


class Titles(WebSpider):
    scope = "host"

    def extract(self, response):
        yield {"url": response.url}


class Raising(Titles):
    name = "raising"
    custom_settings = {"ITEM_PIPELINES": {__name__ + ".Raises": 100}}


class Dropping(Titles):
    name = "dropping"
    custom_settings = {"ITEM_PIPELINES": {__name__ + ".Drops": 1}}


class Replaced(WebSpider):
    """All of it at once, and ``parse`` as in the tutorial of asynchronous spiders."""

    name = "replaced"
    scope = "host"
    custom_settings = ALL

    async def parse(self, response):
        await asyncio.sleep(0.3)  # longer than COMMIT_SECONDS
        yield {"url": response.url}


class Meddling(Titles):
    name = "meddling"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {__name__ + ".Meddles": 950}}


class Asking(WebSpider):
    """Yields requests by itself, with the meta of the answer."""

    name = "asking"
    scope = "host"

    def extract(self, response):
        for path in ("own/1", "own/2", "no/own"):
            yield scrapy.Request(self.site + path, self.parse_own, meta=response.meta)
        yield scrapy.Request(self.never, self.parse_own, dont_filter=True)

    def parse_own(self, response):
        yield {"own": response.url}
'''


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Sites named after what happens there, and one that is never to be asked."""
    with arena(tmp_path_factory.mktemp("idioms")) as web:
        yield web


def site(web: Arena, name: str, *links: str) -> str:
    """A site of a front page with links, and of any other page; /no is forbidden."""

    def make(asked: Asked) -> bytes | None:
        match asked.path:
            case "/robots.txt":
                return RULES
            case "/moved":
                return answer(status="302 Found", Location="/target")
            case "/503":
                return answer(status="500 Internal Server Error")
            case "/":
                return page(*links, text=name)
        return page(text=f"{name} {asked.path} " + " ".join(f"{asked.path[1:]}x{n}" for n in range(40)))

    return web.site(name, make)


@pytest.fixture(scope="module", params=["ours", "foreign"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the spiders are run: this project, or a fresh one with the add-on."""
    folder = tmp_path_factory.mktemp("home")
    if request.param == "ours":
        (folder / "spiders_here").mkdir()
        (folder / "spiders_here" / "idioms.py").write_text(IDIOMS)
        return folder
    assert scrapy(folder, "startproject", "other").returncode == 0
    settings = folder / "other" / "other" / "settings.py"
    settings.write_text(settings.read_text() + ADDON)
    (folder / "other" / "other" / "spiders" / "idioms.py").write_text(IDIOMS)
    return folder / "other"


def scrapy(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in that folder, with this project on the path."""
    return zygote.run(
        [sys.executable, "-m", "scrapy", *arguments], cwd=folder, env=zygote.direct() | {"PYTHONPATH": str(PROJECT)}
    )


def run(web: Arena, home: Path, spider: str, crawl: Path, **given: str) -> str:
    """Run one of the spiders to its end; what it logged."""
    never = crawl.parent / "never.txt"
    never.write_text("never.test\n")
    settings = SETTINGS | {
        "NEVERCRAWL_FILE": str(never), "CRAWL_DIR": str(crawl), "FETCH_HOSTS_FILE": str(web.folder / "hosts"),
        "FETCH_ALLOW_NETWORKS": "127.0.0.0/8", "CRAWLER_CONTACT": "tests@example.org", "COMMIT_SECONDS": "0.2",
        "FRONTIER_MAX_REST_SECONDS": "5",
    }  # fmt: skip
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    options += [part for name, value in given.items() for part in ("-a", f"{name}={value}")]
    options += ["-O", str(crawl.parent / "items.jsonl")]
    if (here := home / "spiders_here").exists():
        # By the class itself and not by our command: the project's settings alone must hold.
        ended = _ours(here, spider, options)
    else:
        ended = scrapy(home, "crawl", spider, *options)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stderr


def _ours(folder: Path, spider: str, options: list[str]) -> subprocess.CompletedProcess[str]:
    modules = ["-s", "SPIDER_MODULES=idioms"]
    return zygote.run(
        [sys.executable, "-m", "scrapy", "crawl", spider, *modules, *options],
        env=zygote.direct(PYTHONPATH=f"{PROJECT}:{folder}"),
    )


def assert_paced(web: Arena, host: str) -> None:
    """robots.txt first and once, a pause after each answer, nothing forbidden."""
    visits = web.of(host, robots=True)
    assert [visit.path for visit in visits].index("/robots.txt") == 0
    gaps = [after.start - before.end for before, after in pairwise(visits)]
    pays("a spider that overrides the settings", "the site", min(gaps), "s between requests", at_least=PACED)
    assert not [visit.path for visit in visits if visit.path.startswith("/no")]


def assert_whole(crawl: Path, log: str, host: str, paths: set[str]) -> None:
    """Each page once in log and archive, and the crawl stands up to its own audit."""
    logged = [row["url"] for row in read_log(crawl / "log")]
    found = sorted(url.partition(f"{host}:")[2].partition("/")[2] for url in logged)
    assert found == sorted(paths | {"robots.txt"})
    assert "pace/guard_refused" not in log
    for path in (crawl / "warc").glob("*.warc.gz"):
        assert check_file(path).flaws == []
    audit = scrapy(PROJECT, "audit", str(crawl), "--ip-seconds", "0")
    assert audit.returncode == 0, audit.stdout + audit.stderr


@pytest.mark.parametrize("spider", ["plain", "handled"])
def test_no_setting_reaches_the_guard(web: Arena, home: Path, tmp_path: Path, spider: str) -> None:
    """Chain and handlers replaced, meta forged, redirects and retries on: each request is judged, and waits."""
    host = f"{spider}.{home.name}.test"
    url, never = site(web, host), site(web, "never.test")

    log = run(web, home, spider, tmp_path / "crawl", site=url, never=never)

    assert_paced(web, host)
    assert {"/1", "/2", "/3", "/moved", "/503"} <= set(web.paths(host))
    if (home / "spiders_here").exists() and spider == "handled":  # our own project's settings are for the frontier
        assert "Handled does not derive from WebSpider" in log
    else:  # the redirect was followed and the error tried again, each in its turn
        assert "/target" in web.paths(host)
        assert web.paths(host).count("/503") == (2 if spider == "plain" else 3)
    assert web.of("never.test", robots=True) == []
    assert "DOWNLOAD_HANDLERS: scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler is not used" in log


@pytest.mark.parametrize("spider", ["raising", "dropping", "replaced"])
def test_a_page_ends_whatever_a_project_does_to_its_items(web: Arena, home: Path, tmp_path: Path, spider: str) -> None:
    """Pipelines that raise, drop or are not ours: the crawl ends by itself, every page once."""
    host = f"{spider}.{home.name}.test"
    links = ("/a", "/bad", "/moved", "/no/1")
    url = site(web, host, *links)

    log = run(web, home, spider, tmp_path / "crawl", seeds=url)

    assert_paced(web, host)
    assert_whole(tmp_path / "crawl", log, host, {"", "a", "bad", "moved", "target"})
    assert "'errors/ours'" not in log
    items = tmp_path / "items.jsonl"
    if spider == "replaced":
        assert len(items.read_text().splitlines()) == 4
        assert "REDIRECT_ENABLED (the frontier follows redirects as links); RETRY_ENABLED" in log
        # Once more: nothing is left to fetch, and the feed stays what it was.
        log = run(web, home, spider, tmp_path / "crawl", seeds=url)
        assert "items.jsonl stays as it is: nothing was fetched" in log
        assert len(items.read_text().splitlines()) == 4
    elif spider == "dropping":
        assert items.read_text() == ""


def test_a_lease_ends_whatever_a_middleware_does(web: Arena, home: Path, tmp_path: Path) -> None:
    """Dropped, answered or replaced by a project's middleware: said so in the log, and nothing hangs."""
    host = f"meddling.{home.name}.test"
    url = site(web, host, "/drop", "/fake", "/swap", "/late", "/good")

    log = run(web, home, "meddling", tmp_path / "crawl", seeds=url)

    assert_paced(web, host)
    reasons = {row["url"].rpartition("/")[2]: row["reason"] for row in read_log(tmp_path / "crawl" / "log")}
    assert [reasons[path] for path in ("drop", "fake", "swap", "late")] == ["middleware"] * 4
    assert reasons["good"] == "fetched"
    assert {"/good", "/late", "/late/again", "/swapped"} <= set(web.paths(host))
    assert not {"/drop", "/fake", "/swap"} & set(web.paths(host))
    assert "'errors/ours'" not in log
    assert "pace/guard_refused" not in log


def test_what_a_spider_asks_for_by_itself(web: Arena, home: Path, tmp_path: Path) -> None:
    """It shares the frontier's clock, obeys robots.txt and NeverCrawl, and is no lease's, whatever its meta says."""
    host = f"asking.{home.name}.test"
    url, never = site(web, host, "/a", "/b"), site(web, "never.test")

    log = run(web, home, "asking", tmp_path / "crawl", seeds=url, site=url, never=never)

    visits = web.of(host, robots=True)
    gaps = [(after.path, after.start - before.end) for before, after in pairwise(visits)]
    assert all(gap >= PACED for _, gap in gaps), gaps
    paths = web.paths(host)
    assert sorted(paths) == ["/", "/a", "/b", "/own/1", "/own/2"]  # a second of the same is dropped
    assert web.of("never.test", robots=True) == []
    assert "pace/guard_refused" not in log
    logged = {json.dumps(row["url"]) for row in read_log(tmp_path / "crawl" / "log")}
    assert len(logged) == 4
