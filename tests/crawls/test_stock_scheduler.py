"""Outside a crawl of ours the pace middleware alone keeps the pace: Scrapy's own scheduler, and ``scrapy fetch``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.judge import judge_pauses, pauses, read_visits
from tests.web.profiles.manners import ALLOWED_NETWORK, SHARED_NAMES
from tests.web.running import IDENTITY, PROJECT, RunningWeb, measured, synthetic_web

SPIDER = Path(__file__).with_name("plain_spider.py")
HOSTS = ("fan.test", "delay.test", "rate.test", "rest-seconds.test", *SHARED_NAMES[:4])


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    """A web of its own: its hosts remember whom they have told to wait."""
    with synthetic_web(tmp_path_factory.mktemp("stock") / "web", "--profile", "manners") as running:
        yield running


def scrapy(web: RunningWeb, *arguments: str) -> str:
    """Run a command of Scrapy's over loopback; its output."""
    settings = {
        **IDENTITY,
        "FETCH_HOSTS_FILE": str(web.folder / "hosts"),
        "FETCH_ALLOW_NETWORKS": ALLOWED_NETWORK,
        "PACE_PRESET": "mirror",
        "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    }
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    log = web.folder / "scrapy.log"
    spent = measured([sys.executable, "-m", "scrapy", arguments[0], *options, *arguments[1:]], log, PROJECT)
    assert spent.status == 0, log.read_text()[-3000:]
    return log.read_text()


def test_a_plain_spider_keeps_the_pace(web: RunningWeb) -> None:
    """Pauses per host and address, Crawl-delay, Request-rate, Retry-After, robots.txt first: by the server's log."""
    urls = ",".join(f"http://{host}:{web.port}/" for host in HOSTS)

    output = scrapy(web, "runspider", str(SPIDER), "-a", f"urls={urls}")

    visits = read_visits(web.folder / "server.jsonl")
    floors = {"delay.test": 2.0, "rate.test": 2.0}
    verdict = judge_pauses(visits, host_seconds=0.25, ip_seconds=0.5, floors=floors)
    assert verdict.faults == []
    assert "Traceback" not in output
    assert {visit.host for visit in visits} == set(HOSTS)
    for host in HOSTS:
        assert [visit.path for visit in visits if visit.host == host][:2] == ["/robots.txt", "/"]
    assert len([visit for visit in visits if visit.host == "fan.test"]) == 7
    assert pauses(visits, "host")["rest-seconds.test"].visits >= 4


def test_scrapy_fetch_asks_robots_first_and_waits(web: RunningWeb) -> None:
    """Two requests of one command, robots.txt and the page, with the pause between them."""
    before = len(read_visits(web.folder / "server.jsonl"))

    scrapy(web, "fetch", "--nolog", f"http://land.test:{web.port}/landing/1")

    visits = read_visits(web.folder / "server.jsonl")[before:]
    assert [(visit.host, visit.path) for visit in visits] == [("land.test", "/robots.txt"), ("land.test", "/landing/1")]
    assert judge_pauses(visits, host_seconds=0.25, ip_seconds=0.5).faults == []
