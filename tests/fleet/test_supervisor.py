"""Workers are kept running; what ends in good order, or cannot be mended by a new start, is left."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from crawlerproject.fleet import supervisor
from crawlerproject.fleet.supervisor import Supervisor, Worker
from crawlerproject.stores.operator_files.control import StopOrders, change_pauses
from tests.web.waiting import wait_until


class Service:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.looks = 0
        self.over: list[str] = []
        self.closed = False

    async def begin(self, workers: Sequence[Worker]) -> None:
        """Before all."""
        self.began = [worker.name for worker in workers]

    def look(self) -> None:
        """In between."""
        self.looks += 1

    def ended(self, worker: str) -> None:
        """For good."""
        self.over.append(worker)

    def close(self) -> None:
        """After all."""
        self.closed = True


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks, and the first wait, are short."""
    monkeypatch.setattr(supervisor, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(supervisor, "_FIRST_WAIT_SECONDS", 0.02)


def shell(folder: Path, name: str, script: str) -> Worker:
    """A worker that is a line of shell; $N is the file that counts its starts."""
    count = folder / f"{name}.starts"
    return Worker(name, ["sh", "-c", f"echo >> {count}; N=$(wc -l < {count}); {script}"], folder / f"{name}.log")


def starts(folder: Path, name: str) -> int:
    """How often it was started."""
    path = folder / f"{name}.starts"
    return len(path.read_bytes()) if path.exists() else 0


def test_one_that_dies_is_started_again(tmp_path: Path) -> None:
    """Until it ends in good order; one that cannot start is not, and its status is ours."""
    service = Service()
    died = shell(tmp_path, "died", "[ $N -ge 3 ] || kill -9 $$; echo done")
    refused = shell(tmp_path, "refused", "exit 2")
    assert Supervisor([died, refused], service).run() == 2
    assert (starts(tmp_path, "died"), starts(tmp_path, "refused")) == (3, 1)
    assert died.output.read_text() == "done\n"
    assert sorted(service.over) == ["died", "refused"]
    assert (service.began, service.closed) == (["died", "refused"], True)
    assert service.looks > 0


def test_one_that_is_refused_for_a_while_may_be_tried_again(tmp_path: Path) -> None:
    """So often in a row."""
    full = shell(tmp_path, "full", "[ $N -ge 3 ] || exit 2")
    full.refusals = 2
    assert Supervisor([full]).run() == 0
    broken = shell(tmp_path, "broken", "exit 2")
    broken.refusals = 2
    assert Supervisor([broken]).run() == 2
    assert (starts(tmp_path, "full"), starts(tmp_path, "broken")) == (3, 3)


def passing_on(ready: Callable[[], bool], *workers: Worker) -> int:
    """Run workers and send ourselves SIGINT once they are ready; the status."""

    def press() -> None:
        wait_until(ready)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        return Supervisor(workers).run()
    finally:
        thread.join()


def test_ctrl_c_reaches_each_once_and_nothing_starts_again(tmp_path: Path) -> None:
    """Whatever their status is then; one that waits for its next start has none."""
    (tmp_path / "waits.log").touch()
    waits = shell(tmp_path, "waits", "trap 'echo pressed; exit 0' TERM; echo ready; while :; do sleep 0.01; done")
    fails = shell(tmp_path, "fails", "exit 1")
    fails.wait_seconds = 3600.0
    status = passing_on(
        lambda: "ready" in waits.output.read_text() and fails.start_at > 0,
        waits,
        fails,
    )
    assert waits.output.read_text() == "ready\npressed\n"
    assert starts(tmp_path, "fails") == 1
    assert status == 0


def test_an_order_to_stop_is_as_good_as_a_signal(tmp_path: Path) -> None:
    """Given once, for what began before it; nothing starts again."""
    waits = shell(tmp_path, "waits", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done")
    fails = shell(tmp_path, "fails", "exit 1")
    fails.wait_seconds = 3600.0
    change_pauses(tmp_path, lambda pauses: setattr(pauses, "stopped_at", time.time()))
    stopped = StopOrders(tmp_path)
    assert not stopped()

    def order() -> None:
        wait_until(lambda: waits.output.exists() and "ready" in waits.output.read_text() and fails.start_at > 0)
        change_pauses(tmp_path, lambda pauses: setattr(pauses, "stopped_at", time.time()))

    thread = threading.Thread(target=order)
    thread.start()
    assert Supervisor([waits, fails], asked_to_stop=stopped).run() == 0
    thread.join()
    assert starts(tmp_path, "fails") == 1


def test_one_that_had_not_begun_when_it_was_asked_to_end(tmp_path: Path) -> None:
    """The signal ends its process as it is: nothing went wrong."""
    (tmp_path / "begins.log").touch()
    begins = shell(tmp_path, "begins", "echo ready; while :; do sleep 0.01; done")
    assert passing_on(lambda: "ready" in begins.output.read_text(), begins) == 0


def test_python_that_had_not_begun_ends_without_a_word(tmp_path: Path) -> None:
    """It would end by SIGINT with a traceback, in a log that others read line by line."""
    log = tmp_path / "imports.log"
    imports = Worker("imports", [sys.executable, "-c", "print('ready', flush=True); import time; time.sleep(60)"], log)
    log.touch()
    assert passing_on(lambda: log.read_text() == "ready\n", imports) == 0
    assert log.read_text() == "ready\n"


def test_what_a_worker_inherits_it_keeps(tmp_path: Path) -> None:
    """A descriptor of ours is open in it, under its number, as long as it lives."""
    read, write = os.pipe()
    worker = Worker("w", [sys.executable, "-c", f"import os; os.write({write}, b'x')"], tmp_path / "w.log", [write])
    assert Supervisor([worker]).run() == 0
    os.close(write)
    assert os.read(read, 9) == b"x"
    os.close(read)
