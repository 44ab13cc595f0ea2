"""requests, never, reply and botpage, with a running crawl that takes the list up."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crawlerproject.commands.never import add
from crawlerproject.errors import OperatorError
from tests.commands.crawled import ask, scrapy
from tests.web.judge import read_visits
from tests.web.running import RunningWeb, crawl_command, read_pages, small_settings, start, synthetic_web
from tests.web.waiting import wait_until

DEADLINE_SECONDS = 60.0
PAGES = 40


class Running(NamedTuple):
    """A crawl that was stopped after all questions were asked, and the answer of ``never`` while it ran."""

    web: RunningWeb
    folder: Path
    never: dict[str, Any]
    excluded_at: float


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A crawl during which the trap's owner asks to be left alone."""
    folder = tmp_path_factory.mktemp("complaints")
    with synthetic_web(folder / "web") as web:
        # Slow enough that it still runs when the command has started, on a busy machine too.
        settings = {**small_settings(web), "SCOPE_MAX_DEPTH": "1000", "PACE_MIN_SECONDS": "1"}
        command = crawl_command(web.folder / "seeds.txt", folder / "crawl", web.folder / "hosts", settings)
        with (folder / "crawl.log").open("wb") as output:
            process = start(command, output)
        try:
            wait_until(lambda: read_pages(web.folder / "server.jsonl") >= PAGES, seconds=DEADLINE_SECONDS)
            never = ask(folder / "crawl", "never", "trap.test", "--why", "asked by  its owner")
            excluded_at = time.time()
            more = read_pages(web.folder / "server.jsonl") + 10
            wait_until(lambda: read_pages(web.folder / "server.jsonl") >= more, seconds=DEADLINE_SECONDS)
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()
        yield Running(web, folder / "crawl", never, excluded_at)


def test_a_running_crawl_takes_the_exclusion_up(crawled: Running) -> None:
    """The line has who and when; the running crawl said that it read it, and asked the host for nothing after that."""
    never = crawled.never
    (crawl,) = never["crawls"]

    assert never["text"] == f"trap.test  # asked by its owner, {datetime.now(UTC):%Y-%m-%d}"
    assert Path(never["file"]).read_text().splitlines()[-1] == never["text"]
    assert (crawl["reads_it"], crawl["took_it_up"]) == (True, True)
    visits = [visit for visit in read_visits(crawled.web.folder / "server.jsonl") if visit.host == "trap.test"]
    assert visits
    assert [visit.path for visit in visits if visit.start > crawled.excluded_at] == []
    written_at = Path(never["file"]).stat().st_mtime
    assert max(visit.start for visit in visits) <= written_at + 2


def test_requests_are_what_the_server_saw(crawled: Running) -> None:
    """Each attempt in order with its pause; the same requests as in the server's own log."""
    told = ask(crawled.folder, "requests", "trap.test")
    served = [visit.path for visit in read_visits(crawled.web.folder / "server.jsonl") if visit.host == "trap.test"]

    assert [row["url"].partition(f":{crawled.web.port}")[2] for row in told if row["ip"]] == served
    assert told[0]["pause_seconds"] is None
    assert all(row["pause_seconds"] >= row["delay_seconds"] - 0.001 for row in told[1:])
    assert not any(row["too_soon"] for row in told)


def test_requests_show_robots_txt_then_and_now(crawled: Running) -> None:
    """The text that was obeyed, and since when."""
    text = scrapy("requests", "rules.test", folder=crawled.folder).stdout

    assert "robots.txt then: http://rules.test" in text
    assert "    Disallow: /private/" in text
    assert "robots.txt now: the same" in text
    assert "0 shorter than promised" in text


def test_bounds_of_time_hold(crawled: Running) -> None:
    """Nothing before the crawl, nothing after it, and a bad moment is a sentence."""
    assert ask(crawled.folder, "requests", "trap.test", "--until", "2020-01-01") == []
    assert ask(crawled.folder, "requests", "trap.test", "--since", "2020-01-01") != []
    bad = scrapy("requests", "trap.test", "--since", "yesterday", folder=crawled.folder)
    assert (bad.returncode, "--since is 'yesterday'" in bad.stderr) == (2, True)


def test_the_letter_has_the_facts(crawled: Running) -> None:
    """Number, pauses, robots.txt and exclusion; and for a host that was never asked, that it was not us."""
    count = sum(bool(row["ip"]) for row in ask(crawled.folder, "requests", "trap.test"))

    message = scrapy("reply", "trap.test", folder=crawled.folder).stdout
    stranger = scrapy("reply", "never-met.example", folder=crawled.folder)

    assert f"made {count:,} requests" in message
    assert "never asked again" in message
    assert "scrapy never" not in message + stranger.stdout + stranger.stderr.partition("To put it on the list now:")[0]
    assert 'now: scrapy never never-met.example --why "' in stranger.stderr
    assert "bot@example.org" in message
    assert "has not asked never-met.example for anything" in stranger.stdout


def test_a_list_line_is_whole_and_once(tmp_path: Path) -> None:
    """A missing last line break is mended, subdomains of a listed name are known, bad names are refused."""
    path = tmp_path / "never.txt"
    path.write_text("a.example")
    now = datetime(2026, 1, 31, tzinfo=UTC)

    assert add(path, "b.example", "asked by Ben", now) == ("b.example  # asked by Ben, 2026-01-31", 2, True)
    assert path.read_text() == "a.example\nb.example  # asked by Ben, 2026-01-31\n"
    assert add(path, "www.b.example", "again", now) == ("b.example  # asked by Ben, 2026-01-31", 2, False)
    with pytest.raises(OperatorError, match="neither a domain nor an IP address"):
        add(path, "not a host!", "x", now)


class _Tags(HTMLParser):
    """Checks that every element that is opened is closed."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "!doctype"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_bot_page_says_what_the_settings_say(tmp_path: Path) -> None:
    """Name, pace, contact and how to block it; whatever the settings hold is text, never markup."""
    page = tmp_path / "bot.html"
    settings = ["-s", "CRAWLER_CONTACT=you@example.org", "-s", "CRAWLER_NAME=TownBot", "-s", "PACE_PRESET=thirtyfold"]

    ended = scrapy("botpage", str(page), "--address", "192.0.2.7", "--purpose", "<b>&clubs", *settings)

    assert ended.returncode == 0, ended.stderr
    tags = _Tags()
    tags.feed(page.read_text())
    assert (tags.wrong, tags.open) == ([], [])
    for word in ("TownBot/1.0 (you@example.org)", "192.0.2.7", "<b>&clubs", "30 times", "at least 15", "Disallow: /"):
        assert word in tags.text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["requests"], "Give a host"),
        (["never", "a.example"], "Say who asked and why"),
        (["never", "a b!", "--why", "x"], "neither a domain nor an IP address"),
        (["never", "co.uk", "--why", "x"], "co.uk is a suffix under which others have their domains"),
        (["reply"], "Give a host"),
        (["botpage"], "set CRAWLER_CONTACT"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    """No traceback, status 2, and what to do."""
    (tmp_path / "log").mkdir()

    ended = scrapy(*arguments, folder=tmp_path)

    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
