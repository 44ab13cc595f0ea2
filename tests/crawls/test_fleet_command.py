"""``scrapy fleet``: workers that die come back, Ctrl-C reaches all of them, mistakes are said once."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.crawls.fleets import SETTINGS
from tests.stores.redis_servers import redis_server
from tests.web.running import crawl_command, small_settings, start, synthetic_web


def children_of(pid: int) -> list[int]:
    """Processes that a process has started."""
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(condition: object, seconds: float = 60.0) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.05)


def fleet_command(seeds: Path, crawl: Path, hosts: Path, settings: dict[str, str]) -> list[str]:
    """As the operator would type it."""
    command = crawl_command(seeds, crawl, hosts, settings)
    at = command.index("crawl")
    return [*command[:at], "fleet", *command[at + 2 :], "--workers", "2", "--name", "w"]


@pytest.mark.timeout(200)
def test_workers_are_kept_running_and_stopped_together(tmp_path: Path) -> None:
    """One of two is killed: it comes back under its name. Ctrl-C: both end in good order, and so do we."""
    crawl = tmp_path / "crawl"
    with redis_server(tmp_path / "redis") as server, synthetic_web(tmp_path / "web") as web:
        settings = {**small_settings(web), **SETTINGS, "STATE_URL": server.url, "PROGRESS_LOG_SECONDS": "0.5"}
        command = fleet_command(web.folder / "seeds.txt", crawl, web.folder / "hosts", settings)
        with (tmp_path / "fleet.log").open("wb") as output:
            fleet = start(command, output)
        logs = [crawl / "w-1.log", crawl / "w-2.log"]
        try:
            until(lambda: all(log.exists() and "Spider opened" in log.read_text() for log in logs))
            os.kill(children_of(fleet.pid)[0], signal.SIGKILL)
            until(lambda: any("pages/s" in life for log in logs for life in log.read_text().split("Spider opened")[2:]))
            fleet.send_signal(signal.SIGINT)
            assert fleet.wait(60) == 0
        finally:
            for pid in [*children_of(fleet.pid), fleet.pid] if fleet.poll() is None else []:
                os.kill(pid, signal.SIGKILL)

    assert all("Spider closed (shutdown)" in log.read_text() for log in logs)
    assert "it is started again in 1 s" in (tmp_path / "fleet.log").read_text()
    for name in ("w-1", "w-2"):
        assert not list((crawl / name / "warc").glob("*.open"))


def test_a_frontier_on_disk_cannot_be_shared(tmp_path: Path) -> None:
    """One sentence, before any worker starts."""
    (tmp_path / "hosts").write_text("127.0.0.1 a.test\n")
    command = fleet_command(Path("http://a.test/"), tmp_path / "crawl", tmp_path / "hosts", {})

    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert refused.returncode == 2
    assert "use -s STATE_URL=redis://" in refused.stderr + refused.stdout
    assert "Traceback" not in refused.stderr
