"""``scrapy fleet``: workers that die come back, Ctrl-C reaches all of them, mistakes are said once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.membership import RedisFleet
from tests.crawls.fleet.fleets import SETTINGS, json_lines
from tests.crawls.fleet.local_fleets import processes_of
from tests.stores.redis_servers import redis_server, valkey_program
from tests.web import zygote
from tests.web.running import crawl_command, small_settings, start, synthetic_web
from tests.web.waiting import wait_until


def fleet_command(seeds: Path, crawl: Path, hosts: Path, settings: dict[str, str]) -> list[str]:
    """As the operator would type it."""
    command = crawl_command(seeds, crawl, hosts, settings)
    at = command.index("crawl")
    return [*command[:at], "fleet", *command[at + 2 :], "--workers", "2", "--name", "w"]


def test_workers_are_kept_running_and_stopped_together(tmp_path: Path) -> None:
    """One of two is killed: it comes back under its name. Ctrl-C: both end in good order, and so do we.

    With LOG_LINES=json every line of theirs and of ours is an object, and a worker's names the worker.
    """
    crawl = tmp_path / "crawl"
    valkey = redis_server(tmp_path / "redis", program=valkey_program())  # or Redis: it is all the same to a crawl
    with valkey as server, synthetic_web(tmp_path / "web") as web:
        settings = {**small_settings(web), **SETTINGS, "STATE_URL": server.url, "PROGRESS_LOG_SECONDS": "0.5"}
        settings["LOG_LINES"] = "json"
        command = fleet_command(web.folder / "seeds.txt", crawl, web.folder / "hosts", settings)
        with (tmp_path / "fleet.log").open("wb") as output:
            fleet = start(command, output)
        logs = [crawl / "w-1.log", crawl / "w-2.log"]
        try:
            wait_until(lambda: all(log.exists() and "Spider opened" in log.read_text() for log in logs))
            os.kill(processes_of(tmp_path / "fleet.log")["w-1"], signal.SIGKILL)
            wait_until(
                lambda: any("pages/s" in life for log in logs for life in log.read_text().split("Spider opened")[2:])
            )
            fleet.send_signal(signal.SIGINT)
            assert fleet.wait(60) == 0
        finally:
            fleet.kill()

    assert all("Spider closed (shutdown)" in log.read_text() for log in logs)
    said = (tmp_path / "fleet.log").read_text()
    assert "it is started again in 1 s" in said
    assert "Traceback" not in said
    supervisors = json_lines(tmp_path / "fleet.log")
    assert {line["worker"] for line in supervisors} == {"w-1", "w-2"}
    assert all(line["message"].startswith(line["worker"]) for line in supervisors)
    for name in ("w-1", "w-2"):
        lines = json_lines(crawl / f"{name}.log")
        assert len(lines) > 5
        assert {line["worker"] for line in lines} == {name}
        assert not list((crawl / name / "warc").glob("*.open"))
        assert not (crawl / name / "crawl.toml").exists()
    assert "seeds.txt" in (crawl / "crawl.toml").read_text()  # one for all


def one_worker(folder: Path, state_url: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Start a worker called w and wait for its end."""
    (folder / "hosts").write_text("127.0.0.1 a.test\n")
    (folder / "seeds.txt").write_text("http://a.test/\n")
    settings = {**SETTINGS, "RENDER": "never", "STATE_URL": state_url, "FLEET_WORKER": "w"}
    command = crawl_command(folder / "seeds.txt", folder / "crawl", folder / "hosts", settings)
    command += more
    return zygote.run(command)


def first_connection_only(port: int) -> int:
    """A port that leads to another one for one connection; whoever comes later is refused."""
    listening = socket.create_server(("127.0.0.1", 0))
    own: int = listening.getsockname()[1]

    def forward(source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with listening:
            client, _ = listening.accept()
        server = socket.create_connection(("127.0.0.1", port))
        back = threading.Thread(target=forward, args=(server, client), daemon=True)
        back.start()
        forward(client, server)
        back.join()

    threading.Thread(target=serve, daemon=True).start()
    return own


def test_a_name_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    """A second worker of a name that is at work does not start, and says what to do."""
    with redis_server(tmp_path / "redis") as server:
        link = RedisLink(server.url)
        RedisFleet(link, "web", "w", 60_000).begin("another life", [], 16)
        refused = one_worker(tmp_path, server.url)
        link.close()

    assert refused.returncode == 2
    assert "A worker called 'w' is at work" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_crawl_that_never_was_is_not_come_back_to(tmp_path: Path) -> None:
    """Said at the start, rather than nothing visited."""
    with redis_server(tmp_path / "redis") as server:
        refused = one_worker(tmp_path, server.url, "-a", "mode=recrawl")

    assert refused.returncode == 2
    assert "There is no crawl 'web' at redis://127.0.0.1" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_redis_that_went_after_the_check_is_one_sentence(tmp_path: Path) -> None:
    """The preflight check found a Redis, the start a moment later does not."""
    with redis_server(tmp_path / "redis") as server:
        refused = one_worker(tmp_path, f"redis://127.0.0.1:{first_connection_only(server.port)}/0")

    assert refused.returncode == 2
    assert "The crawl does not start: redis://127.0.0.1" in refused.stderr
    assert "Traceback" not in refused.stderr
