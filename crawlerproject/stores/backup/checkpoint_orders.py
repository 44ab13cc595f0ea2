"""How a command has a running crawl make checkpoints of its frontier, by files in each process's ``control/``.

``backup.json`` is the order, ``backup-answer.json`` what the process says to it, ``backup.lock`` is locked for as long
as the command lives: an order without it is out of date.
"""

from __future__ import annotations

import os
import secrets
import shutil
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import orjson

from crawlerproject.errors import OperatorError
from crawlerproject.stores.atomic_files import SECRET_FILE, SECRET_FOLDER, write_whole
from crawlerproject.stores.crawl_dir import CrawlDir, is_locked, lock_now, open_lock, read_facts

_ORDER, _ANSWER, _LOCK = "backup.json", "backup-answer.json", "backup.lock"


class Stage(StrEnum):
    """What is asked for, in this order."""

    HOLD = "hold"  # remove nothing any more that other workers have acknowledged
    TAKE = "take"  # make a checkpoint


class Order(NamedTuple):
    """One stage of one backup."""

    number: str
    stage: Stage


class Answer(NamedTuple):
    """What a process has done. ``error`` is not empty: it could not."""

    number: str
    stage: str
    error: str = ""
    closed: tuple[str, ...] = ()  # WARC files that were not written any more at the moment of the checkpoint


class OrdersHere:
    """The running process's side. ``current`` costs one call of the system while there is no order."""

    def __init__(self, folder: CrawlDir) -> None:
        self._folder = folder
        self._order = folder.control / _ORDER

    def current(self) -> Order | None:
        """The order of a command that lives; what a dead one has left is removed."""
        if not self._order.exists():
            return None
        if not is_locked(self._folder.control / _LOCK):
            self._order.unlink(missing_ok=True)
            remove_checkpoint(self._folder)
            return None
        facts = read_facts(self._order)
        try:
            return Order(str(facts["number"]), Stage(facts["stage"]))
        except (KeyError, ValueError):
            return None

    def answer(self, answer: Answer) -> None:
        """Write the answer for the command to read. StorageError."""
        write_whole(self._folder.control / _ANSWER, orjson.dumps(answer._asdict()), SECRET_FILE)


class Asking:
    """The command's side, from the first order until ``close``, which takes all of them back."""

    def __init__(self, folders: list[CrawlDir]) -> None:
        """``folders``: of the processes that are asked. Raises OperatorError while another backup is made."""
        self._folders = folders
        self._number = secrets.token_hex(8)
        self._locks: list[int] = []
        try:
            for folder in folders:
                self._locks.append(_lock(folder))
                remove_checkpoint(folder)
        except BaseException:
            self.close()
            raise

    def ask(self, stage: Stage) -> None:
        """Give all of them the order. StorageError."""
        for folder in self._folders:
            write_whole(folder.control / _ORDER, orjson.dumps({"number": self._number, "stage": stage}), SECRET_FILE)

    def answers(self, stage: Stage) -> dict[CrawlDir, Answer]:
        """Those that have come, by folder. Raises OperatorError when one of them could not do it."""
        found = {}
        for folder in self._folders:
            facts = read_facts(folder.control / _ANSWER)
            if (facts.get("number"), facts.get("stage")) != (self._number, stage):
                continue
            found[folder] = Answer(self._number, stage, str(facts["error"]), tuple(facts["closed"]))
            if facts["error"]:
                raise OperatorError(f"The crawl in {folder} cannot make a backup now: {facts['error']}; try again.")
        return found

    def close(self) -> None:
        """Take the orders back, and remove what was made for them."""
        for folder, lock in zip(self._folders, self._locks, strict=False):
            for name in (_ORDER, _ANSWER):
                (folder.control / name).unlink(missing_ok=True)
            remove_checkpoint(folder)
            os.close(lock)
        self._locks = []


def remove_checkpoint(folder: CrawlDir) -> None:
    """Remove what was made for a backup that was not finished, or was taken."""
    for path in (folder.frontier_checkpoint, Path(f"{folder.frontier_checkpoint}.tmp")):
        shutil.rmtree(path, ignore_errors=True)


def _lock(folder: CrawlDir) -> int:
    folder.control.mkdir(mode=SECRET_FOLDER, exist_ok=True)
    descriptor = open_lock(folder.control / _LOCK)
    try:
        lock_now(descriptor)
    except BlockingIOError:
        os.close(descriptor)
        raise OperatorError(f"Another backup of {folder} is being made; wait for it, then try again.") from None
    return descriptor
