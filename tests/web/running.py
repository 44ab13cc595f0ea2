"""Start the synthetic web and a crawl of it as processes of their own, and measure what they cost."""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from tests.web.waiting import Polled, busyness
from tests.web.zygote import PROJECT as PROJECT
from tests.web.zygote import Process, direct

_START_SECONDS = 60.0  # for a server to listen: 10,000 hosts take about 2 s
_LOOK_SECONDS = 0.02
_CONNECT_SECONDS = 1.5  # over loopback, where only a TLS handshake waits for the server's own turn
#: How the crawler presents itself on loopback, where it needs no way to be reached.
IDENTITY = {
    "CRAWLER_NAME": "TestBed",
    "CRAWLER_INFO_URL": "https://example.org/bot",
    "CRAWLER_CONTACT": "bot@example.org",
}
#: What lets a crawl of the small profile end soon: its hosts fail on purpose and come back within seconds.
HASTE = {
    "BACKOFF_START_SECONDS": "1",
    "BACKOFF_MAX_SECONDS": "2",
    "HOST_MAX_FAILURES": "3",
    "FRONTIER_MAX_REST_SECONDS": "15",  # hosts that rest for longer are left for a later start
    "RENDER": "never",
}


def one_pace(seconds: float) -> dict[str, str]:
    """Settings with which every host has this pause, however quick or slow it is."""
    return dict.fromkeys(("PACE_MIN_SECONDS", "PACE_MAX_SECONDS", "PACE_START_SECONDS"), f"{seconds:g}")


class RunningWeb(NamedTuple):
    """A synthetic web that listens."""

    folder: Path
    port: int
    pid: int


class Spent(NamedTuple):
    """What a finished process cost, its children that it waited for included."""

    status: int  # exit status; negative: the signal that ended it
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int  # resident set


def wait_for(path: Path, process: Polled, seconds: float = _START_SECONDS) -> None:
    """Until ``path`` exists; RuntimeError when the process ends first or the time is over."""
    until = time.monotonic() + seconds
    while not path.exists():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{process.args!r} did not make {path}")
        time.sleep(_LOOK_SECONDS)


@contextlib.contextmanager
def synthetic_web(folder: Path, *arguments: str) -> Iterator[RunningWeb]:
    """``python -m tests.web`` in a process, ended on leaving."""
    command = [sys.executable, "-m", "tests.web", "--folder", str(folder), *arguments]
    (folder / "ready").unlink(missing_ok=True)
    with Process(command) as process:
        try:
            wait_for(folder / "ready", process)
            ready = json.loads((folder / "ready").read_text())
            yield RunningWeb(folder, ready["port"], process.pid)
        finally:
            process.terminate()


def crawl_command(
    seeds: Path, crawl_dir: Path, hosts: Path, settings: Mapping[str, str], scope: str = "any"
) -> list[str]:
    """The command line of a crawl over loopback."""
    fixed = {"CRAWL_DIR": str(crawl_dir), "FETCH_HOSTS_FILE": str(hosts), "FETCH_ALLOW_NETWORKS": '["127.0.0.0/8"]'}
    options = [part for name, value in {**IDENTITY, **fixed, **settings}.items() for part in ("-s", f"{name}={value}")]
    return [sys.executable, "-m", "scrapy", "crawl", "web", "-a", f"seeds={seeds}", "-a", f"scope={scope}", *options]


def small_settings(web: RunningWeb, preset: str = "mirror") -> dict[str, str]:
    """Settings for a crawl of the small profile, which would last for 40 s more by the host that speaks no TLS."""
    connect_seconds = min(_CONNECT_SECONDS * busyness(), 10.0)  # the default
    return {
        **HASTE,
        "FETCH_CONNECT_TIMEOUT_SECONDS": f"{connect_seconds:g}",
        "PACE_PRESET": preset,
        "NEVERCRAWL_FILE": str(web.folder / "nevercrawl.txt"),
    }


def start(command: list[str], output: IO[bytes] | None, cwd: Path = PROJECT, **environs: str) -> Process:
    """Start a process in the project's folder, without proxies, its modules compiled as an installed program's are.

    ``environs``: variables of its environment beside.
    """
    environment = direct(**environs)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return Process(command, output, cwd=cwd, env=environment)


def finish(process: Process, began: float) -> Spent:
    """Wait for the end; ``began`` is the monotonic time of the start."""
    status = process.wait()
    return Spent(status, process.cpu_seconds, time.monotonic() - began, process.peak_bytes)


def measured(command: list[str], log: Path, cwd: Path = PROJECT) -> Spent:
    """Run to the end with the output in ``log``."""
    began = time.monotonic()
    with log.open("wb") as output:
        return finish(start(command, output, cwd), began)


def many_files() -> None:
    """Raise the limit of open files as far as allowed: children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def read_pages(log: Path) -> int:
    """How many requests the server has logged so far."""
    return log.read_bytes().count(b"\n") if log.exists() else 0
