"""A fleet without a server, as the operator starts it, and its processes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from crawlerproject.stores.crawl_folders import alone, shared_out
from tests.crawls.fleet.fleets import SETTINGS
from tests.web.running import RunningWeb, crawl_command, small_settings, start
from tests.web.waiting import wait_until
from tests.web.zygote import Process

_SECONDS = 60.0


def children_of(pid: int) -> list[int]:
    """Processes that a process has started; of a fleet that was forked (``zygote.py``) they are not the workers."""
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def command_line(pid: int) -> list[str]:
    """Of a process; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def processes_of(log: Path) -> dict[str, int]:
    """The last process of each worker, as the supervisor's output tells them."""
    said = log.read_text(errors="replace") if log.exists() else ""
    return {name: int(pid) for name, pid in re.findall(r"([\w.-]+) runs \(process (\d+),", said)}


def one_of_each(names: Iterable[str], partitions: int) -> tuple[str, ...]:
    """The first of these hosts that is the first worker's of two, and the second's, by the plan of a new fleet."""
    plan, listed = shared_out(alone(partitions), ("worker-1", "worker-2")), list(names)
    return tuple(next(name for name in listed if plan.holder(name) == worker) for worker in plan.workers)


class LocalFleetRun:
    """``scrapy fleet`` on a web, again and again on one folder; its output is in FOLDER.log."""

    def __init__(
        self,
        web: RunningWeb,
        folder: Path,
        workers: int = 2,
        settings: Mapping[str, str] | None = None,
        scope: str = "any",
    ) -> None:
        self.folder = folder
        self.log = folder.with_suffix(".log")
        self.names = [f"worker-{number}" for number in range(1, workers + 1)]
        given = {**small_settings(web), **SETTINGS, **(settings or {})}
        command = crawl_command(web.folder / "seeds.txt", folder, web.folder / "hosts", given, scope)
        at = command.index("crawl")
        self.command = [*command[:at], "fleet", *command[at + 2 :], "--workers", str(workers)]
        self._output = self.log.open("ab")
        self.supervisor: Process

    def start(self, *more: str) -> None:
        """Start it (anew)."""
        self.supervisor = start([*self.command, *more], self._output)

    @property
    def folders(self) -> list[Path]:
        """Of the workers."""
        return [self.folder / name for name in self.names]

    def pid(self, name: str) -> int:
        """The process of a worker that runs, which is waited for."""

        def find() -> int:
            pid = processes_of(self.log).get(name, 0)
            return pid if any(command_line(pid)) else 0

        return wait_until(find, f"{name} runs", seconds=_SECONDS, process=self.supervisor, log=self.log)

    def output(self, name: str) -> str:
        """What a worker has said in all its lives."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def until_said(self, name: str, words: str, times: int = 1) -> None:
        """Until a worker has said something so often."""
        path = self.folder / f"{name}.log"
        wait_until(lambda: self.output(name).count(words) >= times, words, seconds=_SECONDS, log=path)

    def until_archiving(self, name: str) -> None:
        """Until a worker writes a WARC file."""
        warc = self.folder / name / "warc"
        wait_until(lambda: any(warc.glob("*.open")), f"{name} archives", seconds=_SECONDS, log=self.log)

    def kill(self, name: str) -> None:
        """kill -9 of a worker."""
        os.kill(self.pid(name), signal.SIGKILL)

    def kill_supervisor(self) -> None:
        """kill -9 of the supervisor alone."""
        for name in self.names:
            self.pid(name)
        self.supervisor.send_signal(signal.SIGKILL)
        self.supervisor.wait(_SECONDS)

    def wait(self, seconds: float = 120.0) -> int:
        """Until it has ended by itself; its status."""
        return self.supervisor.wait(seconds)

    def said(self) -> str:
        """What the supervisor has said."""
        return self.log.read_text(errors="replace")

    def close(self) -> None:
        """Kill what is left."""
        self.supervisor.kill()
        for pid in processes_of(self.log).values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._output.close()


@contextlib.contextmanager
def local_fleet(
    web: RunningWeb,
    folder: Path,
    workers: int = 2,
    settings: Mapping[str, str] | None = None,
    scope: str = "any",
) -> Iterator[LocalFleetRun]:
    """For the length of a block, started."""
    made = LocalFleetRun(web, folder, workers, settings, scope)
    made.start()
    try:
        yield made
    finally:
        made.close()
