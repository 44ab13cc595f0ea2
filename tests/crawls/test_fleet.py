"""Four workers on one crawl, a Redis Cluster between them: to the web, and in the archive, they are one crawler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from crawlerproject.reports.warc_walk import check_file
from tests.crawls.fleets import Workers, workers
from tests.stores.redis_servers import redis_cluster
from tests.web.judge import judge_folder, read_captures, read_visits
from tests.web.running import RunningWeb, synthetic_web

NAMES = ("w1", "w2", "w3", "w4")


class Crawled(NamedTuple):
    """A finished crawl of four workers."""

    web: RunningWeb
    fleet: Workers


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("fleet")
    with (
        redis_cluster(folder / "redis") as servers,
        synthetic_web(folder / "web") as web,
        workers(web, folder / "crawl", servers[0].url) as fleet,
    ):
        fleet.start(*NAMES)
        fleet.wait()
        yield Crawled(web, fleet)


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


def test_every_worker_says_who_it_is(crawled: Crawled) -> None:
    """The life under which a worker wrote is beside its files."""
    lives = {json.loads((folder / "worker.json").read_text())["life"] for folder in crawled.fleet.folders}

    assert len(lives) == len(NAMES)
