"""Whether a worker is in its fleet, as a probe asks it: at work, without Redis, and when Redis has forgotten."""

from __future__ import annotations

import http.client
import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from crawlerproject.errors import EXIT_FORGOTTEN
from tests.commands.crawled import scrapy
from tests.crawls.fleet.fleets import PARTITIONS, Workers, workers
from tests.stores.redis_servers import RedisServer, redis_server
from tests.web.ports import free_port
from tests.web.running import one_pace, synthetic_web
from tests.web.waiting import wait_until

_SECONDS = 30.0
_NAME = "w1"


class Probed:
    """A worker with WATCH_PORT, and its Redis."""

    def __init__(self, fleet: Workers, server: RedisServer, port: int) -> None:
        self.fleet, self.server, self.port = fleet, server, port

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body; 0 while nothing listens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def until(self, status: int, words: str = "") -> Any:
        """What /ready says once it has this status, and these words."""

        def says() -> bytes:
            found, body = self.get("/ready")
            return body if found == status and words in body.decode() else b""

        body = wait_until(says, f"{status} {words}", seconds=_SECONDS, log=self.fleet.folder / f"{_NAME}.log")
        return json.loads(body)

    def metric(self, name: str) -> float:
        """The one sample of this name."""
        families = text_string_to_metric_families(self.get("/metrics")[1].decode())
        [value] = [sample.value for family in families for sample in family.samples if sample.name == name]
        return value


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probed]:
    """At work for as long as the tests take."""
    folder, port = tmp_path_factory.mktemp("ready"), free_port()
    with (
        redis_server(folder / "redis") as server,
        synthetic_web(folder / "web") as web,
        workers(web, folder / "crawl", server.url, {"WATCH_PORT": str(port), **one_pace(5.0)}) as fleet,
    ):
        fleet.start(_NAME)
        yield Probed(fleet, server, port)


def test_it_is_ready_when_it_holds_its_share(probed: Probed) -> None:
    """All partitions, since it is alone; the metrics say as much."""
    place = {"absent": "", "crawl": "web", "held": PARTITIONS, "partitions": PARTITIONS}
    wait_until(lambda: probed.until(200)["workers"] == {_NAME: place}, seconds=_SECONDS)

    wait_until(lambda: probed.metric("crawler_partitions_held") == PARTITIONS, seconds=_SECONDS)
    assert probed.metric("crawler_partitions") == PARTITIONS
    assert probed.metric("crawler_store_forgot") == 0


def test_it_is_not_ready_without_redis(probed: Probed) -> None:
    """While that answers nothing; again when it does."""
    assert probed.server.process is not None
    probed.server.process.send_signal(signal.SIGSTOP)
    try:
        assert probed.until(503, "does not answer")["error"].startswith(f"{_NAME}: redis://127.0.0.1:")
        assert probed.get("/metrics")[0] == 200, "it is alive"
    finally:
        probed.server.process.send_signal(signal.SIGCONT)
    probed.until(200)


def test_that_redis_has_forgotten_is_read_before_the_port_closes(probed: Probed) -> None:
    """The worker ends once its metrics were read."""
    with probed.server.client() as client:
        client.flushall()

    assert probed.until(503, "ended")["error"] == f"{_NAME}: has ended (store_forgot)"
    assert probed.metric("crawler_store_forgot") == 1
    assert probed.fleet.ended(_NAME) == EXIT_FORGOTTEN
    told = scrapy("status", "--metrics", "-s", f"STATE_URL={probed.server.url}", folder=probed.fleet.folder)
    assert "crawler_store_forgot 1.0" in told.stdout.splitlines(), "for a collector, though there is no crawl there"
