"""The browser's network namespace: the first way that the system allows, or the reason why there is none."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlerproject.render.browser import (
    BrowserProcess,
    Launcher,
    NoNamespace,
    browser_processes,
    end_oversized,
)

# As util-linux has it, but for the namespace: what comes after "--" is run.
_RUNS = 'while [ "$1" != "--" ]; do shift; done; shift'


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are looked for, with a browser in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    program(folder / "chrome", 'echo "Chromium $*"')
    return folder


def program(path: Path, script: str) -> str:
    """A program of one line."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def unshare(tools: Path, *, network: str) -> None:
    """``unshare``, whose children see ``network`` as their namespace."""
    program(tools / "readlink", f"echo {network}")
    program(tools / "unshare", f'{_RUNS}; exec "$@"')


def test_the_browser_starts_with_its_arguments(tools: Path) -> None:
    """Through a script that only this user may read, which is gone with the launcher."""
    unshare(tools, network="net:[1]")
    launcher = Launcher(str(tools / "chrome"))

    shown = subprocess.run([launcher.path, "--headless", "a b"], capture_output=True, text=True, check=True)
    assert shown.stdout == "Chromium --headless a b\n"
    assert stat.S_IMODE(Path(launcher.path).stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(launcher.path).parent.stat().st_mode) == 0o700
    launcher.close()
    assert not Path(launcher.path).parent.exists()


def test_the_second_way_is_taken_where_the_first_is_forbidden(tools: Path) -> None:
    """Root may have a namespace at once; anyone else by a user namespace of their own."""
    program(tools / "readlink", "echo net:[1]")
    program(tools / "unshare", f'[ "$1" = --net ] && exit 1; {_RUNS}; exec "$@"')
    launcher = Launcher(str(tools / "chrome"))

    assert "--user --map-current-user --net --" in Path(launcher.path).read_text()
    launcher.close()


def test_a_system_that_allows_none_says_why(tools: Path) -> None:
    """In its own words."""
    program(tools / "unshare", "echo 'unshare: Operation not permitted' >&2; exit 1")

    with pytest.raises(NoNamespace, match="Operation not permitted"):
        Launcher(str(tools / "chrome"))


def test_a_namespace_that_is_the_same_is_none(tools: Path) -> None:
    """A program that runs what it is given without one would have the browser go online."""
    program(tools / "unshare", f'{_RUNS}; exec /usr/bin/env PATH=/usr/bin:/bin "$@"')

    with pytest.raises(NoNamespace, match="made none"):
        Launcher(str(tools / "chrome"))


def test_without_unshare_there_is_none(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on other systems."""
    monkeypatch.setenv("PATH", str(tools))

    with pytest.raises(NoNamespace, match="no program unshare"):
        Launcher(str(tools / "chrome"))


def test_a_browser_that_does_not_start_in_it_is_reported(tools: Path) -> None:
    """And nothing is left behind."""
    unshare(tools, network="net:[1]")

    with pytest.raises(NoNamespace, match="does not start"):
        Launcher(str(tools / "missing"))


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
