"""Loads the hosts of an earlier run in slices, while the first of them are crawled."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from crawlerproject.errors import FrontierDamaged, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.utils.asyncio import CallLaterResult

    from crawlerproject.crawl.engine import Engine
    from crawlerproject.frontier.frontier import Frontier

logger = logging.getLogger(__name__)

# Loaded in one turn of the event loop: some 10 ms.
_HOSTS_AT_A_TIME = 250
# Before the next try, when the disk had no room.
_AGAIN_SECONDS = 1.0


class QueueLoader:
    """Loads all hosts with work; until then the crawl is not over."""

    def __init__(self, engine: Engine, frontier: Frontier, wake: Callable[[], None], done: Callable[[], None]) -> None:
        """``wake`` is called whenever there may be more to do, ``done`` when the last host is loaded."""
        self._engine = engine
        self._frontier = frontier
        self._wake = wake
        self._done = done
        self._timer: CallLaterResult | None = None

    def begin(self) -> None:
        """Load the first slice at once: an error in it stops the start."""
        self._frontier.begin_loading()
        self._some()

    def _some(self) -> None:
        if self._frontier.load_some(_HOSTS_AT_A_TIME):
            self._timer = call_later(0, self._go_on)
        else:
            self._done()

    def cancel(self) -> None:
        """Stop; the rest waits for another start."""
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self) -> None:
        self._timer = None
        try:
            self._some()
        except FrontierDamaged as error:
            self._engine.stop_for_damage(error)
            return
        except StorageError:  # no room on the disk to list them: the crawl pauses for that anyway
            self._timer = call_later(_AGAIN_SECONDS, self._go_on)
            return
        except Exception:  # a frontier that cannot be read: without the rest the crawl would never be over
            logger.exception("the hosts of an earlier run could not be taken up; the crawl stops")
            self._engine.stop("loading_failed")
            return
        self._wake()
