"""shell, fetch, parse and view under every polite rule, beside a running crawl and beside none."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from tests.commands.crawled import scrapy
from tests.commands.running import Done, archive
from tests.web.judge import read_visits
from tests.web.running import IDENTITY, RunningWeb, crawl_command, small_settings, start, synthetic_web
from tests.web.waiting import wait_until

DEADLINE_SECONDS = 60.0
PAUSE_SECONDS = 0.25  # of the preset "mirror", which small_settings chooses
ROUNDING_SECONDS = 0.002


class Beside(NamedTuple):
    """A synthetic web, and the folder that the commands are told; a crawl may be running in it."""

    web: RunningWeb
    folder: Path
    crawl_log: Path | None

    def url(self, host: str, path: str = "/") -> str:
        """A URL of the web."""
        return f"http://{host}:{self.web.port}{path}"

    def scrapy(self, *arguments: str) -> Done:
        """A command with the web's settings."""
        settings = {
            **IDENTITY, **small_settings(self.web), "FETCH_HOSTS_FILE": str(self.web.folder / "hosts"),
            "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        }  # fmt: skip
        options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        return scrapy(*arguments, *options, folder=self.folder)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """No crawl anywhere."""
    folder = tmp_path_factory.mktemp("alone")
    with synthetic_web(folder / "web") as web:
        yield Beside(web, folder / "crawl", None)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """A crawl runs in the very folder that the commands are told."""
    folder = tmp_path_factory.mktemp("beside")
    with synthetic_web(folder / "web") as web:
        settings = {**small_settings(web), "PACE_PRESET": "fixed5"}
        command = crawl_command(web.folder / "seeds.txt", folder / "crawl", web.folder / "hosts", settings)
        with (folder / "crawl.log").open("wb") as output:
            process = start(command, output)
        try:
            wait_until(lambda: read_facts(CrawlDir(folder / "crawl").status), seconds=DEADLINE_SECONDS, process=process)
            yield Beside(web, folder / "crawl", folder / "crawl.log")
            assert process.poll() is None  # it ran all the while
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()
    assert "Traceback" not in (folder / "crawl.log").read_text()


def test_fetch_prints_the_page(alone: Beside) -> None:
    """The body and nothing else; a redirect is followed hop by hop; no crawl folder is made."""
    ended = alone.scrapy("fetch", alone.url("redirects.test", "/chain/1"))

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "redirects.test/end/chain" in ended.stdout
    assert not alone.folder.exists()


@pytest.mark.parametrize(
    ("host", "path", "sentence"),
    [
        ("rules.test", "/private/1", "Refused (robots): {url} Disallow: /private/ in "),
        ("sub.excluded.test", "/deep", "Refused (nevercrawl): {url} sub.excluded.test (line 1 of "),
        ("etiquette.test", "/quiet/archive.zip", "Refused (extension): {url}"),
        ("down.test", "/", "Refused (robots-unreachable): {url} "),
    ],
)
def test_a_refusal_is_one_line(alone: Beside, host: str, path: str, sentence: str) -> None:
    """Which rule, in one line, and exit status 1; the page was not asked for."""
    url = alone.url(host, path)

    ended = alone.scrapy("fetch", url)

    assert ended.returncode == 1
    assert ended.stderr.startswith(sentence.format(url=url))
    assert ended.stderr.count("\n") == 1
    asked = {(visit.host, visit.path) for visit in read_visits(alone.web.folder / "server.jsonl")}
    assert (host, path) not in asked


@pytest.mark.parametrize("command", ["fetch", "parse", "view"])
@pytest.mark.parametrize("arguments", [["example.org"], []])
def test_what_is_no_url_is_one_sentence(alone: Beside, command: str, arguments: list[str]) -> None:
    """Instead of a screen of help that does not say what is wrong."""
    done = alone.scrapy(command, *arguments)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("Give one URL, with http:// or https:// before it.")
    assert "Global Options" not in done.stdout + done.stderr


def test_the_shell_keeps_the_pace(alone: Beside) -> None:
    """Three pages of one host in a row: robots.txt first, and the promised pause before each."""
    first, second = alone.url("copies.test", "/exact/0"), alone.url("copies.test", "/exact/1")

    ended = alone.scrapy("shell", "-c", f"[fetch({second!r}), response.status, page.pace.delay_seconds]", first)

    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "[None, 200, 0.25]", "")
    visits = [visit for visit in read_visits(alone.web.folder / "server.jsonl") if visit.host == "copies.test"]
    assert [visit.path for visit in visits] == ["/robots.txt", "/exact/0", "/exact/1"]
    pauses = [after.start - before.end for before, after in pairwise(visits)]
    assert min(pauses) >= PAUSE_SECONDS - ROUNDING_SECONDS


def test_the_shell_shows_the_page_as_our_reader_sees_it(alone: Beside) -> None:
    """Words, links with the gate that each would meet, robots verdict, triage."""
    links = "[list(link) for link in page.links]"
    facts = f"[page.fingerprint > 0, page.words, page.robots, str(page.triage), {links}, page.title]"
    code = f"__import__('json').dumps({facts})"

    ended = alone.scrapy("shell", "-c", code, alone.url("etiquette.test"))

    fingerprint, words, robots, triage, told, title = json.loads(ended.stdout)
    assert (robots, title, triage.partition(" ")[0]) == ("allowed", "etiquette.test/", "plain")
    assert fingerprint is True
    assert words > 50
    refusals = {url.rpartition("/")[2]: refusal for url, _, refusal in told}
    assert refusals["archive.zip"] == "extension"
    assert refusals["odd"] == ""


def test_parse_tells_what_the_spider_reads(alone: Beside) -> None:
    """Facts as an item, links as requests; those that a gate refuses only as facts."""
    ended = alone.scrapy("parse", "--nocolour", alone.url("rules.test"))

    assert ended.stderr == ""
    assert "'robots': 'allowed'" in ended.stdout
    requests = ended.stdout.partition("# Requests")[2]
    assert "/private/open/1>" in requests
    assert "/private/1>" not in requests


def test_beside_a_running_crawl(beside: Beside) -> None:
    """The same folder, a crawl in it: shell, fetch and parse work, refuse as ever, and touch nothing of it."""
    fetched = beside.scrapy("fetch", beside.url("plain4.test", "/gone.html"))
    shell = beside.scrapy("shell", "-c", "(response.status, page.words > 50)", beside.url("plain3.test"))
    refused = beside.scrapy("fetch", beside.url("rules.test", "/private/1"))
    parsed = beside.scrapy("parse", "--nocolour", beside.url("plain2.test"))

    assert (fetched.returncode, fetched.stdout.strip()) == (0, "gone")
    assert shell.stdout.strip() == "(200, True)"
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "'status': 200" in parsed.stdout
    assert beside.crawl_log is not None
    assert "in use" not in beside.crawl_log.read_text()


@pytest.mark.parametrize("command", ["shell", "fetch", "view", "parse"])
def test_wrong_settings_are_one_sentence(command: str, tmp_path: Path) -> None:
    """What a crawl would refuse to start with, these refuse too."""
    ended = scrapy(command, "http://a.test/", "-s", "PACE_PRESET=furious", folder=tmp_path)

    assert ended.returncode == 2
    assert "PACE_PRESET must be one of" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_page_from_the_archive(tmp_path: Path) -> None:
    """Nobody is asked (the host is none), ``response`` and ``page`` are there; one sentence where nothing is."""
    folder = archive(tmp_path)
    url = "http://a.example.com/"

    shown = scrapy("shell", "--archived", url, "-c", "(response, page.title, fetch.__name__)", folder=folder)
    missing = scrapy("shell", "--archived", "http://a.example.com/missing", "-c", "response", folder=folder)

    assert shown.stdout == f"(<200 {url}>, 'A page', 'fetch')\n"
    # Behind it DuckDB's binding may name, at the exit, what the shell's thread still held: seen once in a dozen suites.
    assert shown.stderr.splitlines()[0] == f"{url} as captured at 2026-09-21T14:13:20.250000Z"
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == f"There is no capture of http://a.example.com/missing in {folder}.\n"
