"""What Scrapy's features do under the add-on: each line of docs/addon.md's table, in a fresh foreign project.

All spiders run at once in one process, by a script of the project's own; judged by the servers' log.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crawlerproject.config.old_settings import ALLOWED_DOMAINS, INSTEAD, NOWHERE
from tests.addon.all_at_once import SCRIPT
from tests.hostile.arena import PACE_SECONDS, SETTINGS, Arena, Asked, answer, arena, page
from tests.web import zygote
from tests.web.running import PROJECT

SPIDERS = Path(__file__).with_name("feature_spiders.py")
PAGE = (PROJECT / "docs" / "addon.md").read_text()
# A server notes an answer's end when its thread has its turn; what breaks the pace comes at once.
LATE_SECONDS = 0.05
PACED = PACE_SECONDS - LATE_SECONDS
SITEMAP = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}</loc></url><url><loc>{}</loc></url>'
ZSTD = bytes.fromhex("28b52ffd200e7100007061636b6564206279207a737464")  # "packed by zstd"
BUTTON = """<!doctype html><button>more</button><script>
document.querySelector("button").onclick = () => document.body.insertAdjacentHTML("beforeend", "<p id=shown>clicked");
</script>"""
FIXED = {
    "browsed/": answer(BUTTON),
    "client/zstd": answer(ZSTD, mime="text/plain", Content_Encoding="zstd"),
    "client/large": answer("x" * 9_000, mime="text/plain"),
    "client/too-large": answer("x" * 9_000, mime="text/plain"),
}
MOST_LATE = 60.0


class Ran(NamedTuple):
    """What the spiders did."""

    web: Arena
    home: Path
    stats: dict[str, dict[str, Any]]
    log: str
    heads: dict[str, bytes]  # of the last request for each "host/path"
    sources: dict[str, str]  # from which address it came

    def items(self, name: str) -> list[dict[str, Any]]:
        """What a spider's feed has."""
        return [json.loads(line) for line in (self.home / "out" / f"{name}.jsonl").read_text().splitlines()]

    def paths(self, name: str) -> list[str]:
        """What a spider's host was asked for, in order."""
        return self.web.paths(f"{name}.test")

    def gaps(self, name: str) -> list[float]:
        """Seconds from each answer's end to the host's next request."""
        visits = self.web.of(f"{name}.test", robots=True)
        return [after.start - before.end for before, after in pairwise(visits)]


FEATURES: dict[str, str] = {}
"""Line of the table: the test that proves it."""


def feature(*lines: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Which lines of the table a test proves."""

    def proves(test: Callable[..., None]) -> Callable[..., None]:
        FEATURES.update(dict.fromkeys(lines, test.__name__))
        return test

    return proves


# --- the sites ----------------------------------------------------------------------------------

RULES = {
    "bounds": "User-agent: *\nCrawl-delay: 1.2",
    "slow": "User-agent: *\nCrawl-delay: 2",
    "headers": "User-agent: foobot\nDisallow: /foobot\n\nUser-agent: *\nDisallow: /",
    "sitemap": "Sitemap: http://sitemap.test:{port}/map.xml",
}


class Sites:
    """Answers by host and path, and remembers heads."""

    def __init__(self, web: Arena) -> None:
        self.web = web
        self.heads: dict[str, bytes] = {}
        self.sources: dict[str, str] = {}
        self._asked: dict[str, int] = {}

    async def talk(self, asked: Asked, writer: asyncio.StreamWriter) -> float | None:
        """One request; when its answer was handed over, were it only to the writer."""
        name = asked.host.removesuffix(".test")
        key = name + asked.path
        self.heads[key] = asked.head
        self.sources[key] = writer.get_extra_info("peername")[0]
        count = self._asked[key] = self._asked.get(key, 0) + 1
        if asked.path == "/robots.txt":
            rules = RULES.get(name, "User-agent: *\nDisallow: /no").replace("{port}", str(self.web.port))
            made, handed_over = answer(rules, mime="text/plain"), time.time()
            writer.write(made)
            await writer.drain()
            return handed_over
        elif key == "silent/silent":
            await asyncio.sleep(3)
        elif key.startswith("bounds/lost"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 900\r\n\r\nhalf of it")
            await writer.drain()
            writer.close()
        elif key == "retry/hangup" and count == 1:
            writer.close()
        else:
            made, handed_over = self.made(key, asked, count), time.time()
            writer.write(made)
            await writer.drain()
            return handed_over
        await writer.drain()
        return None

    def made(self, key: str, asked: Asked, count: int) -> bytes:
        """An ordinary answer."""
        url = self.web.url("sitemap.test", "")
        if key in FIXED:
            return FIXED[key]
        match key:
            case "login/":
                return answer('<form action="/in" method="post"><input name="user"><input name="t" value="7"></form>')
            case "login/in" if {b"user=me", b"t=7"} == set(asked.body.split(b"&")):
                return answer(status="303 See Other", Location="/private", Set_Cookie="session=abc")
            case "login/private" if b"Cookie: session=abc" not in asked.head:
                return answer("no", "403 Forbidden")
            case "retry/flaky" if count == 1:
                return answer("", "500 Internal Server Error")
            case "redirect/moved" | "fetched/moved":
                return answer(status="302 Found", Location="/target")
            case "redirect/to-no":
                return answer(status="302 Found", Location="/no/1")
            case "redirect/refresh":
                return answer('<meta http-equiv="refresh" content="0; url=/refreshed">')
            case "errors/404" | "errors/404-wanted" | "errors/404-silent":
                return answer("gone", "404 Not Found")
            case "rules/":
                return page("/page/2", "/item/1", "/other")
            case "rules/page/2":
                return page("/item/2")
            case "sitemap/map.xml":
                return answer(SITEMAP.format(url + "/item/1", url + "/other") + "</urlset>", mime="application/xml")
            case "client/search":
                return answer(asked.body, mime="text/plain")
            case "resting/" if count == 1:
                return answer("", "429 Too Many Requests", Retry_After="1")
            case "bounds/large":
                return answer("x" * 9_000)
        return page(text=key)


HOSTS = (
    *("login", "retry", "redirect", "offsite", "elsewhere", "depth", "errors", "priority", "cache", "headers", "rules"),
    *("sitemap", "checked", "pipelines", "files", "bounds", "delay", "slow", "quick", "promises", "never", "signals"),
    *("jobs", "silent", "fetched", "client", "resting", "browsed"),
)


def scrapy(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in that folder, with this project on the path."""
    return zygote.run(
        [sys.executable, *arguments], cwd=folder, env=zygote.direct(PYTHONPATH=str(PROJECT)), timeout=MOST_LATE
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """A fresh project with one line, and its spiders' crawls."""
    folder = tmp_path_factory.mktemp("features")
    assert scrapy(folder, "-m", "scrapy", "startproject", "other").returncode == 0
    home = folder / "other"
    with arena(folder / "web") as web:
        sites = Sites(web)
        for host in HOSTS:
            web.raw_site(f"{host}.test", sites.talk)
        (folder / "never.txt").write_text("never.test\n")
        given = SETTINGS | {
            "ADDONS": {"crawlerproject.addon.PoliteCrawl": 100}, "COMMANDS_MODULE": "crawlerproject.commands",
            "CRAWLER_CONTACT": "tests@example.org",
            "NEVERCRAWL_FILE": str(folder / "never.txt"), "FETCH_HOSTS_FILE": str(web.folder / "hosts"),
            "FETCH_ALLOW_NETWORKS": ["127.0.0.0/8"],
            # Of the template: with them each host would have a pause of a second.
            "DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        }  # fmt: skip
        with (home / "other" / "settings.py").open("a") as file:
            file.writelines(f"\n{name} = {value!r}" for name, value in given.items())
        text = SPIDERS.read_text().replace("%PORT%", str(web.port))
        (home / "other" / "spiders" / "features.py").write_text(text)
        (home / "run.py").write_text(SCRIPT)
        names = re.findall(r'^    name = "(\w+)"', text, flags=re.MULTILINE)
        ended = scrapy(home, "run.py", *(name for name in names if name != "checked"))
        assert ended.returncode == 0, ended.stderr[-3000:]
        yield Ran(web, home, json.loads((home / "stats.json").read_text()), ended.stderr, sites.heads, sites.sources)


# --- the table ----------------------------------------------------------------------------------


@feature("Cookies, forms, login")
def test_login(ran: Ran) -> None:
    """The form is sent with its hidden field, the session's cookie comes back after the redirect."""
    assert ran.items("login") == [{"path": "/private", "status": 200}]
    assert ran.paths("login") == ["/", "/in", "/private"]


@feature("Retries")
def test_retries(ran: Ran) -> None:
    """An error's status and a lost connection are tried again, in their turn."""
    assert sorted(ran.paths("retry")) == ["/flaky", "/flaky", "/hangup", "/hangup"]
    assert {item["path"] for item in ran.items("retry")} == {"/flaky", "/hangup"}
    assert ran.stats["retry"]["retry/count"] == 2
    assert min(ran.gaps("retry")) >= PACED


@feature("Redirects, meta refresh")
def test_redirects(ran: Ran) -> None:
    """Followed in their turn; not to where robots.txt forbids."""
    found = {item["path"]: item["times"] for item in ran.items("redirect")}
    assert found == {"/target": 1, "/refreshed": 1}
    assert min(ran.gaps("redirect")) >= PACED
    assert "/no/1" not in ran.paths("redirect")


@feature("`allowed_domains`")
def test_offsite(ran: Ran) -> None:
    """Another domain is not asked, not for robots.txt either."""
    assert ran.paths("offsite") == ["/", "/home"]
    assert ran.web.of("elsewhere.test", robots=True) == []
    assert ran.stats["offsite"]["offsite/filtered"] == 2


@feature("`DEPTH_LIMIT`")
def test_depth(ran: Ran) -> None:
    """No link beyond it is followed."""
    assert ran.paths("depth") == ["/", "/1", "/2"]
    assert ran.stats["depth"]["request_depth_max"] == 2


@feature("HTTP errors", "Errbacks")
def test_errors(ran: Ran) -> None:
    """HttpError and ``handle_httpstatus_list``; what fails before an answer has Scrapy's class, a refusal its own."""
    found = {item["path"]: item for item in ran.items("errors")}
    assert found.keys() == {"/404", "/404-wanted", "/", "/no/1"}
    assert found["/404-wanted"]["status"] == 404
    assert "scrapy.spidermiddlewares.httperror.HttpError" in found["/404"]["failed"]
    assert {"scrapy.exceptions.CannotResolveHostError", "crawlerproject.errors.FetchError"} < set(found["/"]["failed"])
    assert "scrapy.exceptions.IgnoreRequest" in found["/no/1"]["failed"]
    assert ran.stats["errors"]["httperror/response_ignored_count"] == 1


@feature("Priorities")
def test_priorities(ran: Ran) -> None:
    """The most urgent is the host's next, one that was found later too; Scrapy chooses the next while it reads one."""
    asked = ran.paths("priority")
    assert asked[0] == "/"
    assert asked.index("/9") <= asked.index("/5") + 2
    rest = [path for path in asked[2:] if path != "/9"]
    assert rest == sorted(rest, reverse=True)


@feature("HTTP cache")
def test_cache(ran: Ran) -> None:
    """Asked once; what is answered from the cache waits for nobody. A robots.txt is not kept there."""
    assert ran.paths("cache") == ["/"]
    assert [item["cached"] for item in ran.items("cache")] == [False, True, True]
    assert ran.stats["cache"]["httpcache/store"] == 1


@feature("Referer", "`USER_AGENT`, `DEFAULT_REQUEST_HEADERS`")
def test_headers(ran: Ran) -> None:
    """The project's headers are sent; robots.txt is read for the name that is sent, under that name."""
    head = ran.heads["headers/next"]
    assert f"Referer: {ran.web.url('headers.test')}\r\n".encode() in head
    assert b"Accept-Language: eo\r\n" in head
    assert b"(compatible; foobot/2.1; +https://foo.example/)\r\n" in head
    assert b"foobot/2.1" in ran.heads["headers/robots.txt"]
    assert ran.paths("headers") == ["/", "/next"]
    assert b"User-Agent: PoliteCrawler/1.0 (tests@example.org)\r\n" in ran.heads["login/"]


@feature("`CrawlSpider`")
def test_crawl_spider(ran: Ran) -> None:
    """Its rules choose the links."""
    assert sorted(item["path"] for item in ran.items("rules")) == ["/item/1", "/item/2"]
    assert "/other" not in ran.paths("rules")


@feature("`SitemapSpider`")
def test_sitemap_spider(ran: Ran) -> None:
    """From robots.txt to the sitemap to its pages."""
    assert ran.paths("sitemap") == ["/map.xml", "/item/1"]
    assert ran.items("sitemap") == [{"path": "/item/1", "status": 200}]
    assert min(ran.gaps("sitemap")) >= PACED


@feature("Contracts (`scrapy check`)")
def test_contracts(ran: Ran) -> None:
    """One that holds and one that does not."""
    ended = scrapy(ran.home, "-m", "scrapy", "check", "checked")

    assert "Ran 3 contracts" in ended.stderr, ended.stderr[-2000:]
    assert "FAILED (failures=1)" in ended.stderr
    assert sorted(ran.paths("checked")) == ["/bad", "/good"]
    assert min(ran.gaps("checked")) >= PACED


@feature("Feed exports", "Item pipelines, middlewares")
def test_pipelines_and_middlewares(ran: Ran) -> None:
    """A project's own see and change everything; the feed has what they leave."""
    items = sorted(ran.items("pipelines"), key=lambda item: str(item["path"]))
    more = {"status": 200, "seen": True, "spidermw": True}
    assert items == [{"path": "/a", **more}, {"path": "/c", **more}]
    assert b"X-Mine: yes\r\n" in ran.heads["pipelines/a"]
    assert ran.stats["pipelines"]["item_dropped_count"] == 1


@feature("Files and images pipelines")
def test_files(ran: Ran) -> None:
    """Whatever their extension, at the host's pace."""
    (item,) = ran.items("files")
    assert sorted(kept["status"] for kept in item["files"]) == ["downloaded", "downloaded"]
    assert sorted(ran.paths("files")) == ["/", "/paper.pdf", "/photo.jpg"]
    assert min(ran.gaps("files")) >= PACED


@feature("Stats")
def test_stats(ran: Ran) -> None:
    """Scrapy's own keys, with their numbers."""
    stats = ran.stats["redirect"]
    assert stats["downloader/request_count"] == 6
    assert stats["downloader/response_count"] == 5
    assert stats["downloader/response_status_count/302"] == 2
    assert stats["item_scraped_count"] == 2
    assert stats["finish_reason"] == "finished"


@feature("Signals", "`bytes_received`, `headers_received`")
def test_signals(ran: Ran) -> None:
    """The engine's are sent; those of Scrapy's own client are not."""
    counted = {key: value for key, value in ran.stats["signals"].items() if key.startswith("signals/")}
    assert counted == {
        "signals/response_received": 1, "signals/response_downloaded": 1, "signals/item_scraped": 1,
    }  # fmt: skip


@feature("`DOWNLOAD_TIMEOUT`, `DOWNLOAD_MAXSIZE`, `DOWNLOAD_FAIL_ON_DATALOSS`")
def test_bounds(ran: Ran) -> None:
    """Waiting for the pace is no part of the timeout; an answer that was cut is a failure, not a short page."""
    found = {item["path"]: item for item in ran.items("bounds")}
    assert found["/a"]["status"] == found["/b"]["status"] == 200
    for path, kind in {
        "/silent": "DownloadTimeoutError", "/large": "DownloadCancelledError", "/lost": "ResponseDataLossError",
    }.items():  # fmt: skip
        assert f"scrapy.exceptions.{kind}" in found[path]["failed"], path
    assert "dataloss" in found["/lost-part"]["flags"]
    assert min(ran.gaps("bounds")) >= 1.2 - 3 * LATE_SECONDS


@feature("Compressed bodies", "A GET's body, `response.url`", "`DOWNLOAD_WARNSIZE`, `DOWNLOAD_BIND_ADDRESS`")
def test_client(ran: Ran) -> None:
    """A GET's body is sent; no fragment comes back; zstd is undone by Scrapy's middleware; meta says from where."""
    found = {item["path"]: item for item in ran.items("client")}
    assert found["/search"]["text"] == '{"query": 1}'
    assert found["/zstd"]["text"] == "packed by zstd"
    assert b"Host: client.test:" in ran.heads["client/zstd"]
    assert b"Accept-Encoding: gzip, deflate, br, zstd\r\n" in ran.heads["client/zstd"]
    assert ran.stats["client"]["httpcompression/response_count"] == 1
    assert b"Accept-Encoding: identity\r\n" in ran.heads["client/plain"]
    assert {ran.sources["client/plain"], ran.sources["client/large"]} == {"127.9.9.8", "127.9.9.9"}
    assert "scrapy.exceptions.DownloadCancelledError" in found["/too-large"]["failed"]
    assert "Received 9000 bytes, more than the download warn size (5000)" in ran.log
    assert "A request's own Host header is not sent" in ran.log


@feature("scrapy-playwright's `meta`")
def test_browsed(ran: Ran) -> None:
    """A page after a click, below the guard; what would need a page with the network is refused in one sentence."""
    found = {item["path"]: item for item in ran.items("browsed")}
    assert found["/"]["shown"] == "clicked"
    assert "scrapy.exceptions.NotSupported" in found["/kept"]["failed"]
    assert ran.paths("browsed") == ["/"]
    assert ran.stats["browsed"]["render/pages"] == 1


@feature("`robotstxt/…` stats")
def test_robots_stats(ran: Ran) -> None:
    """As Scrapy's middleware counts them."""
    counted = {key: value for key, value in ran.stats["client"].items() if key.startswith("robotstxt/")}
    assert counted == {
        "robotstxt/request_count": 1, "robotstxt/response_count": 1, "robotstxt/response_status_count/200": 1,
        "robotstxt/forbidden": 1,
    }  # fmt: skip
    assert any(key.startswith("robotstxt/exception_count/") for key in ran.stats["errors"])


def test_why_a_host_rests_is_in_the_log(ran: Ran) -> None:
    """Once as it begins, and in the line of statistics while nothing else happens."""
    assert "resting.test" in ran.log
    assert "is left alone for 1.0 s: it answered 429 with Retry-After: 1" in ran.log
    assert "Resting: resting.test" in ran.log


@feature("`DOWNLOAD_DELAY`, AutoThrottle")
def test_delay(ran: Ran) -> None:
    """The longer of Scrapy's pause and ours holds."""
    assert sorted(ran.paths("delay")) == ["/a", "/b", "/c", "/d"]
    # The first is sent when robots.txt is read, later than Scrapy sends it. Scrapy's pauses are from request to
    # request, and a busy server notes one late: over both that counts once. At our pace they would be 0.2 s together.
    starts = [visit.start for visit in ran.web.of("delay.test")][1:]
    assert starts[-1] - starts[0] >= 2 * 0.3
    assert ran.stats["delay"]["finish_reason"] == "finished"


@feature("`CONCURRENT_REQUESTS`")
def test_a_slow_host_holds_up_no_other(ran: Ran) -> None:
    """More of its pages wait than there are places; a second host is asked meanwhile."""
    slow, quick = ran.web.of("slow.test"), ran.web.of("quick.test")
    assert len(quick) == 3
    # Held up they wait until at most one of the slow host's waits, six seconds longer.
    assert quick[0].start < slow[-2].start
    assert min(ran.gaps("slow")) >= 2 - 3 * LATE_SECONDS


@feature("`JOBDIR`")
def test_jobs(ran: Ran) -> None:
    """A crawl that was stopped goes on with what it had not asked for."""
    assert len(ran.paths("jobs")) < 3
    ended = scrapy(ran.home, "-m", "scrapy", "crawl", "jobs")

    assert ended.returncode == 0, ended.stderr[-2000:]
    assert sorted(ran.paths("jobs")) == ["/a", "/b", "/c"]


@feature("`ROBOTSTXT_OBEY`, `ADDONS` in `custom_settings`")
def test_promises(ran: Ran) -> None:
    """What a spider switches off in a script of the project's own: robots.txt, NeverCrawl and the pace stay."""
    assert sorted(ran.paths("promises")) == ["/1", "/2", "/3"]
    assert ran.web.of("never.test", robots=True) == []


def test_every_host_is_asked_politely(ran: Ran) -> None:
    """robots.txt first, one request at a time, a pause after each answer; whatever the spider."""
    for host in {visit.host.removesuffix(".test") for visit in ran.web.visits}:
        visits = ran.web.of(f"{host}.test", robots=True)
        assert visits[0].path == "/robots.txt", host
        # One that the server dropped has no end of its own.
        assert all(gap >= PACED for gap in ran.gaps(host)), (host, ran.gaps(host))
        assert not [visit.path for visit in visits if visit.path.startswith("/no")]
    assert not (ran.home / "crawls").exists()
    assert {name: stats.get("log_count/ERROR", 0) for name, stats in ran.stats.items()} == dict.fromkeys(ran.stats, 0)


def test_our_commands_work_there(ran: Ran) -> None:
    """Before a crawler is made an add-on is not asked; their settings have our defaults all the same."""
    ended = scrapy(ran.home, "-m", "scrapy", "fetch", ran.web.url("fetched.test", "/moved"))

    assert ended.returncode == 0, ended.stderr
    assert "fetched/target" in ended.stdout
    assert ran.paths("fetched") == ["/moved", "/target"]
    assert min(ran.gaps("fetched")) >= PACED
    ended = scrapy(
        ran.home, "-m", "scrapy", "crawl", "web", "-s", "FETCH_TIMEOUT_SECONDS=0", "-a", "seeds=http://a.invalid/"
    )
    assert "error: FETCH_TIMEOUT_SECONDS is 0; it must be above zero." in ended.stderr


def rows(heading: str) -> list[str]:
    """The first column of the table below a heading of docs/addon.md."""
    text = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| (?!--|Scrapy's)(.+?) \|", text, flags=re.MULTILINE)


def test_each_line_of_the_table_has_a_test() -> None:
    """No line without its proof, no proof without its line."""
    assert sorted(name for row in rows("Scrapy's features") for name in row.split("; ")) == sorted(FEATURES)


def test_what_a_frontier_crawl_does_not_use_is_documented() -> None:
    """The other table has the words of the warning."""
    words = {f"`{name}`" for name in (*INSTEAD, ALLOWED_DOMAINS)}
    assert {name for row in rows("What a `WebSpider` does not use") for name in row.split(", ")} == words
    named = {name for row in rows("What no spider uses") for name in row.split(", ")}
    assert named == {f"`{name}`" for name in NOWHERE}
