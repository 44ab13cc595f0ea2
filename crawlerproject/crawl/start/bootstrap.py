"""What a crawl begins with beside its seeds: known pages to visit again, unread messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from crawlerproject.frontier import messages
from crawlerproject.frontier.learned.revisit_queue import RevisitPolicy, again, by_depth, by_rank, due
from crawlerproject.rules.revisits.refetch import DAY_SECONDS
from crawlerproject.stores.index.ranks import Ranks
from crawlerproject.stores.rocks.store import LETTERS_FACT

if TYPE_CHECKING:
    from crawlerproject.crawl.session import Session
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.stores.crawl_dir import CrawlDir
    from crawlerproject.stores.protocols import FrontierStore

# Revisits queued in one change of the store: a few hundred KB.
_REVISITS_AT_A_TIME = 1000


def read_messages(store: FrontierStore, frontier: Frontier, now: float) -> None:
    """Read the messages that a fleet's workers had not read when its frontier was copied to this disk."""
    for partition in range(int(store.fact(LETTERS_FACT) or 0)):
        name = f"{LETTERS_FACT}/{partition}"
        packed = store.fact(name)
        for message in orjson.loads(packed) if packed else ():
            frontier.read(messages.unpack(orjson.dumps(message)), now)
        if packed:
            frontier.state.keep_fact(name, b"")


def queue_revisits(session: Session, folder: CrawlDir, recent_days: float, budget: int | None, now: float) -> int:
    """Queue the known pages whose visit is worth most now, at most ``budget``; how many there are."""
    ranked = folder.ranked_pages
    importance = by_rank(Ranks(ranked)) if ranked.is_file() else by_depth
    policy = RevisitPolicy(budget, recent_days * DAY_SECONDS, importance)
    chosen = due(session.store.pages(), session.learned.hosts.revisits.of, now, policy)
    queued = 0
    for start in range(0, len(chosen), _REVISITS_AT_A_TIME):
        some = chosen[start : start + _REVISITS_AT_A_TIME]
        queued += session.frontier.again((again(page, now) for page in some), now)
    return queued
