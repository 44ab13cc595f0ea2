"""The running crawl's part of a backup: a checkpoint of its frontier between two commits, as a command orders it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from crawlerproject.errors import StorageError
from crawlerproject.stores.backup.checkpoint_orders import Answer, Order, OrdersHere, Stage, remove_checkpoint

if TYPE_CHECKING:
    from crawlerproject.crawl.session import Session
    from crawlerproject.stores.crawl_dir import CrawlDir
    from crawlerproject.stores.rocks.store import RocksStore

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.02
# How long what is in memory only may take to be written out before a checkpoint waits for it itself: 80 MB take about a
# second (stores/rocks/options.py).
_MOST_LOOKS = 500


class Backups:
    """Of one process. ``due`` is asked twice a second; ``obey`` carries out what it says."""

    def __init__(self, folder: CrawlDir) -> None:
        self._folder = folder
        self._orders = OrdersHere(folder)
        self._answered: Order | None = None
        self._holds = ""  # number of the backup for which nothing is removed that others have acknowledged

    def due(self, session: Session) -> Order | None:
        """What was ordered and is not done yet; a hold whose backup is over ends."""
        order = self._orders.current()
        if self._holds and (order is None or order.number != self._holds):
            session.role.keep_delivered(keep=False)
            self._holds = ""
        return None if order == self._answered else order

    async def obey(self, order: Order, session: Session) -> None:
        """Do it and say so. No commit runs meanwhile. What cannot be done is the command's to say. StorageError."""
        answer = await self._done(order, session)
        self._orders.answer(answer)
        self._answered = order

    async def _done(self, order: Order, session: Session) -> Answer:
        store = session.role.own_store
        if store is None:
            return Answer(order.number, order.stage, "its frontier is in Redis")
        if order.stage is Stage.HOLD:
            session.role.keep_delivered(keep=True)
            self._holds = order.number
            return Answer(order.number, order.stage)
        if not session.role.all_hosts and self._holds != order.number:
            return Answer(order.number, order.stage, "it was started while the backup was made")
        try:
            await _checkpoint(store, self._folder)
        except StorageError as error:
            remove_checkpoint(self._folder)
            return Answer(order.number, order.stage, str(error))
        logger.info("A checkpoint of the frontier was made for a backup")
        return Answer(order.number, order.stage, closed=tuple(path.name for path in self._folder.closed_warcs()))


async def _checkpoint(store: RocksStore, folder: CrawlDir) -> None:
    remove_checkpoint(folder)
    store.write_out()
    looks = 0
    while store.is_writing_out() and looks < _MOST_LOOKS:
        looks += 1
        await asyncio.sleep(_LOOK_SECONDS)
    store.checkpoint(folder.frontier_checkpoint)
