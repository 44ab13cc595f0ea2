"""One crawl that is watched: its folder, its processes and the port of its metrics."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from benchmarks.alerts.web import SITES, Web, address, names
from benchmarks.alerts.wrong import TROUBLE
from tests.crawls.fleet.local_fleets import children_of, command_line
from tests.web.ports import free_port
from tests.web.running import PROJECT, crawl_command, one_pace
from tests.web.waiting import wait_until
from tests.web.zygote import Process, direct

_END_SECONDS = 60.0
#: Hosts that fail are asked again soon and for as long as the troubles last.
_STAYING = {
    "BACKOFF_START_SECONDS": "4",
    "BACKOFF_MAX_SECONDS": "8",
    "HOST_MAX_FAILURES": "1000",
    "RENDER": "never",
    "NEVERCRAWL_FILE": "",
    **one_pace(2.0),
}


class Way(NamedTuple):
    """How a crawl is run."""

    settings: Mapping[str, str] = {}  # a tuple's default, never changed
    spider: str = "web"
    workers: int = 0  # of a fleet
    sites: int = SITES
    metrics_command: bool = False  # watched by ``scrapy status --metrics``, as a textfile collector is fed


class WatchedCrawl:
    """May be stopped and started again by its troubles."""

    def __init__(self, folder: Path, name: str, way: Way, web: Web) -> None:
        self.name, self.way, self.web = name, way, web
        self.place = folder / name  # what is the crawl's alone
        self.folder = self.place / "crawl"
        self.flag = self.place / "trouble"  # what runs within it looks for this file
        self.port = free_port()
        self.environment: dict[str, str] = {}
        self.settings: dict[str, str] = {}  # what a trouble adds
        self.process: Process | None = None
        self.place.mkdir()

    @property
    def pid(self) -> int:
        """Of the crawl, or of the fleet's supervisor."""
        assert self.process is not None
        return self.process.pid

    def worker(self, name: str) -> int:
        """The process of a fleet's worker; 0: it has none just now."""
        for pid in children_of(self.pid):
            if f"FLEET_WORKER={name}" in command_line(pid):
                return pid
        return 0

    def watching_worker(self) -> str:
        """Which one has the metrics' port."""
        for log in sorted(self.folder.glob("*.log")):
            if "Watch this crawl at" in log.read_text():
                return log.stem
        return ""

    def below(self) -> list[int]:
        """All processes that the crawl's has started, and theirs."""
        found, seen = [self.pid], list[int]()
        while found:
            seen += (children := [child for pid in found for child in children_of(pid)])
            found = children
        return seen

    def start(self) -> None:
        """Start it, and wait until it is at work."""
        hosts = names(self.name, self.way.sites)
        (self.place / "hosts").write_text("".join(f"{address(n)} {host}\n" for n, host in enumerate(hosts)))
        (self.place / "seeds").write_text("".join(f"http://{host}:{self.web.port}/\n" for host in hosts))
        for path in self._statuses():
            path.unlink()
        with (self.place / "log").open("ab") as output:
            self.process = self._process(output)
        workers = max(1, self.way.workers)
        wait_until(lambda: len(self._statuses()) == workers, f"{self.name} at work", process=self.process)
        if self.way.workers:
            wait_until(self.watching_worker, "a worker that is watched", process=self.process)

    def _statuses(self) -> list[Path]:
        """One a process at work: of the crawl, or below its folder of its workers."""
        return [*self.folder.glob("status.json"), *self.folder.glob("*/status.json")]

    def _process(self, output: IO[bytes]) -> Process:
        settings = {**_STAYING, "WATCH_PORT": str(self.port), **self.way.settings, **self.settings}
        command = crawl_command(self.place / "seeds", self.folder, self.place / "hosts", settings)
        at = command.index("crawl")
        if self.way.workers:
            command = [*command[:at], "fleet", *command[at + 2 :], "--workers", str(self.way.workers)]
        else:
            command[at + 1] = self.way.spider
        return Process(command, output, cwd=PROJECT, env={**direct(), **self.environment, TROUBLE: str(self.flag)})

    def stop(self) -> None:
        """End it in good order."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(_END_SECONDS)

    def kill(self) -> None:
        """End it with all that it has started."""
        if self.process is None:
            return
        for pid in (*self.below(), self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def ask(self, *arguments: str) -> str:
        """What another command says of it."""
        given = [part for name, value in self.settings.items() for part in ("-s", f"{name}={value}")]
        command = [sys.executable, "-m", "scrapy", *arguments, "-s", f"CRAWL_DIR={self.folder}", *given]
        environment = {**direct(), **self.environment}
        return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False).stdout


@contextlib.contextmanager
def ended(crawl: WatchedCrawl) -> Iterator[WatchedCrawl]:
    """Whose processes end with the block."""
    try:
        yield crawl
    finally:
        crawl.kill()
