"""What a crawl begins with beside its seeds: known pages to visit again, unread messages."""

from __future__ import annotations

from sys import maxsize
from typing import TYPE_CHECKING

import orjson

from crawlerproject.frontier import messages
from crawlerproject.frontier.learned.revisit_queue import RevisitPolicy, again, due
from crawlerproject.stores.protocols import Box, Changes, MessageStore
from crawlerproject.stores.rocks.store import LETTERS_FACT

if TYPE_CHECKING:
    from crawlerproject.crawl.session import Session
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.stores.protocols import FrontierStore

# Of messages, read at a time.
_MESSAGE_BYTES = 64 << 10
# Revisits queued in one change of the store: a few hundred KB.
_REVISITS_AT_A_TIME = 1000


def read_messages(store: FrontierStore, frontier: Frontier, now: float) -> None:
    """Read what workers had written to each other and not read, when this process was given all that they held."""
    read_letters(store, frontier, now)
    if isinstance(store, MessageStore):
        for box in store.messages.boxes():
            _read_box(store, box, frontier, now)


def read_letters(store: FrontierStore, frontier: Frontier, now: float) -> None:
    """Those of a fleet in Redis, whose frontier was copied to this disk."""
    for partition in range(int(store.fact(LETTERS_FACT) or 0)):
        name = f"{LETTERS_FACT}/{partition}"
        packed = store.fact(name)
        for message in orjson.loads(packed) if packed else ():
            frontier.read(messages.unpack(orjson.dumps(message)), now)
        if packed:
            frontier.state.keep_fact(name, b"")


def _read_box(store: MessageStore, box: Box, frontier: Frontier, now: float) -> None:
    """Those of a fleet on this machine. Each is gone with the change that holds its effect.

    Links take effect at once, and another time none: they are known then.
    """
    done, behind = store.messages.read_up_to(box), 0
    while found := store.messages.of(box, behind, maxsize, _MESSAGE_BYTES):
        behind = found[-1][0]
        read: list[tuple[Box, int]] = []
        for number, packed in found:
            message = messages.unpack(packed)
            if number > done:
                frontier.read(message, now)
            waits = number > done and not isinstance(message, messages.Links)
            (frontier.state.changes.delivered if waits else read).append((box, number))
        store.apply(Changes(delivered=read))


def queue_revisits(session: Session, policy: RevisitPolicy, now: float) -> int:
    """Queue the known pages whose visit is worth most now; how many there are."""
    queued = 0
    for chosen in due(session.store.pages, session.learned.hosts.revisits.of, now, policy):
        for start in range(0, len(chosen), _REVISITS_AT_A_TIME):
            some = chosen[start : start + _REVISITS_AT_A_TIME]
            queued += session.frontier.again((again(page, now) for page in some), now)
    return queued
