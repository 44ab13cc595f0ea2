"""Workers killed, stopped for longer than their lease and added, Redis restarted twice: still one crawler."""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.crawls.fleet.fleets import LEASE_SECONDS, Workers, workers
from tests.crawls.fleet.verdicts import OneCrawler
from tests.stores.redis_servers import RedisServer, redis_server
from tests.web import zygote
from tests.web.running import RunningWeb, synthetic_web

_START_SECONDS = 60.0
_SEED = 8  # of the moments between events


class Crawled(NamedTuple):
    """A finished crawl, and from when to when the stopped worker's leases were surely over."""

    web: RunningWeb
    fleet: Workers


def disturb(fleet: Workers, server: RedisServer) -> None:
    """Everything that goes wrong, in an order that makes each of it count; the moments are by chance."""
    chance = random.Random(_SEED)

    def soon() -> None:
        time.sleep(chance.uniform(0.2, 1.5))

    fleet.signal("w2", signal.SIGSTOP)
    stopped = time.monotonic()
    soon()
    fleet.kill("w1")
    soon()
    server.stop()
    soon()
    server.start()
    fleet.start("w1")
    soon()
    fleet.start("w5")
    fleet.until_opened(_START_SECONDS, "w1", "w5")
    time.sleep(max(0.0, stopped + LEASE_SECONDS + 3 - time.monotonic()))  # others have its partitions by now
    fleet.signal("w2", signal.SIGCONT)
    soon()
    fleet.kill("w3")
    server.stop(kill=True)
    soon()
    server.start()
    soon()
    fleet.start("w3")
    soon()
    fleet.kill("w4")  # for good


def recover(fleet: Workers, name: str) -> None:
    """As the operator would for a worker that never comes back."""
    command = [sys.executable, "-m", "scrapy", "recover", str(fleet.folder / name)]
    command += ["-s", f"STATE_URL={fleet.settings['STATE_URL']}"]
    done = zygote.run(command)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("fleet-kills")
    with (
        redis_server(folder / "redis") as server,
        synthetic_web(folder / "web") as web,
        workers(web, folder / "crawl", server.url) as fleet,
    ):
        fleet.start("w1", "w2", "w3", "w4")
        fleet.until_archiving(_START_SECONDS, "w1", "w2", "w3", "w4")
        disturb(fleet, server)
        fleet.wait()
        recover(fleet, "w4")
        yield Crawled(web, fleet)


class TestDisturbed(OneCrawler):
    """Over Redis."""


def test_a_stopped_worker_knows_that_it_lost_its_leases(crawled: Crawled) -> None:
    """It woke up, wrote nothing under its old leases, and joined again."""
    assert "joins again" in crawled.fleet.output("w2")
