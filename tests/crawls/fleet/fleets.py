"""Several workers on one crawl of the synthetic web, as processes, with a real Redis between them."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from tests.web.running import RunningWeb, crawl_command, small_settings, start
from tests.web.waiting import busyness, wait_until
from tests.web.zygote import Process

# Short, so that tests need not wait: a worker that dies is replaced within LEASE_SECONDS.
LEASE_SECONDS = 6
# As many as the small web can fill: each has a host of that many pages (test_fleet.py proves it), so that up to six
# workers have something to do for a while, whatever they draw.
PARTITIONS = 6
PAGES_A_PARTITION = 16
SETTINGS = {
    "FETCH_TIMEOUT_SECONDS": "3",
    "FLEET_LEASE_SECONDS": str(LEASE_SECONDS),
    "FLEET_PARTITIONS": str(PARTITIONS),
    "COMMIT_SECONDS": "0.5",
    # The end of a crawl is a host that takes connections and never answers: it is asked four times.
    "BACKOFF_MAX_SECONDS": "2",
    "FRONTIER_MAX_REST_SECONDS": "5",
    "PROGRESS_LOG_SECONDS": "5",
}
# A worker says so once it has joined; "Spider opened" comes before.
_JOINED = "Never-crawl list "


def json_lines(log: Path) -> list[dict[str, Any]]:
    """Every line of a log, each an object with what all have."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    assert all({"time", "level", "logger", "message", "pid"} <= line.keys() for line in lines)
    return lines


class Workers:
    """Worker processes of one crawl; each has its folder and its output beside it."""

    def __init__(
        self,
        web: RunningWeb,
        folder: Path,
        state_url: str,
        settings: Mapping[str, str] | None = None,
        scope: str = "any",
    ) -> None:
        self.web = web
        self.folder = folder
        self.scope = scope
        self.settings = {**small_settings(web), **SETTINGS, "STATE_URL": state_url, **(settings or {})}
        self.recrawl = False  # known pages are visited again, instead of seeds
        self.accept = ""  # as for -a accept=
        self.running: dict[str, Process] = {}
        self._outputs: dict[str, IO[bytes]] = {}
        self._began: dict[str, int] = {}  # where in its output a worker's last start begins
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, *names: str, machine: str = "") -> None:
        """Start workers by name; one that was started before continues in its folder.

        ``machine``: what their machines' clock is, as ``tests.web.later`` takes it.
        """
        for name in names:
            settings = {**self.settings, "FLEET_WORKER": name}
            seeds, hosts = self.web.folder / "seeds.txt", self.web.folder / "hosts"
            command = crawl_command(seeds, self.folder, hosts, settings, self.scope)
            if self.recrawl:
                command[command.index(f"seeds={seeds}")] = "mode=recrawl"
            if self.accept:
                command += ["-a", f"accept={self.accept}"]
            if machine:
                later = ["-m", "tests.web.later", machine]
                command = [command[0], *later, *command[command.index("crawl") :]]
            if name not in self._outputs:
                self._outputs[name] = (self.folder / f"{name}.log").open("ab")
            self._began[name] = len(self.output(name))
            self.running[name] = start(command, self._outputs[name])

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a worker."""
        self.running[name].send_signal(number)

    def kill(self, name: str) -> None:
        """kill -9."""
        self.signal(name, signal.SIGKILL)
        self.ended(name)

    def until_archiving(self, seconds: float, *names: str) -> None:
        """Until each of these workers has begun a WARC file."""
        self._until(seconds, names, lambda name: bool(list((self.folder / name / "warc").glob("*.open"))))

    def until_opened(self, seconds: float, *names: str) -> None:
        """Until each of these workers has joined, the last time that it was started."""
        self._until(seconds, names, lambda name: _JOINED in self.output(name)[self._began[name] :])

    def _until(self, seconds: float, names: Iterable[str], done: Callable[[str], bool]) -> None:
        until = time.monotonic() + seconds
        for name in names:
            wait_until(partial(done, name), seconds=until - time.monotonic(), log=self.folder / f"{name}.log")

    def ended(self, name: str, seconds: float = 30.0) -> int:
        """Wait for a worker's end; its exit status."""
        return self.running.pop(name).wait(seconds)

    def wait(self, seconds: float = 90.0) -> None:
        """Until every running worker has ended by itself, in good order."""
        until = time.monotonic() + seconds * busyness()
        for name in list(self.running):
            status = self.ended(name, max(0.0, until - time.monotonic()))
            assert status == 0, f"{name} ended with {status}: {self.output(name)[-3000:]}"

    def output(self, name: str) -> str:
        """What a worker has said."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    @property
    def folders(self) -> list[Path]:
        """The folders of all workers that ever were."""
        return sorted(path for path in self.folder.iterdir() if path.is_dir())

    def close(self) -> None:
        """Kill what is left."""
        for process in self.running.values():
            process.kill()
            process.wait()
        for output in self._outputs.values():
            output.close()


@contextlib.contextmanager
def workers(
    web: RunningWeb,
    folder: Path,
    state_url: str,
    settings: Mapping[str, str] | None = None,
    scope: str = "any",
) -> Iterator[Workers]:
    """Workers for the length of a block."""
    made = Workers(web, folder, state_url, settings, scope)
    try:
        yield made
    finally:
        made.close()
