"""Ctrl-C: once ends in good order, twice ends at once; neither loses or repeats anything."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from crawlerproject.settings import EXTENSIONS
from crawlerproject.stores.operator_files.control import SUPERVISED_SINCE, change_pauses
from crawlerproject.stores.redis.journal_view import crawl_in_redis
from tests.crawls.operator.interrupting import InterruptedOpening
from tests.crawls.operator.spoken_to import crawling, log_of
from tests.crawls.test_small_web import PATIENCE
from tests.hostile.arena import arena
from tests.stores.redis_servers import redis_server
from tests.web.judge import judge_folder
from tests.web.running import RunningWeb, crawl_command, measured, read_pages, small_settings, synthetic_web
from tests.web.waiting import wait_until
from tests.web.zygote import Process

DEADLINE_SECONDS = 60.0


def _started(web: RunningWeb, crawl_dir: Path, pages: int) -> Process:
    """A crawl that has asked for ``pages`` more pages."""
    log = web.folder / "server.jsonl"
    enough = read_pages(log) + pages
    settings = {**small_settings(web), **PATIENCE}
    command = crawl_command(web.folder / "seeds.txt", crawl_dir, web.folder / "hosts", settings)
    with crawl_dir.with_suffix(".log").open("ab") as output:
        process = Process(command, output)
    wait_until(lambda: read_pages(log) >= enough, seconds=DEADLINE_SECONDS, process=process)
    return process


def test_interrupted_once_and_twice(tmp_path: Path) -> None:
    """A stop in good order, then one at once, then to the end: every page once, nothing torn, every pause kept."""
    crawl_dir = tmp_path / "crawl"
    with synthetic_web(tmp_path / "web") as web:
        process = _started(web, crawl_dir, 50)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == 0
        assert not list((crawl_dir / "warc").glob("*.open"))

        process = _started(web, crawl_dir, 40)
        process.send_signal(signal.SIGINT)
        log = crawl_dir.with_suffix(".log")  # of both runs; two signals at once would count as one
        wait_until(lambda: log.read_text().count("Received SIGINT, shutting down gracefully") == 2)
        process.send_signal(signal.SIGINT)
        process.wait(10)

        settings = {**small_settings(web), **PATIENCE}
        command = crawl_command(web.folder / "seeds.txt", crawl_dir, web.folder / "hosts", settings)
        assert measured(command, tmp_path / "last.log").status == 0
        verdict = judge_folder(web.folder, crawl_dir, host_seconds=0.25, ip_seconds=0.5, log=False)

    assert verdict.faults == []


@pytest.mark.parametrize("reason", ["shutdown", "stopped"])
def test_interrupted_while_it_opens(tmp_path: Path, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine has not started yet: it ends in good order all the same, and a worker leaves its fleet.

    A stop that was ordered since its supervisor began, before this worker did, is what the signal passes on.
    """
    interrupted = f"{InterruptedOpening.__module__}.{InterruptedOpening.__name__}"
    with redis_server(tmp_path / "redis") as server, arena(tmp_path) as web:
        own = {"STATE_URL": server.url, "FLEET_WORKER": "w", "EXTENSIONS": json.dumps(EXTENSIONS | {interrupted: 1})}
        monkeypatch.setenv(SUPERVISED_SINCE, str(time.time() - 1))
        if reason == "stopped":
            (web.folder / "crawl").mkdir()
            change_pauses(web.folder / "crawl", lambda pauses: setattr(pauses, "stopped_at", time.time()))
        with crawling(web, "-a", f"seeds={web.innocent()}", settings=own) as process:
            status = process.wait(DEADLINE_SECONDS)
        with crawl_in_redis(server.url, "web") as view:
            left = view.workers()

    assert status == 0, log_of(web)[-3000:]
    assert left == []
    assert f"Spider closed ({reason})" in log_of(web)
