"""The process that brings a folder's archive to another place.

``python -m crawlerproject.stores.uploads.upload_process FOLDER URL OPTIONS``, where OPTIONS is JSON: keep_local,
read_back, bytes_per_second.

A process of its own beside the crawl, at the lowest priority: what is measured and sent takes nothing of the crawl's
loop. Its standard input is the crawl's: a letter says that the crawl has ended, so that all that is left can go; the
input's end, that the crawl has died.
"""

from __future__ import annotations

import fcntl
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial

import orjson

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.archive.upload_rules import retry_seconds, without_secrets
from crawlerproject.rules.printable import printable_line
from crawlerproject.stores.crawl_dir import CrawlDir, open_lock, read_facts, write_facts
from crawlerproject.stores.uploads.upload_journal import Journal
from crawlerproject.stores.uploads.upload_target import open_target
from crawlerproject.stores.uploads.uploader import Uploader, UploadOptions

NICENESS = 19
"""The crawl comes first."""
ENDED = b"e"
"""What the crawl writes when it has ended and its last file is closed."""
LOOK_SECONDS = 5.0
"""How soon a file that was closed is noticed."""
TRIES_AT_END = 5
"""Refusals in a row, a minute in all, after which a crawl that has ended is not kept waiting."""
LEFT, REFUSED = 3, 2
"""Exit status: something is left for later; the operator must mend something."""
_STATE_SECONDS = 1.0


class UploadProcess:
    """The rounds of one process, and what it says of them in ``upload/state.json``."""

    def __init__(self, folder: CrawlDir, url: str, options: UploadOptions) -> None:
        self._folder, self._url = folder, url
        self.journal = Journal(folder)
        self.journal.open(url)
        shown = options._replace(tick=self._tick)
        self.uploader = Uploader(folder, partial(open_target, url), self.journal, shown)
        self.uploader.problems += read_facts(folder.upload_state).get("problems") or ()  # until a check finds none
        self._chance = random.Random()
        self.failures = 0
        self.error = ""
        self._failing_since: float | None = None
        self._next_try: float | None = None
        self._said_at = 0.0

    def try_round(self, *, ended: bool) -> float:
        """One round; seconds until the next may begin. Raises OperatorError."""
        try:
            self.uploader.round(ended=ended)
            self.failures, self.error, self._failing_since, self._next_try = 0, "", None, None
            wait = LOOK_SECONDS
        except (StorageError, OSError) as error:
            self.failures += 1
            self.error = printable_line(without_secrets(str(error)))
            self._failing_since = self._failing_since or time.time()
            wait = retry_seconds(self.failures, self._chance)
            self._next_try = time.time() + wait
        self.say()
        return wait

    def say(self) -> None:
        """Write down how it stands."""
        self._said_at = time.monotonic()
        facts = {
            "url": self._url,
            "time": time.time(),
            **asdict(self.uploader.figures),
            "error": self.error,
            "failing_since": self._failing_since,
            "next_try": self._next_try,
            "problems": self.uploader.problems[:10],
        }
        with suppress(StorageError):  # the crawl itself reports a full disk
            write_facts(self._folder.upload_state, facts)

    def _tick(self) -> None:
        if self.error and self.uploader.takes_again:  # what waits may take hours, and is refused no more
            self.error, self._failing_since, self._next_try = "", None, None
            self.say()
        if time.monotonic() - self._said_at >= _STATE_SECONDS:
            self.say()


@contextmanager
def upload_lock(folder: CrawlDir, *, wait: bool) -> Iterator[None]:
    """Held by the one process that sends from this folder. Raises OperatorError when there is another."""
    folder.upload_lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = open_lock(folder.upload_lock)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    except BlockingIOError:
        raise OperatorError(
            f"Another process uploads from {folder} just now; scrapy status says how far it is."
        ) from None
    finally:
        os.close(descriptor)


def main() -> None:
    """The process."""
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    ended = threading.Event()
    threading.Thread(target=_listen, args=(ended,), daemon=True).start()
    folder, url = CrawlDir(sys.argv[1]), sys.argv[2]
    options = UploadOptions(**orjson.loads(sys.argv[3]), clock=time.time, sleep=time.sleep)
    try:
        with upload_lock(folder, wait=True):
            sys.exit(_rounds(UploadProcess(folder, url, options), ended))
    except (StorageError, OSError) as error:  # the disk's: the crawl starts another one later
        sys.exit(f"{folder}: {error}")
    except OperatorError as error:
        refused = {"url": url, "time": time.time(), "error": str(error), "stopped": True}
        write_facts(folder.upload_state, read_facts(folder.upload_state) | refused)
        sys.exit(REFUSED)


def _rounds(process: UploadProcess, ended: threading.Event) -> int:
    while True:
        last = ended.is_set()
        wait = process.try_round(ended=last)
        if last and not process.failures:
            return 0
        if last and process.failures >= TRIES_AT_END:
            return LEFT
        if last:
            time.sleep(wait)
        elif ended.wait(wait):
            process.failures = 0  # the end has tries of its own


def _listen(ended: threading.Event) -> None:
    while letter := os.read(0, 1):
        if letter == ENDED:
            ended.set()
    # The crawl died, or waits no longer: the next process continues what is in transit.
    os._exit(LEFT)


if __name__ == "__main__":
    main()
