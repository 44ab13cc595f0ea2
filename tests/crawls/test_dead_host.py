"""A host that is dead as the crawl begins and back two days later, while the crawl still runs: it is crawled.

By one process, by a fleet without a server, and by a worker of a fleet in Redis.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawls.fleet.fleets import SETTINGS as OF_FLEETS
from tests.stores.redis_servers import redis_server
from tests.web.chain import chain
from tests.web.judge import read_captures
from tests.web.running import crawl_command, one_pace, start
from tests.web.waiting import wait_until

DAYS = 2
DEADLINE_SECONDS = 60.0
SETTINGS = {
    **one_pace(0.1),
    "HOST_MAX_FAILURES": "1",
    "BACKOFF_START_SECONDS": "0.2",
    "BACKOFF_MAX_SECONDS": "0.2",
    "PACE_IP_SECONDS": "0",
    "COMMIT_SECONDS": "0.2",
    "RENDER": "never",
    "SCOPE_MAX_DEPTH": "1000",
}


@contextlib.contextmanager
def state_url(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """What a crawl of the kind needs among its settings."""
    if kind != "redis":
        yield OF_FLEETS if kind == "local" else {}
        return
    with redis_server(folder) as redis:
        yield {**OF_FLEETS, "STATE_URL": redis.url, "FLEET_WORKER": "w"}


@pytest.mark.parametrize("kind", ["alone", "local", "redis"])
def test_a_host_that_was_dead_is_crawled_when_it_is_back(tmp_path: Path, kind: str) -> None:
    """Left alone after its probe; asked once the clock is two days ahead; the crawl ends when the others are done."""
    log, later = tmp_path / "log", tmp_path / "later"
    with chain(("127.0.0.1", 0), endless=True) as alive, state_url(kind, tmp_path / "redis") as more:
        port = alive.server_port
        (tmp_path / "hosts").write_text("127.0.0.1 alive.test\n127.0.0.2 dead.test\n")
        (tmp_path / "seeds.txt").write_text(f"http://alive.test:{port}/\nhttp://dead.test:{port}/\n")
        command = crawl_command(
            tmp_path / "seeds.txt", tmp_path / "crawl", tmp_path / "hosts", {**more, **SETTINGS}, "host"
        )
        arguments = command[command.index("web") + 1 :]
        begin = [f"workers:{DAYS}@{later}", "fleet", "--workers", "2"]
        if kind != "local":
            begin = [f"{'store:' * (kind == 'redis')}{DAYS}@{later}", "crawl", "web"]
        with log.open("wb") as output:
            process = start([sys.executable, "-m", "tests.web.later", *begin, *arguments], output)
        said = [log, *((tmp_path / "crawl" / f"worker-{number}.log") for number in (1, 2))]
        try:
            wait_until(lambda: "is left alone until" in _text(said), process=process, log=log)
            with chain(("127.0.0.2", port), endless=False) as back:
                before = len(alive.asked)
                wait_until(lambda: len(alive.asked) > before + 3, process=process, log=log)
                assert back.asked == []
                later.touch()
                wait_until(lambda: "/1" in back.asked, process=process, log=log)
                alive.endless = False
                assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()

    assert back.asked == ["/robots.txt", "/", "/1"]
    assert "Traceback" not in _text(said)
    assert "joins again" not in _text(said)  # a start would have asked it anyway
    found = [url for warc in (tmp_path / "crawl").rglob("warc") for url in read_captures(warc)]
    assert f"http://dead.test:{port}/1" in found


def _text(logs: list[Path]) -> str:
    return "".join(log.read_text() for log in logs if log.exists())
