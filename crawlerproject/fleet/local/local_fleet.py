"""The start of a local fleet: the crawl's folder is locked, an earlier fleet's workers have ended, the plan is made.

What the supervisor of a local fleet does for its workers: IP addresses, messages, the agreed end, orders, progress.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fleet.local.fleet_tables import (
    AddressTable,
    Agreement,
    Counts,
    InboxTable,
    QuotaTable,
    WorkerReport,
)
from crawlerproject.fleet.local.supervisor_link import ADDRESSES, MAIL, REPORT, RUNNING, SHARES, TEXTS, QuestionServer
from crawlerproject.fleet.repartition.repartition import move
from crawlerproject.fleet.supervisor import Worker
from crawlerproject.rules.fleet_shares import SUM_FACTS, QuotaRequest, Share, spent
from crawlerproject.rules.printable import counted, human_bytes
from crawlerproject.runtime.unix_sockets import connected
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from crawlerproject.stores.crawl_folders import FleetPlan, is_alone, read_plan, refuse_moved
from crawlerproject.stores.operator_files.control import Control, hand_on
from crawlerproject.stores.protocols import NearText, Text
from crawlerproject.stores.rocks.rocks_store import FrontierView
from crawlerproject.stores.rocks.rocks_texts import RocksTexts

logger = logging.getLogger(__name__)

_SUMS = ("pages", "bytes", "errors", "queued_urls")
# Between two looks for seeds that were added from outside.
_ORDERS_SECONDS = 0.5


class LocalContent:
    """What the workers share about content: their texts, and the sums that the whole crawl may spend.

    Both are derived: texts are in the workers' frontiers, and here on disk once more so that one question finds all;
    sums follow from what each has committed. ``answers`` are called with the worker's name first.
    """

    def __init__(self, folder: CrawlDir, workers: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        """No process writes the workers' frontiers yet. Raises OperatorError when one of them cannot be read."""
        self._folders = {name: CrawlDir(folder / name) for name in workers}
        self._clock, self._began = clock, clock()
        self._warned = False  # that the disk refuses
        self._texts = RocksTexts(folder.texts)
        self._take_up(folder)
        by_worker = {name: self._spent(name) for name in workers}
        kinds = {kind: {name: amounts[kind] for name, amounts in by_worker.items()} for kind in SUM_FACTS}
        self._shares = QuotaTable(kinds, len(workers))
        self.answers: dict[str, Callable[..., Any]] = {
            TEXTS: self._answer_texts,
            SHARES: self._answer_shares,
            RUNNING: lambda worker: self._clock() - self._began,
        }

    def ended(self, worker: str) -> None:
        """The worker's process has ended and is not started again."""
        if not self._shares.claimed:
            return
        try:
            self._shares.ended(worker, self._spent(worker))
        except (OperatorError, StorageError) as error:
            logger.warning("What %s has left of the crawl's sums is not spent in this run: %s", worker, error)

    def close(self) -> None:
        """Let the folder go."""
        self._texts.close()

    def _take_up(self, folder: CrawlDir) -> None:
        """Take in texts that came while others held the hosts, when the hosts were divided again since."""
        plan = folder.fleet_plan
        stamp = str(plan.stat().st_mtime_ns if plan.exists() else 0).encode()
        if self._texts.is_of(stamp):
            return
        frontiers = [folder.frontier for folder in self._folders.values() if folder.has_frontier()]
        if count := self._texts.fill(stamp, frontiers):
            logger.info("%s of all workers are compared with new ones", counted(count, "text"))

    def _spent(self, worker: str) -> dict[str, int]:
        folder = self._folders[worker]
        if not folder.has_frontier():
            return dict.fromkeys(SUM_FACTS, 0)
        with FrontierView(folder.frontier) as view:
            return {kind: spent(kind, view.fact(name)) for kind, name in SUM_FACTS.items()}

    def _answer_texts(
        self, worker: str, added: list[list[Any]], values: list[int], bits: int
    ) -> list[list[NearText]] | None:
        texts = [Text(value, bytes.fromhex(key), url) for value, key, url in added]
        try:
            answers = self._texts.exchange(texts, values, bits)
        except StorageError as error:
            if not self._warned:
                logger.warning("Texts are not compared across hosts: %s", error)
            self._warned = True
            return None
        self._warned = False
        return answers

    def _answer_shares(self, worker: str, claims: list[list[Any]]) -> list[Share]:
        return [self._shares.exchange(worker, QuotaRequest(*claim)) for claim in claims]


class LocalFleet:
    """The supervisor's side, for one event loop. ``clock`` gives seconds and never goes back."""

    def __init__(
        self,
        folder: CrawlDir,
        workers: Sequence[str],
        *,
        rest_seconds: float,
        log_seconds: float,
        is_new: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``rest_seconds``: of an IP address. ``log_seconds``: between two lines on progress; 0: none.

        Unless the crawl ``is_new`` every address rests once from now on.
        """
        self._folder = folder
        self._control = Control(folder)
        self._clock = clock
        self._rest_seconds = rest_seconds
        self._is_new = is_new
        self._log_seconds = log_seconds
        self._agreement = Agreement(workers)
        self._counts = dict.fromkeys(workers, Counts())
        self._before = dict.fromkeys(workers, Counts())  # of processes of this run that have ended
        self._logged_at = self._looked_at = 0.0
        self._logged_pages = 0
        self._ended_early = False  # a worker has, and left what it had
        self._processes: dict[str, Worker] = {}
        self._addresses: AddressTable
        self._content: LocalContent | None = None
        self.server = QuestionServer(self._refusal, self._exited)
        inboxes = InboxTable()
        self.server.answers |= {
            ADDRESSES: self._answer_addresses,
            REPORT: self._answer_report,
            MAIL: lambda worker, *question: inboxes.exchange(*question),
        }

    async def begin(self, workers: Sequence[Worker]) -> None:
        """Listen. Raises OperatorError."""
        now = self._clock()
        self._addresses = AddressTable(self._rest_seconds, 0.0 if self._is_new else now + self._rest_seconds)
        self._logged_at = now
        self._processes = {worker.name: worker for worker in workers}
        self._content = LocalContent(self._folder, list(self._processes), self._clock)
        self.server.answers |= self._content.answers
        try:
            await self.server.serve(self._folder.supervisor_socket)
        except OSError as error:
            raise OperatorError(
                f"{self._folder.supervisor_socket} cannot be made ({error.strerror}); set CRAWL_DIR to a folder on a "
                "disk of this machine."
            ) from error

    def look(self) -> None:
        """Hand on orders, log progress."""
        now = self._clock()
        if now - self._looked_at >= _ORDERS_SECONDS:
            self._looked_at = now
            self._hand_on()
        if self._log_seconds and now - self._logged_at >= self._log_seconds:
            self._log_progress(now)

    def ended(self, worker: str) -> None:
        """The worker is not started again in this run."""
        self._ended_early |= not self._agreement.done
        self._agreement.exited(worker, ended=True)
        if self._content is not None:
            self._content.ended(worker)

    def close(self) -> None:
        """Log what all have done."""
        self.server.close()
        if self._content is not None:
            self._content.close()
        self._folder.supervisor_socket.unlink(missing_ok=True)
        done = self._total()
        shares = ", ".join(f"{name} {counts.pages:,}" for name, counts in self._of_workers().items())
        logger.info(
            "%s: %s (%s), %s, %s", "This run has ended" if self._ended_early else "The crawl is done",
            counted(done.pages, "page"), shares, human_bytes(done.bytes), counted(done.errors, "error"),
        )  # fmt: skip
        if done.queued_urls:
            logger.info("Left for another start: %s. The same command continues.", counted(done.queued_urls, "URL"))

    # --- workers ----------------------------------------------------------------------------------

    def _refusal(self, name: str, pid: int) -> str:
        worker = self._processes.get(name)
        if worker is None:
            return f"{name!r} is none of its workers ({', '.join(self._processes)})"
        if worker.process is None or worker.process.pid != pid:
            return f"it starts {name} itself"
        self._agreement.started(name)
        return ""

    def _exited(self, name: str) -> None:
        self._addresses.exited(name, self._clock())
        self._agreement.exited(name)
        self._before[name] = self._of_workers()[name]
        self._counts[name] = Counts()

    def _answer_addresses(self, worker: str, wanted: list[list[Any]], rested: list[list[Any]]) -> list[float]:
        now, table = self._clock(), self._addresses
        for address, _, _, quick_waits, took_seconds in rested:
            table.rest(worker, address, now, quick_waits=quick_waits, took_seconds=took_seconds)
        return [
            table.reserve(worker, address, domain, now, quick_waits=quick_waits)
            for address, _, domain, quick_waits, _ in wanted
        ]

    def _answer_report(self, worker: str, quiet: bool, activity: int, unread: list[str], counts: list[Any]) -> bool:
        before, now = self._counts[worker], Counts(*counts)
        self._counts[worker] = now
        if now.paused and not before.paused:
            logger.warning("%s pauses: %s; the others go on.", worker, now.paused, extra={"worker": worker})
        return self._agreement.take(worker, WorkerReport(quiet and not self._control.added(), activity, unread))

    # --- the operator's ---------------------------------------------------------------------------

    def _hand_on(self) -> None:
        try:
            hand_on(self._folder, [CrawlDir(self._folder / name) for name in self._processes])
        except (OSError, StorageError) as error:  # they stay where they are until the next look
            logger.warning("Added seeds wait: %s", error)

    # --- progress ---------------------------------------------------------------------------------

    def _of_workers(self) -> dict[str, Counts]:
        """By worker, over its processes of this run."""
        return {name: now.after(self._before[name]) for name, now in self._counts.items()}

    def _total(self) -> Counts:
        each = self._of_workers().values()
        pages, received, errors, queued = (sum(getattr(one, name) or 0 for one in each) for name in _SUMS)
        return Counts(pages, received, errors, queued)

    def _log_progress(self, now: float) -> None:
        done = self._total()
        rate = (done.pages - self._logged_pages) / (now - self._logged_at)
        self._logged_at, self._logged_pages = now, done.pages
        logger.info(
            "%s · %.1f pages/s · %s · %s · %s queued · %d of %d workers at work",
            counted(done.pages, "page"), rate, human_bytes(done.bytes), counted(done.errors, "error"),
            f"{done.queued_urls or 0:,}", len(self.server.connected), len(self._processes),
        )  # fmt: skip


LOCAL_NAME = "worker"
"""Workers are called worker-1, worker-2 …"""
_LOOK_SECONDS = 0.2
# A worker that was started just before its supervisor died has the lock of the crawl, and that of its own folder within
# this time; a busy machine may take longer, and the operator starts again.
_STARTING_SECONDS = 5.0


class LockedCrawl:
    """The crawl, locked. The lock's descriptor goes to every worker, so it holds until the last one has ended."""

    def __init__(self, folder: CrawlDir, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait for what a killed supervisor left running. Raises OperatorError: another process is at work here."""
        self.folder = folder
        self._sleep = sleep
        self.lock = self._locked()
        self.is_new = False

    def __enter__(self) -> LockedCrawl:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.lock)

    def plan(self, name: str, workers: int | None, partitions: int) -> FleetPlan:
        """Who holds what in this run, durable in the folder; ``workers`` None: as before, or one a core.

        Where others had the hosts before, these move first. ``partitions``: how many a new crawl has.
        Raises OperatorError, StorageError.
        """
        refuse_moved(self.folder)
        folder, before = self.folder, read_plan(self.folder)
        self.is_new = is_alone(folder) and not folder.has_frontier()
        had = before.workers if before is not None and not before.alone else ()
        count = workers or len(had) or os.cpu_count() or 1
        if not name and count == len(had):
            return move(folder, had, logger.info, partitions)
        names = [f"{name or LOCAL_NAME}-{number}" for number in range(1, count + 1)]
        return move(folder, names, logger.info, partitions)

    def _locked(self) -> int:
        warned, left = False, _STARTING_SECONDS
        while True:
            try:
                return take_lock(self.folder)
            except OperatorError:
                if self._supervised() or not self.folder.locked():
                    raise
                plan = read_plan(self.folder)
                folders = plan.folders(self.folder) if plan is not None and not plan.alone else []
                at_work = [folder.name for folder in folders if folder.locked()]
                if not at_work and left <= 0:
                    raise
            if at_work and not warned:
                warned = True
                logger.warning("Waiting for workers of an earlier start to end: %s", ", ".join(at_work))
            left -= _LOOK_SECONDS
            self._sleep(_LOOK_SECONDS)

    def _supervised(self) -> bool:
        """Whether another supervisor is at work here."""
        try:
            connected(self.folder.supervisor_socket).close()
        except OSError:
            return False
        return True
