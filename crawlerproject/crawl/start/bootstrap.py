"""What a crawl begins with beside its seeds: known pages to visit again, letters nobody had read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from crawlerproject.frontier import messages as messages
from crawlerproject.frontier.learned.revisit_queue import RevisitPolicy, again, by_depth, by_rank, due
from crawlerproject.rules.revisits.refetch import DAY_SECONDS
from crawlerproject.stores.index.ranks import Ranks
from crawlerproject.stores.rocks.store import LETTERS_FACT

if TYPE_CHECKING:
    from crawlerproject.crawl.crawl import Crawl

# Revisits queued in one change of the store: a few hundred KB.
_REVISITS_AT_A_TIME = 1000


def read_messages(crawl: Crawl) -> None:
    """What a fleet's workers wrote to each other and nobody had read when its frontier was copied to this disk."""
    store = crawl.store
    for partition in range(int(store.fact(LETTERS_FACT) or 0)):
        name = f"{LETTERS_FACT}/{partition}"
        packed = store.fact(name)
        for message in orjson.loads(packed) if packed else ():
            crawl.frontier.read(messages.unpack(orjson.dumps(message)), crawl.now())
        if packed:
            crawl.frontier.state.keep_fact(name, b"")


def queue_revisits(crawl: Crawl, budget: int | None) -> int:
    """Queue the known pages whose visit is worth most now, at most ``budget``; how many there are."""
    now = crawl.now()
    recent = crawl.crawler.settings.getfloat("RECRAWL_RECENT_DAYS") * DAY_SECONDS
    ranked = crawl.folder.ranked_pages
    importance = by_rank(Ranks(ranked)) if ranked.is_file() else by_depth
    pages, hosts = crawl.store.pages(), crawl.learned.revisits.of
    chosen = due(pages, hosts, now, RevisitPolicy(budget, recent, importance))
    queued = 0
    for start in range(0, len(chosen), _REVISITS_AT_A_TIME):
        some = chosen[start : start + _REVISITS_AT_A_TIME]
        queued += crawl.frontier.again((again(page, now) for page in some), now)
    return queued
