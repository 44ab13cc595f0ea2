"""Starts the process that brings the archive to ARCHIVE_URL beside the crawl, and logs how it gets on."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Self

import orjson
from scrapy import Spider
from scrapy.crawler import Crawler

from crawlerproject.config.crawl_kind import crawl_of
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.errors import StorageError
from crawlerproject.extensions.crawl_task import CrawlTask
from crawlerproject.rules.printable import counted, human_bytes, human_seconds
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts, write_facts
from crawlerproject.stores.uploads.upload_process import ENDED, REFUSED
from crawlerproject.stores.uploads.upload_target import checked_url, place_of

logger = logging.getLogger(__name__)

_WORKER = "crawlerproject.stores.uploads.upload_process"  # the module that the process runs
END_WAIT_SECONDS = 600.0
"""A crawl that has ended waits at most so long until its archive is uploaded (ARCHIVE_END_WAIT_SECONDS, ours)."""

_TICK_SECONDS = 1.0
_LOOK_SECONDS = 0.1
"""How soon an end is noticed that is waited for."""
# A process that died is started again after so long: it does so only when the machine is short of something.
_AGAIN_SECONDS = 30.0


class Uploads(CrawlTask):
    """Of one crawl folder; what the other side refuses never stops a crawl."""

    def __init__(self, crawler: Crawler, url: str) -> None:
        super().__init__(crawler, _TICK_SECONDS)
        self._url = url
        self._folder = CrawlDir()
        self._process: subprocess.Popen[bytes] | None = None
        self._again_at = 0.0
        self._stopped = False
        self._said = ""

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """To ARCHIVE_URL."""
        return cls(crawler, checked_url(str(crawler.settings["ARCHIVE_URL"])))

    def engine_started(self) -> None:
        """Begin."""
        if (scheduler := self.scheduler) is None:
            return
        self._folder = scheduler.crawl.folder
        self._url = place_of(self._url, crawl_of(self._crawler), self._folder)
        self._start()
        super().engine_started()

    async def tick(self, scheduler: FrontierScheduler) -> bool:
        """One look at the process and at its state."""
        process = self._process
        if process is not None and (status := process.poll()) is not None:
            self._process, self._again_at = None, time.monotonic() + _AGAIN_SECONDS
            self._stopped = status == REFUSED
            if self._stopped:
                why = read_facts(self._folder.upload_state).get("error", "")
                logger.error("Nothing is uploaded; the crawl goes on, and scrapy upload does it later: %s", why)
            else:
                logger.warning("The process that uploads the archive ended with status %d; it begins again", status)
        if self._process is None and not self._stopped and time.monotonic() >= self._again_at:
            self._start()
        self._tell(read_facts(self._folder.upload_state))
        return True

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        """The last file is closed: let it go up too, and wait for that as long as the settings allow."""
        self.engine_stopped()
        process = self._process
        if process is None or process.stdin is None:
            return
        wait = self._crawler.settings.getfloat("ARCHIVE_END_WAIT_SECONDS", END_WAIT_SECONDS)
        if wait:
            try:
                process.stdin.write(ENDED)
                logger.info("What is left of the archive goes to %s, for up to %s", self._url, human_seconds(wait))
                until = time.monotonic() + wait
                while process.poll() is None and time.monotonic() < until:
                    await asyncio.sleep(_LOOK_SECONDS)
                    self._tell(read_facts(self._folder.upload_state))
            except BrokenPipeError:
                logger.warning("The process that uploads the archive has ended before the crawl")
        process.stdin.close()  # it ends then, wherever it is
        status = await asyncio.to_thread(process.wait)
        state = read_facts(self._folder.upload_state)
        if status:
            left = f": {state['error']}" if state.get("error") else ""
            logger.warning("Not all of the archive is at %s yet%s; scrapy upload goes on with it", self._url, left)
        else:
            self._tell(state)
            sent = f"{counted(state.get('sent_files', 0), 'file')}, {human_bytes(int(state.get('sent_bytes', 0)))}"
            logger.info("The archive is at %s: %s sent since the start", self._url, sent)

    def _start(self) -> None:
        settings, state = self._crawler.settings, self._folder.upload_state
        if not state.exists():  # a process that has written nothing yet is silent since now
            with suppress(StorageError):
                state.parent.mkdir(parents=True, exist_ok=True)
                write_facts(state, {"url": self._url, "time": time.time()})
        options = {
            "keep_local": settings.getbool("ARCHIVE_KEEP_LOCAL"),
            "read_back": settings.getbool("ARCHIVE_READ_BACK"),
            "bytes_per_second": settings.getfloat("ARCHIVE_MAX_BYTES_PER_SECOND"),
        }
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", _WORKER, str(self._folder), self._url, orjson.dumps(options).decode()],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the crawl, which then waits for what is left
            bufsize=0,  # what a dead process did not take is not written again as its pipe is closed
        )

    def _tell(self, state: dict[str, Any]) -> None:
        """Say once that the other side refuses, and once that it takes again."""
        error = str(state.get("error") or "")
        if bool(error) == bool(self._said) or self._stopped:
            return
        self._said = error
        if error:
            logger.warning("The archive waits, and the crawl goes on; it is tried again, later each time: %s", error)
        else:
            logger.info("The archive goes to %s again", self._url)
