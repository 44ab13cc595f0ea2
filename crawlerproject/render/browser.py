"""One browser per crawl. It starts with the first page that needs it and restarts when it has grown or died."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page
from scrapy import Request
from scrapy.crawler import Crawler

from crawlerproject.config.chromium import NOT_PLAYWRIGHTS, arguments
from crawlerproject.items import RenderFailed
from crawlerproject.reasons import Reason
from crawlerproject.render.playwright_handler import DriverEnded, NotLoaded, PlaywrightHandler, Slot, while_alive
from crawlerproject.render.visit import PageVisit
from crawlerproject.rules.rendering.browser_limits import REQUIRED, hopeless, refused_by
from crawlerproject.runtime.clock import stamp

logger = logging.getLogger(__name__)

_START_SECONDS = 60.0  # 1.1 s measured; a busy machine with a cold disk may take long
_RECYCLE_PAGES = 200  # then the browser is started again: what it has leaked by then is small (ours)
# One that has started before and does not now is tried again after these: the machine is short of something (ours).
_START_AGAIN_SECONDS = (2.0, 8.0, 30.0)
_WATCH_SECONDS = 0.5  # a page allocates some 0.5 GB in that time at worst

# util-linux's unshare: as root, else through a user namespace, where the kernel allows these to every user.
# Not --map-root-user: Chromium refuses to start as root with its sandbox.
_WAYS = (("--net",), ("--user", "--map-current-user", "--net"))
_NAMESPACE = "/proc/self/ns/net"
_TRY_SECONDS = 10.0  # some 5 ms measured

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True, slots=True)
class BrowserLimits:
    """The RENDER_* settings of the same names."""

    navigation_seconds: float
    timeout_seconds: float
    max_memory_bytes: int
    page_memory_bytes: int
    screenshot: bool
    sandbox: str


class BrowserMissing(Exception):
    """No browser could be started; the message is the reason."""


class NoSandbox(BrowserMissing):
    """The operator requires Chromium's sandbox, and the system allows none."""


class Browser:
    """Renders pages, each in a slot of its own."""

    def __init__(self, crawler: Crawler, path: str, user_agent: str, limits: BrowserLimits) -> None:
        self._crawler = crawler
        self._path = path
        self._user_agent = user_agent
        self._limits = limits
        self._handler: PlaywrightHandler | None = None
        self._launcher: Launcher | None = None
        self._confined = True  # until the system has refused a namespace
        self._sandboxed = True  # likewise
        self._known_good = False  # it has started once
        self._starting = asyncio.Lock()
        self._free: list[Slot] = []
        self._slots = 0
        self._in_flight = 0
        self._pages = 0
        self._draining = False  # admit no page until the restart
        self._changed = asyncio.Condition()
        self._watch: asyncio.Task[None] | None = None

    async def show(self, visit: PageVisit, host: str) -> None:
        """Run the page in the browser and fill ``visit.rendered``. Raises RenderFailed or BrowserMissing."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._draining)
            self._in_flight += 1
        try:
            handler = await self._started()
            visit.rendered.browser = f"Chromium {handler.browser.version}"
            await self._in_slot(handler, visit, host)
        finally:
            async with self._changed:
                self._in_flight -= 1
                if self._draining and not self._in_flight:
                    await self._stop()
                    self._draining = False
                self._changed.notify_all()

    async def close(self) -> None:
        """End the browser for good."""
        if self._watch is not None:
            self._watch.cancel()
        await self._stop()
        if self._launcher is not None:
            self._launcher.close()

    async def _in_slot(self, handler: PlaywrightHandler, visit: PageVisit, host: str) -> None:
        if self._free:
            slot = self._free.pop()
        else:
            self._slots += 1
            slot = Slot(f"slot{self._slots}", self._user_agent)
        handler.visits[slot.name] = visit
        shown = False
        try:
            visit.rendered.started_at = stamp()
            visit.time.begin()
            until = visit.time.now() + self._limits.timeout_seconds
            loading = while_alive(handler.died, self._load(handler, slot, visit, host))
            page = await visit.time.within(self._limits.timeout_seconds, loading)
            shown = True
            if self._limits.screenshot:  # in time, or none: the page has been read and counts as rendered either way
                shown = False
                with contextlib.suppress(PlaywrightError, TimeoutError):
                    async with asyncio.timeout(until - visit.time.now()):
                        visit.rendered.screenshot = await page.screenshot(timeout=0)
                    shown = True
        except (TimeoutError, NotLoaded) as error:
            detail = f"not done within {self._limits.timeout_seconds:g} s"
            if isinstance(error, NotLoaded):
                detail = f"not loaded within {self._limits.navigation_seconds:g} s"
            raise RenderFailed(Reason.RENDER_TIMEOUT, detail, visit.rendered) from error
        except (PlaywrightError, AttributeError) as error:  # a handler whose browser died has lost an attribute
            alive = self._alive(handler)
            detail = str(error).partition("\n")[0] if alive else "the browser has died"
            # A page that has not received its document cannot be at fault.
            again = not alive or not visit.served
            raise RenderFailed(Reason.RENDER_FAILED, detail, visit.rendered, again=again) from error
        finally:
            visit.rendered.ended_at = stamp()
            handler.visits.pop(slot.name, None)
            await self._leave(handler, slot, shown=shown)

    async def _load(self, handler: PlaywrightHandler, slot: Slot, visit: PageVisit, host: str) -> Page:
        page = await slot.open(handler.browser, host, visit)
        request = Request(
            visit.rendered.url,
            meta={
                "playwright": True,
                "playwright_page": page,
                "playwright_include_page": True,
                "playwright_context": slot.name,
                "playwright_page_methods": visit.methods,
                "playwright_page_goto_kwargs": {
                    "wait_until": "domcontentloaded",
                    "timeout": self._limits.navigation_seconds * 1000,
                },
            },
        )
        response = await handler.download_request(request)
        visit.rendered.html = response.text.encode("utf-8", "replace")
        return page

    async def _leave(self, handler: PlaywrightHandler, slot: Slot, *, shown: bool) -> None:
        self._pages += 1
        alive = self._alive(handler)
        if not await slot.close_visit(clean=shown and alive):
            alive = False
        if not alive or self._pages >= _RECYCLE_PAGES:
            self._draining = True
        if alive:
            self._free.append(slot)

    def _alive(self, handler: PlaywrightHandler) -> bool:
        browser = getattr(handler, "browser", None)
        return browser is not None and browser.is_connected()

    # --- the process ----------------------------------------------------------------------------

    async def _started(self) -> PlaywrightHandler:
        async with self._starting:
            if self._handler is not None and not self._alive(self._handler):
                await self._stop()  # it died between two pages
            if self._handler is None:
                self._handler = await self._start()
            return self._handler

    async def _start(self) -> PlaywrightHandler:
        """The first time as the system allows; later as it was, and a moment without processes or memory is waited for.

        Raises BrowserMissing.
        """
        if not self._known_good:
            handler = None
            if self._confined:  # a network namespace, if possible; Chromium's arguments close its network in any case
                try:
                    if self._launcher is None:
                        self._launcher = await asyncio.to_thread(Launcher, self._path)
                    handler = await self._start_as(self._launcher.path)
                except NoSandbox:
                    raise
                except (NoNamespace, BrowserMissing) as refused:
                    self._confined = False
                    logger.warning(
                        "The browser gets no network namespace, its own settings keep it offline: %s", refused
                    )
            handler = handler or await self._start_as(self._path)
            self._known_good = True
            return handler
        for wait in _START_AGAIN_SECONDS:
            try:
                return await self._start_again()
            except BrowserMissing as missing:
                logger.warning(
                    "The browser, which did start, does not now; it is tried again in %g s: %s", wait, missing
                )
            await asyncio.sleep(wait)
        return await self._start_again()

    async def _start_again(self) -> PlaywrightHandler:
        if not self._confined:
            return await self._start_as(self._path)
        assert self._launcher is not None
        if not os.path.exists(self._launcher.path):  # what is old in /tmp is removed there
            self._launcher.close()
            try:
                self._launcher = await asyncio.to_thread(Launcher, self._path)
            except NoNamespace as refused:
                raise BrowserMissing(str(refused)) from refused
        return await self._start_as(self._launcher.path)

    async def _start_as(self, path: str) -> PlaywrightHandler:
        """Start it, in Chromium's sandbox where the system allows one."""
        if self._sandboxed:
            why = hopeless(is_root=os.geteuid() == 0)
            try:
                if not why:
                    return await self._launched(path)
            except BrowserMissing as missing:
                why = refused_by(str(missing.__cause__))
                if not why:
                    raise
            if self._limits.sandbox == REQUIRED:
                raise NoSandbox(f"RENDER_SANDBOX is {REQUIRED}, and there is none: {why}")
            self._sandboxed = False
            logger.warning("The browser runs without Chromium's sandbox: %s", why)
        return await self._launched(path)

    async def _launched(self, path: str) -> PlaywrightHandler:
        options = {
            "executable_path": path,
            "chromium_sandbox": self._sandboxed,
            "args": arguments(self._limits.page_memory_bytes),
            "ignore_default_args": NOT_PLAYWRIGHTS,
            "timeout": _START_SECONDS * 1000,
            "handle_sigint": False,  # Ctrl-C ends the crawl in good order first
            "handle_sigterm": False,
        }
        handler = PlaywrightHandler(self._crawler, options)
        began = monotonic()
        try:
            await asyncio.wait_for(handler.start(), _START_SECONDS)
        except (PlaywrightError, DriverEnded, OSError, TimeoutError) as error:
            with contextlib.suppress(Exception):
                await handler.close()
            raise BrowserMissing(f"{self._path} does not start: {str(error).strip().partition(chr(10))[0]}") from error
        stats = self._crawler.stats
        assert stats is not None
        stats.inc_value("render/browsers")
        logger.info("Browser started for pages that need one: %s, %.1f s", self._path, monotonic() - began)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.get_running_loop().create_task(self._keep_watch())
        return handler

    async def _stop(self) -> None:
        handler, self._handler = self._handler, None
        self._free.clear()
        self._pages = 0
        if handler is not None:
            with contextlib.suppress(Exception):  # a dead browser cannot be closed gracefully
                await asyncio.wait_for(handler.close(), _START_SECONDS)

    async def _keep_watch(self) -> None:
        """End pages that use too much memory; restart a browser that has grown too large."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            if self._handler is None:
                return
            if not self._in_flight:
                continue
            processes = await asyncio.to_thread(browser_processes)
            if ended := end_oversized(processes, self._limits.page_memory_bytes):
                logger.warning("%d page(s) in the browser took too much memory and were ended", ended)
            if sum(process.private_bytes for process in processes) > self._limits.max_memory_bytes:
                self._draining = True


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
