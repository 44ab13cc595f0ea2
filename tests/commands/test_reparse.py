"""``scrapy reparse``: the items of a spider from an archive, by Scrapy's own ways, and no byte of the network."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.reasons import Reason
from crawlerproject.reparse.item_parts import held, planned
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Context, Original, Render
from crawlerproject.stores.logs.request_log import attempt_line
from tests.commands.running import archive_of
from tests.commands.running import scrapy as in_this_process
from tests.warc_samples import STARTED_AT, exchange
from tests.web import zygote
from tests.web.running import PROJECT

DAY_SECONDS = 86_400
SPIDERS = """
import os
import signal

import scrapy
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


def item(response):
    title = response.css("title::text").get() if isinstance(response, scrapy.http.TextResponse) else None
    return {"url": response.url, "kind": type(response).__name__, "title": title, "status": response.status}


class Plain(scrapy.Spider):
    name = "plain"

    async def start(self):
        yield scrapy.Request(self.elsewhere)

    def parse(self, response):
        yield item(response)
        yield scrapy.Request(self.elsewhere)

    def broken(self, response):
        raise RuntimeError("no")


class Mortal(Plain):
    name = "mortal"
    read = 0

    def parse(self, response):
        yield item(response)
        self.read += 1
        if str(self.read) == os.environ.get("DIE_AT"):
            os.kill(os.getpid(), signal.SIGKILL)


class Ruled(CrawlSpider):
    name = "ruled"
    rules = [Rule(LinkExtractor(allow="twice|b.test"), callback="of_b"), Rule(LinkExtractor(), follow=True)]

    def of_b(self, response):
        yield item(response)


class Asking:
    def __init__(self, crawler):
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def process_item(self, item):
        try:
            await self.crawler.engine.download_async(scrapy.Request(self.crawler.spider.elsewhere))
        except scrapy.exceptions.IgnoreRequest:
            return item | {"piped": True}
        return item
"""
SETTINGS = """
SPIDER_MODULES = ["theirs"]
ITEM_PIPELINES = {"theirs.Asking": 1}
COMMANDS_MODULE = "crawlerproject.commands"
DOWNLOAD_HANDLERS = {"http": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"}
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
"""


def head(kind: str, *more: str) -> bytes:
    """Of an answer with status 200."""
    return "\r\n".join(["HTTP/1.1 200 OK", f"Content-Type: {kind}", *more, "", ""]).encode()


def titled(title: str, encoding: str = "utf-8") -> bytes:
    """A page."""
    return f"<!DOCTYPE html><title>{title}</title><p>Words".encode(encoding)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of other people's, and a fleet's folder with each kind of capture; one file is still open."""
    home = tmp_path_factory.mktemp("reparse")
    (home / "scrapy.cfg").write_text("[settings]\ndefault = settings_of_theirs\n")
    (home / "settings_of_theirs.py").write_text(SETTINGS)
    (home / "theirs.py").write_text(SPIDERS)
    html = "text/html"
    first = archive_of(home / "crawl" / "worker-1")
    old = first.write(exchange(titled("old"), head(html)), Context("http://a.test/twice"))
    first.write(exchange(titled("robots"), head(html)), Context("http://a.test/robots.txt"))
    first.write(exchange(titled("terms"), head(html)), Context("http://a.test/.well-known/tdmrep.json"))
    first.write(exchange(b"\x89PNG", head("image/png")), Context("http://a.test/picture"))
    first.write(exchange(titled("gone"), b"HTTP/1.1 404 Not Found\r\n\r\n"), Context("http://a.test/gone"))
    first.write(exchange(titled("Größe", "latin-1"), head("text/html; charset=iso-8859-1")), Context("http://b.test/l"))
    packed = gzip.compress(titled("packed"))
    first.write(exchange(packed, head(html, "Content-Encoding: gzip")), Context("http://b.test/gzip"))
    first.close()
    second = archive_of(home / "crawl" / "worker-2", lambda: STARTED_AT + DAY_SECONDS)
    for name in ("worker-1", "worker-2"):
        (home / "crawl" / name / "run.json").write_text("{}")
    later = {"started_at": STARTED_AT + DAY_SECONDS}
    second.write(exchange(titled("new"), head(html), **later), Context("http://a.test/twice"))
    original = Original(old.record_id, "http://a.test/twice", old.date)
    second.write(exchange(titled("old"), head(html), **later), Context("http://c.test/same"), original=original)
    silent = exchange(b"", b"HTTP/1.1 304 Not Modified\r\n\r\n", **later)
    unchanged = original._replace(profile=NOT_MODIFIED)
    second.write(silent, Context("http://c.test/unchanged"), original=unchanged)
    plain = second.write(exchange(titled("thin"), head(html), **later), Context("http://c.test/rendered"))
    times = STARTED_AT + DAY_SECONDS + 1, STARTED_AT + DAY_SECONDS + 2
    shown = second.write_render(Render("http://c.test/rendered", plain.record_id, titled("by a script"), *times, []))
    place: dict[str, Any] = {"warc": shown.filename, "offset": shown.offset, "length": shown.length}
    second.log.write(times[1], attempt_line(*times, "http://c.test/rendered", Reason.RENDERED, rendered=True, **place))
    second.flush()  # and still open
    return home


class Ran:
    """One run of a spider, and what it asked of a server that listens for it."""

    def __init__(self, home: Path, spider: str, *options: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            elsewhere = f"elsewhere=http://127.0.0.1:{server.getsockname()[1]}/"
            out = home / "items.jsonl"
            command = [sys.executable, "-m", "scrapy", "reparse", spider, str(home / "crawl"), "-a", elsewhere]
            self.done: subprocess.CompletedProcess[str] = zygote.run(
                [*command, "-O", str(out), *options], cwd=home, env=zygote.direct(PYTHONPATH=str(PROJECT)), timeout=60
            )
            try:
                server.accept()[0].close()
                self.asked = True
            except BlockingIOError:
                self.asked = False
        self.items = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []

    def titles(self) -> list[tuple[str, str | None]]:
        """What was read of each page, in order."""
        return [(item["url"].removeprefix("http://"), item["title"]) for item in self.items]


LATEST = [
    ("a.test/picture", None),
    ("a.test/twice", "new"),
    ("b.test/gzip", "packed"),
    ("b.test/l", "Größe"),
    ("c.test/rendered", "by a script"),
    ("c.test/same", "old"),
    ("c.test/unchanged", "old"),
]


def test_a_plain_spider_reads_the_latest_capture_of_each_url(home: Path) -> None:
    """Of all workers, open files too: revisits resolved, renders, codings undone, pipelines and feeds as ever."""
    before = {path: path.read_bytes() for path in (home / "crawl").rglob("*") if path.is_file()}
    ran = Ran(home, "plain")

    assert ran.done.returncode == 0, ran.done.stderr[-3000:]
    assert sorted(ran.titles()) == LATEST
    assert {item["kind"] for item in ran.items if item["title"]} == {"HtmlResponse"}
    assert {(item["status"], item["piped"]) for item in ran.items} == {(200, True)}
    assert "7 pages read, 7 items, 0 errors of the spider; 14 requests left out" in ran.done.stderr
    assert not ran.asked
    assert {path: path.read_bytes() for path in (home / "crawl").rglob("*") if path.is_file()} == before


def test_the_rules_of_a_crawl_spider_read_every_capture(home: Path) -> None:
    """``--all`` has the older one too. The first rule that matches reads; one without a callback gives nothing."""
    ran = Ran(home, "ruled", "--all")

    assert ran.done.returncode == 0, ran.done.stderr[-3000:]
    twice = [("a.test/twice", "new"), ("a.test/twice", "old")]
    assert sorted(ran.titles()) == [*twice, ("b.test/gzip", "packed"), ("b.test/l", "Größe")]
    assert not ran.asked


def test_a_callback_that_fails_is_counted(home: Path) -> None:
    """The one that is named; the run goes on."""
    failed = Ran(home, "plain", "--callback", "broken")

    assert failed.done.returncode == 1
    assert failed.items == []
    assert "7 pages read, 0 items, 7 errors of the spider; 0 requests left out" in failed.done.stderr


def test_what_cannot_be_read_is_counted(home: Path, tmp_path: Path) -> None:
    """A record that is not good, and a body that is not there: one sentence each, and the others are read."""
    made = archive_of(tmp_path / "crawl")
    made.write(exchange(titled("good"), head("text/html")), Context("http://a.test/"))
    lost = Original("<urn:uuid:0>", "http://lost.test/", "2026-01-01T00:00:00Z")
    made.write(exchange(titled("lost"), head("text/html")), Context("http://b.test/"), original=lost)
    made.close()
    for name in ("scrapy.cfg", "settings_of_theirs.py", "theirs.py"):
        (tmp_path / name).write_text((home / name).read_text())

    ran = Ran(tmp_path, "plain")

    assert ran.done.returncode == 1
    assert ran.titles() == [("a.test/", "good")]
    assert "1 capture could not be read" in ran.done.stderr
    assert "http://b.test/ was not new, and the capture that has its body is not in this archive" in ran.done.stderr


def test_what_is_asked_for_wrongly_is_one_sentence(tmp_path: Path) -> None:
    """No such spider, method or folder, or a folder without an archive."""
    (tmp_path / "empty").mkdir()
    wrong = {
        "There is no spider 'none'; there are": ["none"],
        "has no method none": ["web", "--callback", "none"],
        "There is no folder": ["web", str(tmp_path / "none")],
        "holds no crawl": ["web", str(tmp_path / "empty")],
        "Give a spider and a crawl's folder": [],
    }
    for sentence, arguments in wrong.items():
        done = in_this_process("reparse", *arguments)
        assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr


def in_parts(home: Path, out: Path, die_at: int = 0) -> subprocess.CompletedProcess[str]:
    """A run of two captures a part, which dies when it has read so many."""
    command = [sys.executable, "-m", "scrapy", "reparse", "mortal", str(home / "crawl"), "--part-captures", "2"]
    theirs = "settings_of_theirs"  # a command that ran in this process may have named ours
    environment = zygote.direct(PYTHONPATH=str(PROJECT), DIE_AT=str(die_at), SCRAPY_SETTINGS_MODULE=theirs)
    return zygote.run(
        [*command, "--out", str(out), "-a", "elsewhere=http://nowhere.test/"], cwd=home, env=environment, timeout=60
    )


def kept(out: Path) -> list[str]:
    """The URLs of the items, part by part."""
    found = [json.loads(line) for part in sorted(out.glob("items-*")) for line in part.read_text().splitlines()]
    assert all(item["piped"] for item in found)
    return [item["url"].removeprefix("http://") for item in found]


def test_a_run_that_is_killed_goes_on(home: Path, tmp_path: Path) -> None:
    """At the part in which it died: each item is there once. Of files that are still open nothing is read."""
    out = tmp_path / "items"
    assert in_parts(home, out, die_at=1).returncode == -signal.SIGKILL
    assert kept(out) == []
    assert in_parts(home, out, die_at=3).returncode == -signal.SIGKILL
    assert len(kept(out)) == 2
    done = in_parts(home, out)

    assert done.returncode == 0, done.stderr
    assert "2 pages read, 2 items" in done.stderr
    assert sorted(kept(out)) == ["a.test/picture", "a.test/twice", "b.test/gzip", "b.test/l"]
    assert sorted(path.name for path in out.iterdir()) == ["items-000000.jsonl", "items-000001.jsonl", "plan.json"]


def test_the_items_of_one_run_are_not_mixed_with_others(home: Path, tmp_path: Path) -> None:
    """Of another spider or callback, of an archive that has changed, of a folder that holds something else."""
    out, index, later = tmp_path / "items", tmp_path / "x.cdxj", tmp_path / "y.cdxj"
    index.write_text("1")
    later.write_text("2")
    plan = planned(out, {"spider": "a"}, [index], 5)

    assert planned(out, {"spider": "a"}, [index, later], 9) == plan
    with pytest.raises(OperatorError, match="another spider"):
        planned(out, {"spider": "b"}, [index], 5)
    index.write_text("12")
    with pytest.raises(OperatorError, match="has changed"):
        planned(out, {"spider": "a"}, [index], 5)
    with pytest.raises(OperatorError, match="holds other files"):
        planned(tmp_path, {"spider": "a"}, [], 5)


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path) -> None:
    """The second one is refused while the first one lives."""
    planned(tmp_path / "items", {}, [], 5)
    with held(tmp_path / "items"), pytest.raises(OperatorError, match="another process"), held(tmp_path / "items"):
        pass
