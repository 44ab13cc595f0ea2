"""Decides which events a look at a crawl brings; pure: the same looks bring the same events.

Hands events to the operator's command or URL, in a thread of its own: slow or broken, it never holds up a crawl.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from crawlerproject.rules.printable import counted, without_passwords

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


Pauses = tuple[float, ...]

logger = logging.getLogger(__name__)

EVENT_VARIABLE = "CRAWL_EVENT"
TIMEOUT_SECONDS = 10.0
"""For one try of a hook (HOOK_TIMEOUT_SECONDS, ours); the end's event delays the exit by six times this at most."""
# A listener that restarts is back within this; one that is away for longer has the log.
_PAUSES = (1.0, 5.0)
# Of them, those that are still delivered when the crawl has ended: the newest.
_MOST_AT_END = 3
# Of a failing program's output, for one line of the log.
_MESSAGE_BYTES = 200
# Events that wait while one is being delivered: a crawl has a few an hour.
_MOST_WAITING = 100


class Hook(NamedTuple):
    """Where events go; either may be empty."""

    command: tuple[str, ...]  # a program and its arguments, for no shell
    url: str
    timeout_seconds: float

    def __bool__(self) -> bool:
        return bool(self.command or self.url)

    @property
    def longest_seconds(self) -> float:
        """What the delivery of one event takes at most."""
        ways = bool(self.command) + bool(self.url)
        return ways * ((1 + len(_PAUSES)) * self.timeout_seconds + sum(_PAUSES))


def hook_of(command: str, url: str, timeout_seconds: float) -> Hook:
    """The hook of these settings. Raises ValueError with a sentence for the operator."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise ValueError(f"HOOK_COMMAND is {command!r} ({error}); write a program and its arguments.") from None
    if url and not url.startswith(("http://", "https://")):
        raise ValueError(f"HOOK_URL is {without_passwords(url)!r}; use an http or https URL of your own.")
    return Hook(words, url, timeout_seconds)


def hook_in(settings: BaseSettings) -> Hook:
    """The hook of HOOK_COMMAND, HOOK_URL and HOOK_TIMEOUT_SECONDS. Raises ValueError."""
    timeout_seconds = settings.getfloat("HOOK_TIMEOUT_SECONDS", TIMEOUT_SECONDS)
    hook = hook_of(settings["HOOK_COMMAND"], settings["HOOK_URL"], timeout_seconds)
    if hook.command and shutil.which(hook.command[0]) is None:
        raise ValueError(f"HOOK_COMMAND names {hook.command[0]!r}, and there is no such program; give its path.")
    return hook


class Delivery:
    """Events in order, each to the command and to the URL; a failed one is tried again, then logged and let go."""

    def __init__(self, hook: Hook, sleep: Callable[[float], None] = time.sleep) -> None:
        self._hook = hook
        self._sleep = sleep
        self._last: dict[str, Any] | None = None
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        # A daemon: what still hangs when all time is over does not keep the process.
        self._thread = threading.Thread(target=self._run, name="hook", daemon=True)
        self._thread.start()

    def send(self, event: dict[str, Any]) -> None:
        """Deliver an event when its turn comes; returns at once."""
        if self._events.qsize() < _MOST_WAITING:
            self._events.put(event)
        else:
            logger.error("The hook is behind by %d events; %s is not delivered.", _MOST_WAITING, event["event"])

    def close(self, last: dict[str, Any] | None = None) -> None:
        """Deliver what waits, each event tried once, and the last one, in bounded time. Blocking."""
        behind = 0
        with contextlib.suppress(queue.Empty):
            while self._events.qsize() > _MOST_AT_END:
                self._events.get_nowait()
                behind += 1
        if behind:
            logger.error("The hook is behind: %s before the last not delivered.", counted(behind, "event"))
        self._last = last
        self._events.put(last)
        self._events.put(None)
        self._thread.join(timeout=(2 + _MOST_AT_END) * self._hook.longest_seconds)
        if self._thread.is_alive():
            logger.error("The hook did not take the last event in time.")

    def _run(self) -> None:
        while (event := self._events.get()) is not None:
            hurried = self._last is not None and event is not self._last
            deliver_all(self._hook, event, self._sleep, () if hurried else _PAUSES)


def deliver_all(hook: Hook, event: dict[str, Any], sleep: Callable[[float], None], pauses: Pauses = _PAUSES) -> None:
    """Deliver an event each way there is, with one more try after each of the ``pauses``. Never raises."""
    data, name = orjson.dumps(event), str(event["event"])
    ways: list[tuple[str, Callable[[], None]]] = []
    if hook.command:
        ways.append(("HOOK_COMMAND", lambda: run_command(hook, name, data)))
    if hook.url:
        ways.append(("HOOK_URL", lambda: post(hook, data)))
    for way, deliver in ways:
        what = f"{way} on {name}"
        for pause_seconds in (*pauses, None):
            try:
                deliver()
                break
            except Exception as error:  # whatever the operator's program or server does
                logger.warning("%s failed: %s", what, _said(error))
            if pause_seconds is not None:
                sleep(pause_seconds)
        else:
            logger.error("%s failed %d times and is given up.", what, 1 + len(pauses))


def run_command(hook: Hook, event: str, data: bytes) -> None:
    """The program with the event on its standard input, and its name in the environment. Raises what went wrong.

    What it starts and leaves behind is not waited for; when its time is over, all of that is killed.
    """
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            hook.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, EVENT_VARIABLE: event},
            start_new_session=True,  # Ctrl-C is for the crawl, which then has something to say
        ) as process,
    ):
        try:
            process.communicate(data, timeout=hook.timeout_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        if process.returncode:
            errors.seek(0)
            raise subprocess.CalledProcessError(process.returncode, hook.command, stderr=errors.read(_MESSAGE_BYTES))


def post(hook: Hook, data: bytes) -> None:
    """POST the event. Raises what went wrong, a status of 300 or more included: a redirect would be a GET."""
    request = urllib.request.Request(hook.url, data, {"Content-Type": "application/json"}, method="POST")
    with _OPENER.open(request, timeout=hook.timeout_seconds):
        pass


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *what: Any) -> None:
        """The answer stands as an error."""


_OPENER = urllib.request.build_opener(_NoRedirects)


def _said(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        message = " ".join(bytes(error.stderr or b"").decode(errors="replace").split())
        return f"exit status {error.returncode}" + (f": {message}" if message else "")
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no end within {error.timeout:.1f} s"
    return without_passwords(str(error)) or type(error).__name__


def tell_refused(settings: BaseSettings, folder: Path, sentence: str) -> None:
    """Deliver the refusal once, before the command ends; not to a hook whose setting is what was refused."""
    try:
        hook = hook_in(settings)
    except ValueError:
        return
    if hook:
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        event = {"event": "refused", "reason": sentence, "crawl": str(folder.resolve()), "time": moment}
        deliver_all(hook, {**event, "machine": socket.gethostname(), "counts": {}}, time.sleep, ())


SILENT_SECONDS = 900.0
"""A crawl that is not paused and has no page for so long has fallen silent (HOOK_SILENT_SECONDS, ours)."""
# Errors of ours come in crowds: one word about them in this time.
ERRORS_APART_SECONDS = 60.0


class Look(NamedTuple):
    """The crawl at one moment."""

    halted: str  # why nothing is asked, in words; "" while it goes on
    pages: int  # so far
    errors: int  # of the program itself, so far
    next_free_seconds: float | None  # until a host may be asked; None when none waits


class Event(NamedTuple):
    """What has happened, and why."""

    name: str  # paused, resumed, silent, error
    reason: str


@dataclass(slots=True)
class Watch:
    """Remembers what was reported. ``now`` in seconds of any steady clock."""

    silent_seconds: float  # without a page; 0: silence is no event
    _halted: str = ""
    _pages: int = 0
    _page_at: float | None = None
    _silent: bool = False
    _errors: int = 0
    _error_at: float | None = None

    def look(self, now: Look, at: float) -> list[Event]:
        """The events since the last look."""
        events = []
        before, self._halted = self._halted, now.halted
        if bool(before) != bool(now.halted):
            events.append(Event("paused", now.halted) if now.halted else Event("resumed", before))

        if self._page_at is None or now.pages != self._pages or now.halted:
            self._pages, self._page_at, self._silent = now.pages, at, False
        elif not self._silent and self.silent_seconds and at - self._page_at >= self.silent_seconds:
            self._silent = True
            waits = now.next_free_seconds
            next_ = "no host waits for its turn" if waits is None else f"the next host may be asked in {waits:.0f} s"
            events.append(Event("silent", f"no page for {at - self._page_at:.0f} s; {next_}"))

        if now.errors != self._errors and (self._error_at is None or at - self._error_at >= ERRORS_APART_SECONDS):
            more, self._errors, self._error_at = now.errors - self._errors, now.errors, at
            events.append(Event("error", f"{counted(more, 'error')} of the program itself, see log/errors.log"))
        return events
