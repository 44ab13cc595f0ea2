"""Starts the browser in a network namespace of its own, where the system allows one: without any network.

The browser needs none: Playwright talks to it through a pipe, and all its requests are answered by us.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

# util-linux's unshare: as root, else through a user namespace, where the kernel allows these to every user.
# Not --map-root-user: Chromium refuses to start as root with its sandbox.
_WAYS = (("--net",), ("--user", "--map-current-user", "--net"))
_NAMESPACE = "/proc/self/ns/net"
_TRY_SECONDS = 10.0  # some 5 ms measured


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
