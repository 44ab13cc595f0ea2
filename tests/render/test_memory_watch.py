"""The browser's processes seen from outside, and the end of one that takes too much."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlerproject.render.memory_watch import BrowserProcess, browser_processes, end_oversized

Start = Callable[..., subprocess.Popen[bytes]]
pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
_WAITS = "import sys; print(flush=True); sys.stdin.read()"


@pytest.fixture
def start() -> Iterator[Start]:
    """Processes that wait, with arguments as Chromium's have them."""
    started: list[subprocess.Popen[bytes]] = []

    def waiting(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-c", _WAITS, *arguments]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()  # it runs by now
        return process

    yield waiting
    for process in started:
        process.kill()
        process.communicate()


def test_chromiums_own_processes_are_found(start: Start) -> None:
    """Those below this one that have a type; a renderer is told from the others."""
    renderer, gpu, other = start("--type=renderer"), start("--type=gpu-process"), start("--no-type")
    found = {process.pid: process for process in browser_processes()}

    assert found[renderer.pid].renderer
    assert not found[gpu.pid].renderer
    assert other.pid not in found
    assert os.getpid() not in found
    assert 100_000 < found[renderer.pid].private_bytes < 100_000_000


def test_only_renderers_above_the_limit_are_ended(start: Start) -> None:
    """One page each; the browser itself goes on."""
    large, small, gpu = start("--type=renderer"), start("--type=renderer"), start("--type=gpu-process")
    seen = [
        BrowserProcess(large.pid, 2_000, True),
        BrowserProcess(small.pid, 1_000, True),
        BrowserProcess(gpu.pid, 9_000, False),
    ]

    assert end_oversized(seen, 1_000) == 1
    assert large.wait(10) == -signal.SIGKILL
    assert (small.poll(), gpu.poll()) == (None, None)


def test_one_that_has_ended_meanwhile_is_not_counted(start: Start) -> None:
    """Between the look and the kill."""
    gone = start("--type=renderer")
    gone.kill()
    gone.wait(10)

    assert end_oversized([BrowserProcess(gone.pid, 2_000, True)], 1_000) == 0


def test_where_there_is_no_proc_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chromium's own limits hold there."""

    def missing(_: str) -> list[str]:
        raise OSError("no /proc")

    monkeypatch.setattr(os, "listdir", missing)
    assert browser_processes() == []
