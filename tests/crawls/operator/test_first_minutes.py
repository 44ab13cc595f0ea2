"""What a crawl says in its first minutes: seeds that fail, names that share an address, what is continued."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crawlerproject.rules.politeness.bottleneck import bound_by, load_of
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from tests.hostile.arena import SETTINGS, Arena, Asked, arena, page
from tests.web import zygote
from tests.web.running import IDENTITY

NAMES = 8
IP_SECONDS = 0.2
#: Of this machine's own network: two of these names live nowhere.
REFUSED, NOWHERE = "http://10.0.0.1/private", "http://nowhere.invalid/"
DEADLINE_SECONDS = 60.0


class Crawled(NamedTuple):
    """Two starts of one crawl; ``looks`` are the status files of the first, about once a second."""

    log: str
    looks: list[dict[str, Any]]
    again: str


def started(web: Arena, seeds: str, **settings: str) -> zygote.Process:
    """A crawl that ends when all that is left rests."""
    given = {
        **SETTINGS, **IDENTITY, "FETCH_HOSTS_FILE": str(web.folder / "hosts"), "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        "CRAWL_DIR": str(web.folder / "crawl"), "PACE_IP_SECONDS": str(IP_SECONDS), "BACKOFF_MAX_SECONDS": "86400",
        "FRONTIER_MAX_REST_SECONDS": "3", **settings,
    }  # fmt: skip
    options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    with (web.folder / "log.txt").open("wb") as log:
        return zygote.Process(
            [sys.executable, "-m", "scrapy", "crawl", "web", "-a", f"seeds={seeds}", *options], log, env=zygote.direct()
        )


def watched(process: zygote.Process, folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """The output of a crawl, and each status file that it wrote."""
    looks: list[dict[str, Any]] = []
    until = time.monotonic() + DEADLINE_SECONDS
    while process.poll() is None and time.monotonic() < until:
        status = read_facts(CrawlDir(folder).status)
        if status and (not looks or status["time"] != looks[-1]["time"]):
            looks.append(status)
        time.sleep(0.1)
    process.kill()
    process.wait()
    return (folder.parent / "log.txt").read_text(), looks


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """Eight names at one address, a seed that no gate lets in, one that is nowhere."""

    def make(asked: Asked) -> bytes | None:
        return page("/a", "/b", text=f"{asked.host}{asked.path}") if asked.path in ("/", "/a", "/b") else None

    with arena(tmp_path_factory.mktemp("minutes")) as web:
        seeds = [web.site(f"n{number}.test", make, "127.33.0.1") for number in range(NAMES)]
        given = ",".join([*seeds, REFUSED, NOWHERE])
        log, looks = watched(started(web, given), web.folder / "crawl")
        again, _ = watched(started(web, given), web.folder / "crawl")
        yield Crawled(log, looks, again)


def test_what_politeness_allows_counts_the_address(crawled: Crawled) -> None:
    """Eight names a few times a second each, all at one address that serves five a second: never said to be more."""
    going = [look["progress"] for look in crawled.looks if look["progress"]["queued_urls"] > 4]
    said = [progress["ceiling_per_second"] for progress in going if progress["ceiling_per_second"]]

    assert len(said) >= 3
    assert max(said[1:]) <= 1 / IP_SECONDS + 0.01  # before the first look-ups no address is known


def test_the_eta_counts_the_address(crawled: Crawled) -> None:
    """What is queued goes one by one, a fifth of a second apart."""
    going = [look["progress"] for look in crawled.looks[2:] if look["progress"]["queued_urls"] > 4]

    assert going
    for progress in going:
        assert progress["eta_seconds"] >= (progress["queued_urls"] - 3) * IP_SECONDS


def test_queued_urls_are_bound_by_something(crawled: Crawled) -> None:
    """While URLs are queued a crawl is never "bound by nothing"."""
    for look in crawled.looks:
        if look["ended"] is None and look["progress"]["queued_urls"]:
            assert bound_by(load_of(look)).what != "nothing", look["progress"]
    assert "politeness" in {bound_by(load_of(look)).what for look in crawled.looks}


def test_a_seed_that_is_refused_is_said_with_the_setting(crawled: Crawled) -> None:
    """At the start, once, with its URL and what lets it in."""
    said = [line for line in crawled.log.splitlines() if REFUSED in line]

    assert len(said) == 1
    assert "private-address" in said[0]
    assert "FETCH_ALLOW_NETWORKS" in said[0]


def test_a_seed_that_does_not_resolve_is_said_at_once(crawled: Crawled) -> None:
    """Its URL, the reason and the next moment, once; the last progress line says why nothing moves, and no ETA."""
    said = [line for line in crawled.log.splitlines() if "WARNING" in line and "nowhere.invalid" in line]
    last = [line for line in crawled.log.splitlines() if "pages/s" in line][-1]

    assert len(said) == 1
    assert re.search(r"http://nowhere\.invalid/robots\.txt: dns-not-found .*again in (59 min|1 h 0 min)", said[0])
    assert re.search(r"1 queued · ETA – · nowhere\.invalid: dns-not-found, again in 59 min", last)
    assert "Left for another start: 1 URL of hosts that rest for longer" in crawled.log


def test_the_head_of_the_log_is_ours(crawled: Crawled) -> None:
    """Scrapy's lists of its parts are for LOG_LEVEL=DEBUG, and its statistics are one line."""
    for begins in ("Enabled ", "Overridden settings", "Versions:"):
        assert begins not in crawled.log
    (statistics,) = [line for line in crawled.log.splitlines() if "Dumping Scrapy stats" in line]
    assert "'finish_reason': 'finished'" in statistics
    assert len(crawled.log.splitlines()) < 25


def test_a_second_start_says_what_is_new_and_what_is_left(crawled: Crawled) -> None:
    """None of the seeds is new, one URL waits from before, and there was nothing else to fetch."""
    assert "Continues the crawl in" in crawled.again
    assert f"{NAMES + 2} seeds, none of them new" in crawled.again
    assert f"From before: {3 * NAMES} pages done, 1 URL of 1 host queued" in crawled.again
    assert "Nothing was left to fetch" in crawled.again
    assert "-a mode=recrawl" in crawled.again
