"""Traps: each costs a bounded number of requests, by the server's log, while other hosts go on at full pace."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject.rules.traps.template_yield import CUT_COSTS_PAGES, FIRST_PAGES, HOST_FIRST_PAGES
from tests.web import zygote
from tests.web.judge import Visit, read_visits
from tests.web.profiles.traps import ARTICLES, NEWS, STEADY_PAGES
from tests.web.running import HASTE, RunningWeb, crawl_command, measured, one_pace, synthetic_web
from tests.web.waiting import busyness

PACE_SECONDS = 0.03
SETTINGS = {
    **HASTE,
    "PACE_PRESET": "mirror",
    **one_pace(PACE_SECONDS),
    "PACE_IP_SECONDS": str(PACE_SECONDS),
    "FETCH_SLOW_GRACE_SECONDS": "0.5",  # after which a tarpit's answer is cut
    "FETCH_MIN_BYTES_PER_SECOND": "10000",
    "SCOPE_MAX_DEPTH": "1000000",  # these traps are to be found, not only cut off
    "NEVERCRAWL_FILE": "",
}
MONTH = "/calendar/{n}/{n}"


class Crawled(NamedTuple):
    """A finished crawl of the traps profile."""

    web: RunningWeb
    folder: Path
    visits: Mapping[str, list[Visit]]  # by host, robots.txt left out


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("traps")
    with synthetic_web(folder / "web", "--profile", "traps") as web:
        crawl(web, folder / "crawl", folder / "web" / "seeds.txt", SETTINGS)
        visits = defaultdict(list)
        for visit in read_visits(web.folder / "server.jsonl"):
            if visit.path != "/robots.txt":
                visits[visit.host].append(visit)
        yield Crawled(web, folder / "crawl", visits)


def crawl(web: RunningWeb, folder: Path, seeds: Path, settings: Mapping[str, str]) -> str:
    """Crawl to the end, whatever an earlier start had for seeds and settings; what was logged."""
    log = folder.with_suffix(".log")
    command = crawl_command(seeds, folder, web.folder / "hosts", settings)
    spent = measured([*command, "-a", "accept=all"], log)
    assert spent.status == 0, log.read_text()[-3000:]
    return log.read_text()


@pytest.mark.parametrize(
    ("host", "most"),
    [
        ("nest.test", 1 + 2),  # /nest/, /nest/nest/; the third is refused for its shape
        ("host-path.test", 1 + 1),  # its own name as a folder is refused at once, another's when it comes twice
        ("tarpit.test", HOST_FIRST_PAGES // CUT_COSTS_PAGES),
        ("maze.test", HOST_FIRST_PAGES + 2),  # one text
        # Six pages, each a template with a budget and one text, and the front page.
        ("path-session.test", 6 * (FIRST_PAGES + 2) + 1),
        ("query-session.test", 6 * (FIRST_PAGES + 2) + 1),
        # Months and days: a budget each, and two pages for each of twelve names; the news; the front page.
        ("calendar.test", 2 * (FIRST_PAGES + 24) + NEWS + 1),
    ],
)
def test_a_trap_costs_a_bounded_number_of_requests(crawled: Crawled, host: str, most: int) -> None:
    """By the server's log."""
    assert 1 <= len(crawled.visits[host]) <= most


def test_a_productive_template_is_crawled_whole(crawled: Crawled) -> None:
    """Every article, and the news beside the calendar."""
    articles = {visit.path for visit in crawled.visits["articles.test"]}
    news = {visit.path for visit in crawled.visits["calendar.test"] if visit.path.startswith("/news/")}
    assert len(articles) == ARTICLES + 1
    assert len(news) == NEWS


def test_other_hosts_go_on_at_full_pace(crawled: Crawled) -> None:
    """The pause that is promised, no longer: half of them within a tenth of a second of it."""
    steady = crawled.visits["steady.test"]
    pauses = [after.start - before.end for before, after in pairwise(steady)]
    assert len(steady) == STEADY_PAGES
    assert min(pauses) >= PACE_SECONDS - 0.003
    assert statistics.median(pauses) < PACE_SECONDS + 0.1 * busyness()


def traps(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """``scrapy traps``."""
    command = [sys.executable, "-m", "scrapy", "traps", "-s", f"CRAWL_DIR={folder}", *options]
    return zygote.run(command)


def test_traps_are_listed_with_their_reason(crawled: Crawled) -> None:
    """Templates, hosts and shapes; all hosts or one; and nothing about what is no trap."""
    port = crawled.web.port

    listed = traps(crawled.folder)

    assert listed.returncode == 0, listed.stderr
    assert f"calendar.test {MONTH}  the template gave 12 new texts in 64 pages" in listed.stdout
    assert "tarpit.test " in listed.stdout
    assert f"nest.test -  links with an endless path, the last of them http://nest.test:{port}/" in listed.stdout
    assert "articles.test" not in listed.stdout
    assert "steady.test" not in listed.stdout
    rows = [json.loads(line) for line in traps(crawled.folder, "--json", f"nest.test:{port}").stdout.splitlines()]
    assert [(row["host"], row["refused"]) for row in rows] == [("nest.test", 1)]


def test_a_folder_without_a_crawl_is_one_sentence(tmp_path: Path) -> None:
    """No traceback for a wrong CRAWL_DIR."""
    listed = traps(tmp_path)
    assert listed.returncode == 2
    assert "is not the folder of a crawl" in listed.stderr
    assert "Traceback" not in listed.stderr


def test_a_trap_survives_a_restart_until_the_operator_overrules(crawled: Crawled, tmp_path: Path) -> None:
    """A new start asks for a seed there and nothing else; with a line in TRAP_ALLOW_FILE it goes on."""
    port = crawled.web.port

    first = asked_from(crawled, f"http://calendar.test:{port}/calendar/2090/1", tmp_path, {})
    allow = tmp_path / "allow.txt"
    allow.write_text(f"# a real calendar\ncalendar.test:{port} {MONTH}\n")
    more = {"TRAP_ALLOW_FILE": str(allow), "SCOPE_MAX_DEPTH": "3"}
    second = asked_from(crawled, f"http://calendar.test:{port}/calendar/2095/1", tmp_path, more)

    assert first == ["/calendar/2090/1"]
    assert second == ["/calendar/2095/1", "/calendar/2095/2", "/calendar/2095/3", "/calendar/2095/4"]


def asked_from(crawled: Crawled, seed: str, folder: Path, settings: Mapping[str, str]) -> list[str]:
    """What a further start with one seed asks for."""
    before = len(read_visits(crawled.web.folder / "server.jsonl"))
    (folder / "seeds.txt").write_text(f"{seed}\n")
    crawl(crawled.web, crawled.folder, folder / "seeds.txt", {**SETTINGS, **settings})
    return [visit.path for visit in read_visits(crawled.web.folder / "server.jsonl")[before:]]
