"""Redis comes back empty, with data from before, or is emptied: three workers stop, and lose nothing by it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from crawlerproject.errors import EXIT_FORGOTTEN
from tests.crawls.fleet.fleets import Workers, workers
from tests.hostile.ledger import pays
from tests.stores.redis_servers import RedisServer, redis_server
from tests.web.judge import judge_folder
from tests.web.running import RunningWeb, synthetic_web
from tests.web.waiting import wait_until

_NAMES = ("w1", "w2", "w3")
_SECONDS = 30.0
_DATA = "appendonlydir"  # of Redis, in its folder


class Stop(NamedTuple):
    """How the workers ended."""

    statuses: list[int]
    said: list[str]  # what each has said since it was started
    torn: int  # files cut out of archives


class Crawled(NamedTuple):
    """A crawl that was stopped three times and came to its end."""

    web: RunningWeb
    fleet: Workers
    stops: dict[str, Stop]


def seen_reports(fleet: Workers) -> int:
    """Of how many reports of the whole fleet every worker knows."""
    return min(int(orjson.loads((fleet.folder / name / "worker.json").read_bytes())["reports"]) for name in _NAMES)


def until_more(fleet: Workers) -> None:
    """Until each worker has joined, and some seconds more have passed in Redis to its knowledge."""
    fleet.until_opened(_SECONDS, *_NAMES)
    before = seen_reports(fleet)
    wait_until(lambda: seen_reports(fleet) > before + len(_NAMES), seconds=_SECONDS)


def torn(fleet: Workers) -> int:
    """How many pieces were cut out of archives: what a worker had not committed, at its next start."""
    return len(list(fleet.folder.glob("*/torn/*")))


def stopped(fleet: Workers, since: dict[str, int], cut: int = 0) -> Stop:
    """Once every worker has ended by itself; ``cut``: pieces before that."""
    statuses = [fleet.ended(name, _SECONDS) for name in _NAMES]
    said = [fleet.output(name)[since[name] :] for name in _NAMES]
    return Stop(statuses, said, torn(fleet) - cut)


def data_of(server: RedisServer, to: Path) -> None:
    """A copy of all that the server has on its disk."""
    shutil.copytree(server.folder / _DATA, to)


def restart_with(server: RedisServer, data: Path | None) -> None:
    """Start the server, which is down, with other data; None: without any."""
    shutil.rmtree(server.folder / _DATA)
    if data is not None:
        shutil.copytree(data, server.folder / _DATA)
    server.start()


def disturb(fleet: Workers, server: RedisServer, folder: Path) -> Iterator[tuple[str, Stop]]:
    """Redis without its data, with older data, emptied; in between and at the end with all of it."""
    since = dict.fromkeys(_NAMES, 0)

    def outputs() -> dict[str, int]:
        return {name: len(fleet.output(name)) for name in _NAMES}

    fleet.start(*_NAMES)
    until_more(fleet)
    data_of(server, folder / "older")
    until_more(fleet)
    server.stop()
    data_of(server, folder / "whole")
    restart_with(server, None)
    yield "restarted without its data", stopped(fleet, since)

    server.stop()
    restart_with(server, folder / "older")
    since = outputs()
    fleet.start(*_NAMES)
    yield "with data of before", stopped(fleet, since)

    server.stop()
    restart_with(server, folder / "whole")
    since = outputs()
    fleet.start(*_NAMES)
    until_more(fleet)
    for name in _NAMES:  # or they would commit to the server between its start and its loss
        fleet.signal(name, signal.SIGSTOP)
    server.stop()
    data_of(server, folder / "later")
    server.start()
    cut = torn(fleet)
    with server.client() as client:
        client.flushall()
    for name in _NAMES:
        fleet.signal(name, signal.SIGCONT)
    yield "emptied", stopped(fleet, since, cut)

    server.stop()
    restart_with(server, folder / "later")
    fleet.start(*_NAMES)
    fleet.wait()


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("redis-forgot")
    with (
        redis_server(folder / "redis") as server,
        synthetic_web(folder / "web") as web,
        workers(web, folder / "crawl", server.url) as fleet,
    ):
        yield Crawled(web, fleet, dict(disturb(fleet, server, folder)))


@pytest.mark.parametrize("how", ["restarted without its data", "with data of before", "emptied"])
def test_every_worker_stops_with_one_sentence(crawled: Crawled, how: str) -> None:
    """With a status of its own, and no archive is cut."""
    stop = crawled.stops[how]

    assert stop.statuses == [EXIT_FORGOTTEN] * len(_NAMES), stop.said
    assert [said.count("it has lost what it had answered for") for said in stop.said] == [1] * len(_NAMES)
    assert [said for said in stop.said if "Traceback" in said or "joins again" in said] == []
    pays("Redis emptied, or back without its data", "the archive", stop.torn, "pieces cut out", at_most=0)


def test_with_its_data_back_nothing_is_missing_twice_or_too_soon(crawled: Crawled) -> None:
    """What was archived before each stop counts."""
    verdict = judge_folder(
        crawled.web.folder, None, workers=crawled.fleet.folders, host_seconds=0.25, ip_seconds=0.5, log=False
    )

    assert verdict.faults == []
