"""A worker's part of a fleet, made from the settings."""

from __future__ import annotations

import random
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.fleet.worker import Fleet
from crawlerproject.stores.redis.buffered_store import BufferedStore
from crawlerproject.stores.redis.client import SCHEMES
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.membership import RedisFleet
from crawlerproject.stores.redis.store import RedisStore
from crawlerproject.stores.redis.worker_identity import LIFE_FILE

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def shared(settings: BaseSettings) -> bool:
    """Whether the frontier is in Redis and may have several workers."""
    return str(settings["STATE_URL"]).startswith(SCHEMES)


def worker_name(settings: BaseSettings) -> str:
    """What this worker is called: FLEET_WORKER, or the machine's name."""
    return str(settings["FLEET_WORKER"] or socket.gethostname())


def answer_seconds(settings: BaseSettings) -> float:
    """No request takes longer, nor a page in the browser."""
    fetch: float = settings.getfloat("FETCH_TIMEOUT_SECONDS")
    render: float = settings.getfloat("RENDER_TIMEOUT_SECONDS")
    return fetch if settings["RENDER"] == "never" else max(fetch, render)


def join(settings: BaseSettings, folder: Path) -> Fleet:
    """Connect; ``Fleet.begin`` makes it a member. Raises OperatorError."""
    crawl, worker = str(settings["FLEET_CRAWL"]), worker_name(settings)
    lease_seconds = settings.getfloat("FLEET_LEASE_SECONDS")
    link = RedisLink(settings["STATE_URL"])
    store = RedisStore(link, crawl, worker, settings.getint("FLEET_PARTITIONS"))
    return Fleet(
        BufferedStore(store),
        RedisFleet(link, crawl, worker, int(lease_seconds * 1000)),
        folder / LIFE_FILE,
        lease_seconds=lease_seconds,
        answer_seconds=answer_seconds(settings),
        rng=random.Random(),
    )
