"""The browser's processes: started without a network, measured from outside, ended when they use too much memory.

Where the system allows it the browser runs in a network namespace of its own. It needs no network: Playwright talks to
it through a pipe, and we answer all its requests. Memory is measured by /proc, so on Linux only; elsewhere Chromium's
own limits hold. Processes that do not descend from this one are never touched.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

# util-linux's unshare: as root, else through a user namespace, where the kernel allows these to every user.
# Not --map-root-user: Chromium refuses to start as root with its sandbox.
_WAYS = (("--net",), ("--user", "--map-current-user", "--net"))
_NAMESPACE = "/proc/self/ns/net"
_TRY_SECONDS = 10.0  # some 5 ms measured

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class NoNamespace(Exception):
    """The system allows none; the message is the reason."""


class Launcher:
    """A program that starts the browser in a namespace of its own; ``path`` takes the browser's arguments."""

    def __init__(self, browser: str) -> None:
        """Raises NoNamespace. Blocking."""
        command = _allowed_way()
        self._folder = Path(tempfile.mkdtemp(prefix="crawler-browser-"))  # for this user alone
        self.path = str(self._folder / "browser")
        Path(self.path).write_text(f'#!/bin/sh\nexec {shlex.join(command)} -- {shlex.quote(browser)} "$@"\n')
        os.chmod(self.path, 0o700)
        try:
            subprocess.run([self.path, "--version"], capture_output=True, timeout=_TRY_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError) as error:  # a folder where nothing may be executed, for example
            self.close()
            raise NoNamespace(f"{self.path} does not start: {error}") from error

    def close(self) -> None:
        """Remove the program; the browser must have ended."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _allowed_way() -> list[str]:
    """The command that precedes the browser's own. Raises NoNamespace."""
    unshare = shutil.which("unshare")
    if unshare is None:
        raise NoNamespace("there is no program unshare")
    why = ""
    for way in _WAYS:
        command = [unshare, *way]
        tried = [*command, "--", "readlink", _NAMESPACE]
        try:
            done = subprocess.run(tried, capture_output=True, text=True, timeout=_TRY_SECONDS, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            why = str(error)
            continue
        if done.returncode == 0 and done.stdout.strip() not in ("", os.readlink(_NAMESPACE)):
            return command
        why = done.stderr.strip().partition("\n")[0] or f"{shlex.join(command)} made none"
    raise NoNamespace(why)


_SHARED_FIELD, _RESIDENT_FIELD = 2, 1  # /proc/PID/statm


class BrowserProcess(NamedTuple):
    """One process of a browser that this process started."""

    pid: int
    private_bytes: int  # resident memory that is not shared with files or other processes
    renderer: bool


def browser_processes() -> list[BrowserProcess]:
    """All Chromium processes below this one; about 1 ms for 300 processes on the machine."""
    parents = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and (stat := _read(f"/proc/{name}/stat")):
                # The command's name is in parentheses and may hold anything; the parent is the second field after it.
                parents[int(name)] = int(stat.rpartition(b")")[2].split()[1])
    ours, own = [], os.getpid()
    for pid in parents:
        ancestor = pid
        while (ancestor := parents.get(ancestor, 0)) not in (0, own):
            pass
        if ancestor == own and b"--type=" in (command := _read(f"/proc/{pid}/cmdline")):
            fields = _read(f"/proc/{pid}/statm").split()
            pages = int(fields[_RESIDENT_FIELD]) - int(fields[_SHARED_FIELD]) if fields else 0
            ours.append(BrowserProcess(pid, pages * _PAGE_BYTES, b"--type=renderer" in command))
    return ours


def end_oversized(processes: list[BrowserProcess], page_bytes: int) -> int:
    """Kill renderers above ``page_bytes``, each of which serves one page; the number killed."""
    ended = 0
    for process in processes:
        if process.renderer and process.private_bytes > page_bytes:
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
                ended += 1
    return ended


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
