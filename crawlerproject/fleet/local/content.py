"""What a local fleet's workers share about content: their texts, and the sums that the whole crawl may spend.

Their supervisor answers: it is there as long as any of them, there is one of it, and both are derived. Texts are in the
workers' frontiers, and here on disk once more so that one question finds all; sums follow from what each has committed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fleet.local.fleet_tables import QuotaTable
from crawlerproject.fleet.local.supervisor_link import RUNNING, SHARES, TEXTS
from crawlerproject.rules.fleet_shares import SUM_FACTS, QuotaRequest, Share, spent
from crawlerproject.rules.printable import counted
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import NearText, Text
from crawlerproject.stores.rocks.rocks_store import FrontierView
from crawlerproject.stores.rocks.rocks_texts import RocksTexts

logger = logging.getLogger(__name__)


class LocalContent:
    """The supervisor's side: ``answers`` by the name of the question, each called with the worker's name first."""

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
