"""Two workers without a server, killed and stopped, and their supervisor too: to the web one crawler, one archive."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.crawls.fleet.fleets import json_lines
from tests.crawls.fleet.local_fleets import LocalFleetRun, local_fleet
from tests.crawls.fleet.verdicts import OneCrawler
from tests.web.judge import read_captures
from tests.web.running import RunningWeb, synthetic_web
from tests.web.waiting import wait_until

_SEED = 4  # of the moments between events
_SETTINGS = {"LOG_LINES": "json"}
# A file may not grow beyond this until the limit is lifted: the kernel then refuses writes as a full disk does.
_SMALL_FILE_BYTES = 20_000


class Crawled(NamedTuple):
    """A finished crawl."""

    web: RunningWeb
    fleet: LocalFleetRun


def disturb(fleet: LocalFleetRun) -> None:
    """Everything that goes wrong, in an order that makes each of it count; the moments are by chance."""
    chance = random.Random(_SEED)

    def soon() -> None:
        time.sleep(chance.uniform(0.1, 0.6))

    one, two = fleet.names
    for name in fleet.names:
        fleet.until_archiving(name)
    limited = fleet.pid(two)
    resource.prlimit(limited, resource.RLIMIT_FSIZE, (_SMALL_FILE_BYTES, resource.RLIM_INFINITY))
    fleet.until_said(two, "The crawl pauses:")
    fleet.kill(one)
    fleet.until_said(one, "Spider opened", 2)
    resource.prlimit(limited, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    fleet.until_said(two, "The crawl goes on")
    fleet.supervisor.send_signal(signal.SIGSTOP)
    soon()
    fleet.supervisor.send_signal(signal.SIGCONT)
    soon()
    os.kill(fleet.pid(two), signal.SIGSTOP)
    stopped = fleet.pid(two)
    soon()
    fleet.kill_supervisor()
    fleet.until_said(one, "Spider closed (supervisor_gone)")
    fleet.start()
    wait_until(lambda: f"Waiting for workers of an earlier start to end: {two}" in fleet.said(), log=fleet.log)
    os.kill(stopped, signal.SIGCONT)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("local-fleet")
    with synthetic_web(folder / "web") as web, local_fleet(web, folder / "crawl", settings=_SETTINGS) as fleet:
        with (web.folder / "seeds.txt").open("a") as seeds:  # every later start says of it that it is skipped
            seeds.write("no URL at all\n")
        disturb(fleet)
        assert fleet.wait() == 0, fleet.said()[-3000:]
        yield Crawled(web, fleet)


class TestDisturbed(OneCrawler):
    """Without a server."""


def test_each_worker_had_its_share(crawled: Crawled) -> None:
    """Each archived the hosts that the plan gives it."""
    hosts = [{url.split("/")[2] for url in read_captures(folder / "warc")} for folder in crawled.fleet.folders]
    assert all(len(names) > 5 for names in hosts)
    assert not hosts[0] & hosts[1]


def test_what_happened_is_said(crawled: Crawled) -> None:
    """In sentences, where the operator looks."""
    fleet, said = crawled.fleet, crawled.fleet.said()
    assert "it is started again in 1 s" in said
    assert "worker-2 pauses: " in said
    assert "The crawl is done: " in said
    for name in fleet.names:
        output = fleet.output(name)
        assert "The crawl ends: the supervisor has exited" in output
        assert "Spider closed (finished)" in output
    assert "Traceback" not in said
    assert not fleet.folder.joinpath("supervisor.sock").exists()


def test_every_line_of_every_process_is_an_object(crawled: Crawled) -> None:
    """LOG_LINES=json, over two supervisors, a worker that was killed and one whose disk took nothing."""
    fleet = crawled.fleet
    about = [line.get("worker") for line in json_lines(fleet.log)]

    assert {*fleet.names, None} == set(about)
    assert "no URL at all" in fleet.said()
    for name in fleet.names:
        lines = json_lines(fleet.folder / f"{name}.log")
        assert {line["worker"] for line in lines} == {name}
        assert len({line["pid"] for line in lines}) >= 2
