"""Redis goes while a host's robots.txt is on its way: whatever its end asks Redis, nothing is lost, nothing twice."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.crawls.fleet.fleets import SETTINGS
from tests.stores.redis_servers import RedisServer, redis_server
from tests.web.judge import judge_captures, read_captures
from tests.web.running import crawl_command, measured

_PAGES = 5
# How long Redis stays away: the answer has ended by then.
_AWAY_SECONDS = 2.0
_FORGETS = "this worker forgets what it has not committed and joins again"


class Site(ThreadingHTTPServer):
    """Some pages under every name; the first request stops Redis before it is answered, and Redis comes back soon."""

    def __init__(self, redis: RedisServer, rules_at: str) -> None:
        """``rules_at``: the host that has robots.txt; others lead to it."""
        super().__init__(("127.0.0.1", 0), _Visit)
        self.redis, self.rules_at = redis, rules_at
        self.asked: list[str] = []  # host and path


class _Visit(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        site, host = self.server, self.headers["Host"].partition(":")[0]
        site.asked.append(host + self.path)
        if len(site.asked) == 1:
            site.redis.stop()
            threading.Timer(_AWAY_SECONDS, site.redis.start).start()
        if self.path == "/robots.txt" and host != site.rules_at:
            where = f"http://{site.rules_at}:{site.server_port}/robots.txt"
            self._answer(302, "text/plain", b"there\n", f"Location: {where}\r\n")
        elif self.path == "/robots.txt":
            self._answer(200, "text/plain", b"User-agent: *\nAllow: /\n")
        else:
            links = "".join(f'<a href="/{number}">{number}</a>' for number in range(_PAGES))
            self._answer(200, "text/html", f"<p>page {host}{self.path}</p>{links}".encode())

    def _answer(self, status: int, kind: str, body: bytes, more: str = "") -> None:
        head = f"HTTP/1.1 {status} Fine\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        self.wfile.write(head.encode() + body)


@contextlib.contextmanager
def serving(redis: RedisServer, rules_at: str) -> Iterator[Site]:
    """The site for the length of a block."""
    site = Site(redis, rules_at)
    thread = threading.Thread(target=site.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


@pytest.mark.parametrize("rules_at", ["a.test", "b.test"])
def test_a_host_whose_first_answer_finds_no_redis(tmp_path: Path, rules_at: str) -> None:
    """What the end of its own robots.txt needs is on the worker's disk, and of the host that it leads to as well."""
    with redis_server(tmp_path / "redis") as redis, serving(redis, rules_at) as site:
        (tmp_path / "hosts").write_text("127.0.0.1 a.test\n127.0.0.1 b.test\n")
        (tmp_path / "seeds.txt").write_text(f"http://a.test:{site.server_port}/\n")
        pace = {"PACE_PRESET": "mirror", "PACE_IP_SECONDS": "0", "RENDER": "never"}
        settings = {**SETTINGS, **pace, "STATE_URL": redis.url, "FLEET_WORKER": "w"}
        command = crawl_command(tmp_path / "seeds.txt", tmp_path / "crawl", tmp_path / "hosts", settings)
        ended = measured(command, tmp_path / "log").status

    output = (tmp_path / "log").read_text()
    assert ended == 0, output[-3000:]
    assert "The crawl goes on." in output
    assert "Traceback" not in output
    assert _FORGETS not in output
    pages = ["/", *(f"/{number}" for number in range(_PAGES))]
    assert sorted(asked for asked in site.asked if not asked.endswith("/robots.txt")) == [f"a.test{p}" for p in pages]
    captures = read_captures(tmp_path / "crawl" / "w" / "warc")
    expected = {f"http://a.test:{site.server_port}{path}" for path in pages}
    assert judge_captures(captures, expected).faults == []
