"""Whether a crawl has several workers, and what the settings say of this one."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from crawlerproject.stores.redis.client import SCHEMES

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def shared(settings: BaseSettings) -> bool:
    """Whether the frontier is in Redis and may have several workers."""
    return str(settings["STATE_URL"]).startswith(SCHEMES)


def worker_name(settings: BaseSettings) -> str:
    """What this worker is called: FLEET_WORKER, or the machine's name."""
    return str(settings["FLEET_WORKER"] or socket.gethostname())


def answer_seconds(settings: BaseSettings) -> float:
    """The longest that a request, or a page in the browser, may take."""
    fetch: float = settings.getfloat("FETCH_TIMEOUT_SECONDS")
    render: float = settings.getfloat("RENDER_TIMEOUT_SECONDS")
    return fetch if settings["RENDER"] == "never" else max(fetch, render)
