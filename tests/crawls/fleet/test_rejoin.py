"""Redis has lost all that it knew, for good: the workers give it again what they have, and the crawl goes on."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject.errors import EXIT_FORGOTTEN
from tests.commands.crawled import scrapy
from tests.crawls.fleet.fleets import Workers, workers
from tests.crawls.fleet.verdicts import audited, seldom_asked_again
from tests.stores.redis_servers import RedisServer, redis_server
from tests.web.judge import judge_folder, read_captures, read_visits
from tests.web.running import RunningWeb, synthetic_web
from tests.web.waiting import wait_until

_NAMES = ("w1", "w2", "w3")
_SECONDS = 60.0
# So long one worker waits alone: it would ask for dozens of pages.
_ALONE_SECONDS = 3.0


class Rejoined(NamedTuple):
    """A crawl whose Redis was emptied twice: once under its workers, once between two of their starts."""

    web: RunningWeb
    fleet: Workers
    alone: int  # requests while one worker waited for the others
    waited_for: str  # what it said


def forget(fleet: Workers, server: RedisServer) -> None:
    """Empty Redis; every worker stops by itself."""
    with server.client() as client:
        client.flushall()
    for name in list(fleet.running):
        assert fleet.ended(name, _SECONDS) == EXIT_FORGOTTEN


@pytest.fixture(scope="module")
def rejoined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rejoined]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("rejoin")
    with (
        redis_server(folder / "redis") as server,
        synthetic_web(folder / "web") as web,
        workers(web, folder / "crawl", server.url) as fleet,
    ):
        visits = web.folder / "server.jsonl"
        fleet.start(*_NAMES)
        fleet.until_archiving(_SECONDS, *_NAMES)
        forget(fleet, server)
        fleet.accept = "store"
        before = len(list(read_visits(visits)))
        fleet.start("w1")
        wait_until(lambda: "go on once" in fleet.output("w1"), seconds=_SECONDS)
        time.sleep(_ALONE_SECONDS)
        alone = len(list(read_visits(visits))) - before
        said = next(line for line in fleet.output("w1").splitlines() if "go on once" in line)
        fleet.start("w2", "w3")
        fleet.until_opened(_SECONDS, "w2", "w3")
        before = len(list(read_visits(visits)))
        wait_until(lambda: len(list(read_visits(visits))) > before + 20, seconds=_SECONDS)
        fleet.accept = ""
        for name in _NAMES:
            fleet.kill(name)
        with server.client() as client:
            client.flushall()
        fleet.accept = "store"
        fleet.start(*_NAMES)
        fleet.wait()
        yield Rejoined(web, fleet, alone, said)


def test_nothing_is_asked_until_all_are_back(rejoined: Rejoined) -> None:
    """One worker alone knows a part of what was crawled; it says who is missing."""
    assert rejoined.alone == 0
    assert "w2, w3" in rejoined.waited_for


def test_nothing_is_missing_twice_or_too_soon(rejoined: Rejoined) -> None:
    """The archive holds every page once; every pause was kept."""
    verdict = judge_folder(
        rejoined.web.folder, None, workers=rejoined.fleet.folders, host_seconds=0.25, ip_seconds=0.5, log=False
    )

    assert verdict.faults == []
    audited(rejoined.web, rejoined.fleet.folder)


def test_what_was_committed_is_not_asked_for_again(rejoined: Rejoined) -> None:
    """Twice only what no worker had committed."""
    seldom_asked_again(rejoined.web)


def test_a_worker_that_is_lost_as_well_is_given_up(tmp_path: Path) -> None:
    """With Redis's data and one disk gone, what another worker has still counts: none of it is asked for again."""
    with (
        redis_server(tmp_path / "redis") as server,
        synthetic_web(tmp_path / "web", "--profile", "broad", "--hosts", "8") as web,
        workers(web, tmp_path / "crawl", server.url, {"SCOPE_MAX_URLS_PER_HOST": "8"}) as fleet,
    ):
        fleet.start("w1", "w2")
        fleet.until_archiving(_SECONDS, "w1", "w2")
        wait_until(lambda: len(_captures(fleet, "w1")) > 8, seconds=_SECONDS)
        forget(fleet, server)
        shutil.rmtree(fleet.folder / "w2")
        fleet.accept = "store"
        fleet.start("w1")
        wait_until(lambda: "go on once w2" in fleet.output("w1"), seconds=_SECONDS)
        fleet.signal("w1", signal.SIGTERM)
        assert fleet.ended("w1", _SECONDS) == 0
        kept, said = _captures(fleet, "w1"), ("-s", f"STATE_URL={server.url}")
        done = scrapy("recover", str(fleet.folder), "--lost", "w2", *said)
        assert (done.returncode, "wait for w2 no more" in done.stdout) == (0, True), done.stderr
        fleet.start("w1")
        fleet.wait()
        after = _captures(fleet, "w1")
        assert scrapy("verify", str(fleet.folder), *said).returncode == 0

    assert len(after) > len(kept) > 8
    assert {url: after[url] for url in kept} == kept


def _captures(fleet: Workers, name: str) -> dict[str, int]:
    found = read_captures(fleet.folder / name / "warc")
    return {url: sum(counts.values()) for url, counts in found.items() if not url.endswith("/robots.txt")}
