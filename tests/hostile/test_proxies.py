"""Behind a proxy: robots.txt and pages go the same way, and the proxy may be the only one that knows names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.hostile.arena import SETTINGS, Arena, Asked, answer, arena
from tests.hostile.ledger import pays
from tests.web import zygote
from tests.web.ports import free_port
from tests.web.running import PROJECT, crawl_command

PROXY = "127.77.0.1"
SITE, THIRD = "a.test", "b.test"
PATHS = {"/robots.txt", "/", "/1", "/2"}
SPIDER = """
import scrapy

from crawlerproject.spiders.web import WebSpider


class Plain(scrapy.Spider):
    name = "plain"

    async def start(self):
        meta = {"proxy": self.proxy} if getattr(self, "proxy", "") else {}
        yield scrapy.Request(self.url, meta=meta)

    def parse(self, response):
        for href in response.css("a::attr(href)").getall():
            meta = {"proxy": self.proxy} if getattr(self, "proxy", "") else {}
            yield response.follow(href, self.end, meta=meta)

    def end(self, response):
        pass


class Ours(WebSpider):
    name = "ours"


class Through:
    @classmethod
    def from_crawler(cls, crawler):
        made = cls()
        made.proxy = crawler.settings["THROUGH"]
        return made

    def process_request(self, request):
        request.meta["proxy"] = self.proxy
"""


class Way(NamedTuple):
    """Who asks, and how it comes to know of the proxy."""

    who: str
    by: str

    def __str__(self) -> str:
        return f"{self.who}, {self.by}"


WAYS = [
    Way("crawl web", "by environment"),
    Way("crawl web with a browser", "by environment"),
    Way("a WebSpider", "by middleware"),
    Way("a spider under the add-on", "by environment"),
    Way("a spider under the add-on", "by meta"),
    Way("a spider under the add-on", "by middleware"),
]


def site(asked: Asked) -> bytes | None:
    """Three pages; a script of another host, which the browser asks for. A proxy is asked for whole URLs."""
    parts = urlsplit(asked.path)
    if (parts.hostname or asked.host) == THIRD:
        return answer("document.title = 'run'", mime="text/javascript") if parts.path == "/s.js" else None
    if parts.path not in PATHS - {"/robots.txt"}:
        return None
    script = f'<script src="//{THIRD}:{parts.port or 80}/s.js"></script>'
    return answer(
        f'<!doctype html><title>t</title>{script}<p>page {parts.path}</p><a href="/1">1</a><a href="/2">2</a>'
    )


def settings_of(web: Arena, folder: Path, way: Way, *, dns: bool) -> dict[str, Any]:
    """Names are in the hosts file, or nowhere: no name server answers."""
    hosts = web.folder / ("hosts" if dns else "no-hosts")
    hosts.touch()
    return SETTINGS | {
        "FETCH_HOSTS_FILE": str(hosts), "FETCH_DNS_SERVERS": f"127.0.0.1:{free_port()}",
        "FETCH_DNS_TIMEOUT_SECONDS": "5", "FETCH_ALLOW_NETWORKS": "127.0.0.0/8", "CRAWLER_CONTACT": "t@example.org",
        "CRAWL_DIR": str(folder), "RENDER": "always" if "browser" in way.who else "never",
    }  # fmt: skip


def run(web: Arena, tmp_path: Path, way: Way, *, dns: bool) -> str:
    """Crawl the site by that way; what was said."""
    proxy = f"http://{PROXY}:{web.port}"
    given = settings_of(web, tmp_path / "crawl", way, dns=dns)
    environment = zygote.direct(
        PYTHONPATH=str(PROJECT), **({"http_proxy": proxy} if way.by == "by environment" else {})
    )
    home = PROJECT
    if way.who.startswith("crawl web"):
        seeds = tmp_path / "seeds.txt"
        seeds.write_text(web.url(SITE) + "\n")
        command = crawl_command(seeds, tmp_path / "crawl", Path(given["FETCH_HOSTS_FILE"]), given)
    else:
        home = tmp_path
        (tmp_path / "through.py").write_text(SPIDER)
        given |= {"ADDONS": '{"crawlerproject.addon.PoliteCrawl": 100}', "SPIDER_MODULES": "through"}
        if way.by == "by middleware":
            given["DOWNLOADER_MIDDLEWARES"] = '{"through.Through": 543}'
        arguments = ["-a", f"proxy={proxy}"] if way.by == "by meta" else []
        name, seed = ("ours", "seeds") if way.who == "a WebSpider" else ("plain", "url")
        options = [part for setting, value in given.items() for part in ("-s", f"{setting}={value}")]
        command = [sys.executable, "-m", "scrapy", "crawl", name, "-a", f"{seed}={web.url(SITE)}", *arguments, *options]
        environment["SCRAPY_SETTINGS_MODULE"] = "through_settings"
        (tmp_path / "through_settings.py").write_text(f"THROUGH = {proxy!r}\n")
        environment["PYTHONPATH"] += f":{tmp_path}"
    done = zygote.run(command, cwd=home, env=environment, timeout=60.0)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("dns", [False, pytest.param(True, marks=pytest.mark.long_attack)], ids=["no DNS", "DNS"])
def test_everything_goes_through_the_proxy(tmp_path: Path, way: Way, *, dns: bool) -> None:
    """The site sees one address, for its robots.txt first and then for its pages."""
    with arena(tmp_path) as web:
        web.site(SITE, site)
        web.site(THIRD, site)
        said = run(web, tmp_path, way, dns=dns)

        mine = web.of(SITE, robots=True)
    asked = [urlsplit(visit.path).path for visit in mine]
    assert asked[:1] == ["/robots.txt"], said[-3000:]
    assert set(asked) == PATHS, said[-3000:]
    past = [visit for visit in web.visits if visit.ip != PROXY]
    pays(f"a proxy, {way.by}: {way.who}", "the operator", len(past), "requests past it", at_most=0)
