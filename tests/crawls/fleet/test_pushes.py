"""Hubs reach one worker of a fleet, of either kind: it subscribes for all, and what is pushed is every worker's."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.stores.logs.request_log import read_log
from tests.crawls.fleet.fleets import workers
from tests.crawls.fleet.local_fleets import local_fleet
from tests.crawls.test_pushes import DEADLINE_SECONDS, HUB_ADDRESS, QUICK, Pushed, lines, servers
from tests.stores.redis_servers import redis_server
from tests.web.ports import free_port
from tests.web.running import RunningWeb
from tests.web.waiting import wait_until

_LISTENS = "Hubs push to 127.0.0.1"


@contextlib.contextmanager
def in_redis(web: RunningWeb, folder: Path, settings: dict[str, str]) -> Iterator[list[Path]]:
    """Two workers, the first of which is there first; their logs."""
    with (
        redis_server(folder / "redis") as server,
        workers(web, folder / "crawl", server.url, settings) as fleet,
    ):
        fleet.start("w1")
        fleet.until_opened(DEADLINE_SECONDS, "w1")
        fleet.start("w2")
        yield [folder / "crawl" / f"{name}.log" for name in ("w1", "w2")]
        for name in ("w1", "w2"):
            fleet.signal(name, signal.SIGINT)
        fleet.wait(DEADLINE_SECONDS)


@contextlib.contextmanager
def without_a_server(web: RunningWeb, folder: Path, settings: dict[str, str]) -> Iterator[list[Path]]:
    """As the operator starts them."""
    with local_fleet(web, folder / "crawl", 2, settings) as fleet:
        yield [folder / "crawl" / f"{name}.log" for name in fleet.names]
        fleet.supervisor.send_signal(signal.SIGINT)
        assert fleet.wait(DEADLINE_SECONDS) == 0


KINDS = {"redis": in_redis, "local": without_a_server}


class FleetPushed(Pushed):
    """A fleet that hubs push to."""

    def rows(self, **wanted: object) -> list[dict[str, Any]]:
        """What any worker's request log has."""
        logs = [folder / "log" for folder in self.crawl.iterdir() if (folder / "log").is_dir()]
        return [row for log in logs for row in read_log(log) if wanted.items() <= row.items()]


@pytest.fixture(scope="module", params=KINDS)
def pushed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetPushed]:
    """A fleet that has nothing left to do but to wait for pushes."""
    folder, port = tmp_path_factory.mktemp("pushed"), free_port()
    with servers(folder) as web:
        settings = {**QUICK, "WEBSUB_PORT": str(port)}
        with KINDS[request.param](web, folder, settings) as logs:
            topic = f"http://news.test:{web.port}/feed.atom"
            asked = wait_until(lambda: lines(web.folder / "hub.jsonl", did="verified", topic=topic), log=logs[0])
            assert asked[0]["good"], asked
            wait_until(lambda: lines(web.folder / "server.jsonl", path="/entry/1"), log=logs[0])
            reach = (web.folder / "hub").read_text().replace("hub.test", HUB_ADDRESS)
            yield FleetPushed(web.folder, folder / "crawl", web.port, asked[0]["callback"], reach + "/")
            said = [log.read_text() for log in logs]
        assert [_LISTENS in each for each in said] == [True, False]
        assert not any("Traceback" in log.read_text() for log in logs)


def test_a_pushed_page_is_crawled(pushed: FleetPushed) -> None:
    """Whichever worker has its host; the hub was asked once for the subscription."""
    before = pushed.asked()
    # A hub pushes again when it is told so: a crawl may pause.
    told = wait_until(lambda: [told for told in [pushed.publish("/entry/1", "/entry/pushed")] if told["status"] != 503])
    wait_until(lambda: "/entry/pushed" in pushed.asked(), str(told))
    url = f"http://news.test:{pushed.port}/entry/pushed"
    rows = wait_until(lambda: pushed.rows(url=url))

    assert [each["status"] for each in told] == [202]
    assert "/entry/pushed" not in before
    assert (rows[0]["via"], rows[0]["reason"]) == (pushed.topic, "fetched")
    posts = lines(pushed.folder / "hub.jsonl", did="asked", method="POST", path="/")
    assert len([row for row in posts if row["form"].get("hub.topic") == pushed.topic]) == 1


def test_a_hub_that_names_another_is_followed(pushed: FleetPushed) -> None:
    """308: the same form at the new address; a hub that must not be asked is not."""
    topic = f"http://moved.test:{pushed.port}/feed.atom"
    question = wait_until(lambda: lines(pushed.folder / "hub.jsonl", did="verified", topic=topic))
    asked = lines(pushed.folder / "hub.jsonl", did="asked", method="POST")
    posts = [row for row in asked if topic in str(row["form"])]

    assert [row["path"] for row in posts] == ["/moved/", "/"]
    assert posts[0]["form"] == posts[1]["form"]
    assert [row["good"] for row in question] == [True]
    assert {row["path"] for row in asked if "form" in row} <= {"/", "/moved/"}
