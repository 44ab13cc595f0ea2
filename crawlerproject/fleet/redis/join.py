"""A worker's part of a fleet, made from the settings."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from crawlerproject.config.crawl_kind import answer_seconds, worker_name
from crawlerproject.errors import OperatorError, StorageError, StoreForgot
from crawlerproject.fleet.redis.identity import Identity
from crawlerproject.fleet.redis.worker import MOST_APART_SECONDS, Fleet, FleetTimes
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.redis.buffer.store import BufferedStore
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.forgetting import recognise
from crawlerproject.stores.redis.membership import RedisFleet
from crawlerproject.stores.redis.store import RedisStore

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def join(settings: BaseSettings, folder: CrawlDir, *, accept_loss: bool) -> Fleet:
    """Connect; ``Fleet.begin`` makes it a member. Raises OperatorError.

    ``accept_loss``: Redis may know less than it has answered for to this worker, which is StoreForgot otherwise.
    """
    crawl, worker = str(settings["FLEET_CRAWL"]), worker_name(settings)
    lease_seconds = settings.getfloat("FLEET_LEASE_SECONDS")
    link = RedisLink(settings["STATE_URL"])
    identity = Identity(folder.worker, crawl, worker)
    try:
        # Before anything is written: a start must not make a crawl of this name where its own has been lost.
        answered = recognise(link, crawl, worker, identity.answered(), accept=accept_loss)
    except StoreForgot:
        raise
    except StorageError as error:
        raise OperatorError(f"The crawl {crawl!r} cannot be opened: {error}.") from error
    store = RedisStore(link, crawl, worker, settings.getint("FLEET_PARTITIONS"))
    return Fleet(
        BufferedStore(store),
        RedisFleet(link, crawl, worker, int(lease_seconds * 1000), answered.crawl_id),
        identity,
        FleetTimes(
            lease_seconds, answer_seconds(settings), settings.getfloat("FLEET_MAX_DRIFT_SECONDS", MOST_APART_SECONDS)
        ),
        random.Random(),
    )
