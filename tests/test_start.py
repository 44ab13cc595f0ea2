"""What a crawl has imported at its first request and at its end: every command, as where a program calls Scrapy, and
nothing that it may not need.
"""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from crawlerproject import commands
from crawlerproject.settings import commands_module
from crawlerproject.terminal import GuardedRecord, GuardedStream
from tests.web.running import IDENTITY, PROJECT
from tests.web.zygote import direct

# Each takes from a hundredth to a fifth of a second of every start, of every command.
HEAVY = {
    "aiodns",
    "aiohttp",
    "crawlerproject.stores.uploads",
    "duckdb",
    "fsspec",
    "multiprocessing",
    "playwright",
    "prometheus_client",
    "pyarrow",
    "pyarrow.compute",
    "redis",
    "requests",
    "rich",
    "s3fs",
    "surt",
    "tantivy",
    "tldextract",
    "tomlkit",
    "twisted.web.server",
}
# What commands beside ``crawl`` want, which are not imported where it is asked for by name.
OF_OTHER_COMMANDS = {"crawlerproject.fleet.redis.fleet_worker", "crawlerproject.stores.redis.connection", "numpy"}
AT_THE_END = {"pyarrow"}
"""For the index of what was archived."""
AND_THEN = {"numpy"}
"""By Arrow; and by pages, where they are read in Python."""
# A crawl of one page, in the process that serves it. Who asks for robots.txt has begun. From a program ("" before the
# options) every command is imported, from a command line ("alone") the one that is asked for.
CRAWL = """
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from scrapy.cmdline import execute

class Server(BaseHTTPRequestHandler):
    found = {}

    def do_GET(self):
        self.found.setdefault("first", sorted(sys.modules))
        body = b"" if self.path == "/robots.txt" else b"<title>One</title><p>A page of some words."
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
how, *options = sys.argv[1:]
arguments = ["scrapy", "crawl", "web", "-a", f"seeds=http://localhost:{server.server_port}/", *options]
if how == "alone":
    sys.argv = arguments
try:
    execute(arguments)
finally:
    print(json.dumps(Server.found | {"end": sorted(sys.modules)}))
"""


def crawled(tmp_path_factory: pytest.TempPathFactory, how: str) -> dict[str, set[str]]:
    """The modules that are there, by the moment."""
    folder = tmp_path_factory.mktemp("start")
    settings = {
        "CRAWL_DIR": str(folder / "crawl"),
        "FETCH_ALLOW_NETWORKS": '["127.0.0.0/8", "::1/128"]',
        "PACE_PRESET": "mirror",
        "RENDER": "never",
        "LOG_LEVEL": "WARNING",
        **IDENTITY,
    }
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    command = [sys.executable, "-c", CRAWL, how, *options]
    ended = subprocess.run(command, cwd=PROJECT, env=direct(), capture_output=True, text=True, check=True)
    assert list(Path(folder / "crawl" / "index").glob("*.cdxj")), ended.stderr
    return {moment: set(names) for moment, names in json.loads(ended.stdout.splitlines()[-1]).items()}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Of a program that calls Scrapy."""
    return crawled(tmp_path_factory, "")


@pytest.fixture(scope="module")
def loaded_alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Of ``scrapy crawl``."""
    return crawled(tmp_path_factory, "alone")


def test_a_start_imports_nothing_heavy(loaded: dict[str, set[str]]) -> None:
    """Arrow, Redis, a browser and others wait until they are asked for."""
    first = loaded["first"]

    assert {"crawlerproject.crawl.running_crawl", "crawlerproject.spiders.web", "crawlerproject.commands.rank"} <= first
    assert first.isdisjoint(HEAVY), first & HEAVY


def test_nor_does_an_ordinary_crawl(loaded: dict[str, set[str]]) -> None:
    """Only its index needs something."""
    assert loaded["end"] & HEAVY <= AT_THE_END


def test_the_command_line_imports_even_less(loaded_alone: dict[str, set[str]]) -> None:
    """Neither numpy nor what only a fleet in Redis needs, not even once pages are read and compared natively."""
    first, end = loaded_alone["first"], loaded_alone["end"]

    assert "crawlerproject.commands.crawl" in first
    assert first.isdisjoint(HEAVY | OF_OTHER_COMMANDS), first & (HEAVY | OF_OTHER_COMMANDS)
    assert end & (HEAVY | OF_OTHER_COMMANDS) <= AT_THE_END | AND_THEN


def test_only_the_command_that_is_asked_for_is_imported() -> None:
    """Scrapy imports all of a package's commands to find one; without one, or with another's, it lists them all."""
    assert commands_module(["scrapy", "crawl", "web"]) == "crawlerproject.commands.crawl"
    assert commands_module(["scrapy", "--nolog", "why", "http://a.test/"]) == "crawlerproject.commands.why"
    for others in ([], ["list"], ["-h"], ["no such"], ["../settings"], ["genspider", "crawl"]):
        assert commands_module(["scrapy", *others]) == "crawlerproject.commands"


@pytest.mark.parametrize("name", [path.stem for path in sorted(Path(commands.__path__[0]).glob("*.py"))])
def test_each_command_guards_what_it_prints(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is alone at its start: no other command does it in its place. Passwords and terminal codes go no further."""
    module = import_module(f"{commands.__name__}.{name}")
    command = getattr(module, "Command", None)
    if command is None or command.__module__ != module.__name__:
        pytest.skip("shared by commands")
    monkeypatch.setattr(logging, "_logRecordFactory", logging.getLogRecordFactory())
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, io.StringIO())

    command()

    assert isinstance(sys.stdout, GuardedStream)
    assert isinstance(sys.stderr, GuardedStream)
    assert logging.getLogRecordFactory() is GuardedRecord
