"""What a crawl begins with beside its seeds: the hosts of an earlier run, pages to visit again, unread messages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from sys import maxsize

import orjson
from scrapy.utils.asyncio import CallLaterResult, call_later

from crawlerproject.crawl.engine import Engine
from crawlerproject.crawl.session import Session
from crawlerproject.errors import FrontierDamaged, StorageError
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.learned.revisits import RevisitPolicy, again, due
from crawlerproject.frontier.other_workers import Links, unpack_message
from crawlerproject.stores.protocols import Box, Changes, FrontierStore
from crawlerproject.stores.rocks.rocks_store import UNREAD_FACT

logger = logging.getLogger(__name__)

# Loaded in one turn of the event loop: some 10 ms.
_HOSTS_AT_A_TIME = 250

# Before the next try, when the disk had no room.
_AGAIN_SECONDS = 1.0

# Of messages, read at a time.
_MESSAGE_BYTES = 64 << 10
# Revisits queued in one change of the store: a few hundred KB.
_REVISITS_AT_A_TIME = 1000


def read_messages(store: FrontierStore, frontier: Frontier, now: float) -> None:
    """Read what workers had written to each other and not read, when this process was given all that they held."""
    read_unread(store, frontier, now)
    for box in store.messages.boxes():
        _read_box(store, box, frontier, now)


def read_unread(store: FrontierStore, frontier: Frontier, now: float) -> None:
    """Read the messages of a fleet over Redis whose frontier was copied to this disk."""
    for partition in range(int(store.fact(UNREAD_FACT) or 0)):
        name = f"{UNREAD_FACT}/{partition}"
        packed = store.fact(name)
        for message in orjson.loads(packed) if packed else ():
            frontier.read(unpack_message(orjson.dumps(message)), now)
        if packed:
            frontier.state.changes.facts.append((name, b""))


def _read_box(store: FrontierStore, box: Box, frontier: Frontier, now: float) -> None:
    """Read the messages of a fleet on this machine. Each is removed by the change that holds its effect.

    Links take effect at once, and another time none: they are known then.
    """
    done, behind = store.messages.read_up_to(box), 0
    while found := store.messages.of(box, behind, maxsize, _MESSAGE_BYTES):
        behind = found[-1][0]
        read: list[tuple[Box, int]] = []
        for number, packed in found:
            message = unpack_message(packed)
            if number > done:
                frontier.read(message, now)
            waits = number > done and not isinstance(message, Links)
            (frontier.state.changes.delivered if waits else read).append((box, number))
        store.apply(Changes(delivered=read))


def queue_revisits(session: Session, policy: RevisitPolicy, now: float) -> int:
    """Queue the known pages whose visit is worth most now; how many there are."""
    queued = 0
    for chosen in due(session.store.pages, session.models.revisits.of, now, policy):
        for start in range(0, len(chosen), _REVISITS_AT_A_TIME):
            some = chosen[start : start + _REVISITS_AT_A_TIME]
            queued += session.frontier.admission.again((again(page, now) for page in some), now)
    return queued


@dataclass(slots=True, eq=False)
class QueueLoader:
    """Loads all hosts with work; until then the crawl is not over."""

    _engine: Engine
    _frontier: Frontier
    _wake: Callable[[], None]  # there may be more to do
    _done: Callable[[], None]  # the last host is loaded
    _timer: CallLaterResult | None = None

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
