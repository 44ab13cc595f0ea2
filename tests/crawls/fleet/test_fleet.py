"""Four workers on one crawl, a Redis Cluster between them: to the web, and in the archive, they are one crawler."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from crawlerproject.reports.warc_check import check_file
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.stores.redis.journal_view import crawl_in_redis
from tests.commands.crawled import ask, scrapy
from tests.crawls.fleet.fleets import LEASE_SECONDS, PAGES_A_PARTITION, PARTITIONS, Workers, workers
from tests.stores.redis_servers import redis_cluster
from tests.web.judge import judge_folder, read_captures, read_visits
from tests.web.profiles.sites import small_world
from tests.web.running import RunningWeb, synthetic_web

NAMES = ("w1", "w2", "w3", "w4")
_START_SECONDS = 60.0


class Crawled(NamedTuple):
    """A finished crawl of four workers, and what was said while it ran."""

    web: RunningWeb
    fleet: Workers
    status: dict[str, Any]
    after_drain: dict[str, Any]
    never: dict[str, Any]
    redis_url: str

    def ask(self, *arguments: str) -> Any:
        """What a command answers now, given no more than the crawl's folder."""
        return ask(self.fleet.folder, *arguments)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("fleet")
    with (
        redis_cluster(folder / "redis") as servers,
        synthetic_web(folder / "web") as web,
        workers(web, folder / "crawl", servers[0].url, {"NEVERCRAWL_RELOAD_SECONDS": "1"}) as fleet,
    ):
        fleet.start(*NAMES)
        fleet.until_archiving(_START_SECONDS, *NAMES)
        status = ask(fleet.folder, "status")
        never = ask(fleet.folder, "never", "nobody.test", "--why", "a test")
        fleet.signal("w2", signal.SIGTERM)
        assert fleet.ended("w2") == 0
        after_drain = until_all_is_held(fleet)
        fleet.wait()
        yield Crawled(web, fleet, status, after_drain, never, servers[0].url)


def until_all_is_held(fleet: Workers) -> dict[str, Any]:
    """The status in which every partition has a holder, well before any lease is over."""
    end = time.monotonic() + LEASE_SECONDS
    while True:
        status: dict[str, Any] = ask(fleet.folder, "status")
        if sum(worker["partitions"] for worker in status["workers"]) == PARTITIONS:
            return status
        assert time.monotonic() < end, status["workers"]


def test_no_partition_is_without_work() -> None:
    """What the fleets of these tests stand on: a worker finds something to ask in whatever partition it takes."""
    filled = {
        partition_of(host, PARTITIONS)
        for host, site in small_world(8000).sites.items()
        if site.reachable and len(site.pages) >= PAGES_A_PARTITION
    }

    assert filled == set(range(PARTITIONS))


def test_the_web_sees_one_crawler(crawled: Crawled) -> None:
    """Every page once, every pause kept per host and per IP address, robots and NeverCrawl obeyed, logs agree."""
    verdict = judge_folder(crawled.web.folder, None, workers=crawled.fleet.folders, host_seconds=0.25, ip_seconds=0.5)

    assert verdict.faults == []


def test_robots_is_asked_once_a_host(crawled: Crawled) -> None:
    """Nobody asks again for what another worker was answered."""
    good: dict[str, int] = {}
    for visit in read_visits(crawled.web.folder / "server.jsonl"):
        if visit.path == "/robots.txt" and visit.status == 200:
            good[visit.host] = good.get(visit.host, 0) + 1

    assert set(good.values()) == {1}


def test_every_worker_has_its_share(crawled: Crawled) -> None:
    """Each archived something, in files of its own that are whole."""
    for folder in crawled.fleet.folders:
        assert read_captures(folder / "warc"), folder
        for path in sorted((folder / "warc").iterdir()):
            assert path.name.endswith(".warc.gz")
            assert check_file(path).flaws == []


def test_nobody_had_to_be_held_back(crawled: Crawled) -> None:
    """The guard above the network found nothing to refuse, and nothing of ours failed."""
    for name in NAMES:
        output = crawled.fleet.output(name)
        assert "guard_refused" not in output
        assert "Traceback" not in output
        assert "] ERROR:" not in output


def test_a_worker_is_drained(crawled: Crawled) -> None:
    """Asked to end (SIGTERM) it ends in good order; the others have its partitions at once, no lease runs out."""
    assert [worker["name"] for worker in crawled.after_drain["workers"]] == ["w1", "w3", "w4"]
    assert crawled.after_drain["running"]
    assert "Spider closed (shutdown)" in crawled.fleet.output("w2")
    assert not list((crawled.fleet.folder / "w2" / "warc").glob("*.open"))


def test_every_worker_says_who_it_is(crawled: Crawled) -> None:
    """The life under which a worker wrote is beside its files."""
    lives = {json.loads((folder / "worker.json").read_text())["life"] for folder in crawled.fleet.folders}

    assert len(lives) == len(NAMES)


def test_status_sees_all_workers(crawled: Crawled) -> None:
    """While they ran each was there with partitions of its own; after the crawl the sums are those of all logs."""
    assert [worker["name"] for worker in crawled.status["workers"]] == list(NAMES)
    assert crawled.status["running"]
    assert 0 < sum(worker["partitions"] for worker in crawled.status["workers"]) <= 16

    ended = crawled.ask("status")
    own = [json.loads((folder / "status.json").read_text())["progress"]["pages"] for folder in crawled.fleet.folders]
    assert (ended["running"], ended["finish_reason"], ended["queued"]) == (False, "finished", 0)
    assert ended["pages"] == sum(own)


def test_an_exclusion_reaches_every_worker(crawled: Crawled) -> None:
    """``never`` waited for each of them."""
    assert [crawl["took_it_up"] for crawl in crawled.never["crawls"]] == [True] * len(NAMES)
    assert crawled.never["workers_elsewhere"] == []


def test_hosts_and_requests_are_those_of_all_workers(crawled: Crawled) -> None:
    """Every host that the server knows is a row once; what was asked of one is what the server saw."""
    visits = [visit for visit in read_visits(crawled.web.folder / "server.jsonl") if visit.host == "plain1.test"]
    rows = [row["host"] for row in crawled.ask("hosts")]

    assert len(set(rows)) == len(rows)
    assert {visit.host for visit in read_visits(crawled.web.folder / "server.jsonl")} <= {
        row.rpartition(":")[0] for row in rows
    }
    assert [row["status"] for row in crawled.ask("requests", "plain1.test")] == [visit.status for visit in visits]


def test_why_finds_a_page_whoever_archived_it(crawled: Crawled) -> None:
    """A page of any worker's host is done, with its capture."""
    for name in ("plain1.test", "rules.test"):
        found = crawled.ask("why", f"http://{name}:{crawled.web.port}/")
        assert (found["state"], found["reason"]) == ("done", "fetched")
        assert any((folder / "warc" / found["warc"]).exists() for folder in crawled.fleet.folders)


def test_what_is_asked_back_is_erased_from_every_worker(crawled: Crawled) -> None:
    """And its robots.txt from Redis; all else stays as it was. The last test here: it changes what they share."""
    fleet, gone = crawled.fleet, "plain1.test"
    warcs = [folder / "warc" for folder in fleet.folders]
    before = read_captures(*warcs)

    done = scrapy("withdraw", gone, "--why", "a test", "--erase", folder=fleet.folder)

    after = read_captures(*warcs)
    erased = sum(captures.total() for url, captures in before.items() if urlsplit(url).hostname == gone)
    assert done.returncode == 0, done.stderr
    assert f"{erased} captures in " in done.stdout
    assert erased > 3
    assert after == {url: captures for url, captures in before.items() if urlsplit(url).hostname != gone}
    assert scrapy("verify", str(fleet.folder)).returncode == 0
    assert scrapy("lookup", f"http://{gone}:{crawled.web.port}/", folder=fleet.folder).returncode == 1
    with crawl_in_redis(crawled.redis_url, "web") as view:
        assert view.robots(f"http://{gone}:{crawled.web.port}") is None
        assert view.robots(f"http://plain2.test:{crawled.web.port}") is not None
