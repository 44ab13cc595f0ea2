"""What a crawl begins with beside its seeds: known pages to visit again, unread messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from crawlerproject.config.crawl_dir import whole_crawl
from crawlerproject.frontier import messages
from crawlerproject.frontier.learned.revisit_queue import RevisitPolicy, again, by_depth, by_rank, due
from crawlerproject.rules.revisits.refetch import DAY_SECONDS
from crawlerproject.stores.index.ranks import Ranks
from crawlerproject.stores.rocks.store import LETTERS_FACT

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.crawl.session import Session
    from crawlerproject.frontier.frontier import Frontier
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


def revisit_policy(settings: BaseSettings, budget: int | None) -> RevisitPolicy:
    """Which known pages are visited again, by the settings and by what ``scrapy rank`` has found in the whole crawl."""
    ranked = whole_crawl(settings).ranked_pages
    importance = by_rank(Ranks(ranked)) if ranked.is_file() else by_depth
    return RevisitPolicy(budget, settings.getfloat("RECRAWL_RECENT_DAYS") * DAY_SECONDS, importance)


def queue_revisits(session: Session, policy: RevisitPolicy, now: float) -> int:
    """Queue the known pages whose visit is worth most now; how many there are."""
    chosen = due(session.store.pages(), session.learned.hosts.revisits.of, now, policy)
    queued = 0
    for start in range(0, len(chosen), _REVISITS_AT_A_TIME):
        some = chosen[start : start + _REVISITS_AT_A_TIME]
        queued += session.frontier.again((again(page, now) for page in some), now)
    return queued
