"""A running crawl watched: the page in a real browser, JSON, metrics; read-only and on loopback alone."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.commands.browser import look_at
from tests.web.ports import free_port
from tests.web.running import crawl_command, small_settings, start, synthetic_web

DEADLINE_SECONDS = 60.0


class Watched:
    """The port of a running crawl."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, path: str, method: str = "GET", host: str = "", address: str = "127.0.0.1") -> tuple[int, bytes, str]:
        """Status, body and the content security policy."""
        connection = http.client.HTTPConnection(address, self.port, timeout=10)
        connection.request(method, path, headers={"Host": host or f"127.0.0.1:{self.port}"})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.getheader("Content-Security-Policy") or ""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A slow crawl of the small web that says that it can be watched."""
    folder = tmp_path_factory.mktemp("watched")
    port = free_port()
    with synthetic_web(folder / "web") as web:
        settings = {**small_settings(web), "PACE_PRESET": "fixed5", "WATCH_PORT": str(port)}
        command = crawl_command(web.folder / "seeds.txt", folder / "crawl", web.folder / "hosts", settings)
        with (folder / "crawl.log").open("wb") as output:
            process = start(command, output)
        try:
            watched = Watched(port)
            wait_for_pages(watched)
            yield watched
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE_SECONDS) == 0
            log = (folder / "crawl.log").read_text()
            assert f"Watch this crawl at http://127.0.0.1:{port}/" in log
            assert "Traceback" not in log
        finally:
            process.kill()


def wait_for_pages(watched: Watched) -> None:
    """Until the crawl has something to show."""
    until = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < until:
        try:
            status, body, _ = watched.ask("/status.json")
        except OSError:
            status, body = 0, b""
        if status == 200 and json.loads(body).get("progress", {}).get("pages", 0) > 0:
            return
        time.sleep(0.2)
    raise AssertionError("the crawl never showed a page")


def test_metrics_are_what_the_crawl_says(watched: Watched) -> None:
    """Read by Prometheus' own parser; they agree with the status and only grow."""
    before = json.loads(watched.ask("/status.json")[1])
    _, body, _ = watched.ask("/metrics")
    after = json.loads(watched.ask("/status.json")[1])

    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }
    fetched = samples["crawler_attempts_total", "fetched"]
    assert before["stats"]["pages/fetched"] <= fetched <= after["stats"]["pages/fetched"]
    assert samples["crawler_pace_guard_refused_total",] == 0
    assert samples["crawler_paused",] == 0
    assert samples["crawler_hosts", "waiting"] > 0


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(watched: Watched, width: int) -> None:
    """Wide and narrow: hosts and bottleneck are there, nothing sticks out or is loaded from elsewhere, no error."""
    url = f"http://127.0.0.1:{watched.port}/"

    looked = look_at(url, width)

    assert looked.messages == []
    assert looked.requests == [url]
    assert looked.page_width <= width
    assert "Bound by " in looked.text
    assert "plain1.test" in looked.text
    assert "<script" not in watched.ask("/")[1].decode()


def test_it_is_read_only_and_for_this_machine(watched: Watched) -> None:
    """No method changes anything; another name (DNS rebinding) is refused; no other address listens."""
    assert watched.ask("/", "POST")[0] == 405
    assert watched.ask("/", "DELETE")[0] == 501
    assert watched.ask("/", host="evil.example")[0] == 403
    assert watched.ask("/nothing")[0] == 404
    assert watched.ask("/")[2].startswith("default-src 'none'")
    with pytest.raises(ConnectionRefusedError):
        watched.ask("/", address="127.0.0.2")


def test_a_taken_port_stops_no_crawl(tmp_path: Path) -> None:
    """The crawl says so in one line and goes on."""
    with socket.create_server(("127.0.0.1", 0)) as taken, synthetic_web(tmp_path / "web") as web:
        settings = {**small_settings(web), "WATCH_PORT": str(taken.getsockname()[1]), "SCOPE_MAX_DEPTH": "0"}
        command = crawl_command(web.folder / "seeds.txt", tmp_path / "crawl", web.folder / "hosts", settings)
        with (tmp_path / "crawl.log").open("wb") as output:
            assert start(command, output).wait(DEADLINE_SECONDS) == 0

    log = (tmp_path / "crawl.log").read_text()
    assert "Nobody can watch at 127.0.0.1" in log
    assert "Traceback" not in log
