"""What Redis knows of a worker that does not come back, by the folder that it left."""

from __future__ import annotations

import json
import uuid

from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.redis.batch_scripts import BEGIN
from crawlerproject.stores.redis.client import SCHEMES
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.keys import worker_keys


def fact_of_worker(folder: CrawlDir, url: str, name: str) -> bytes | None:
    """A fact of the worker whose folder this is. A process that still goes by its name can commit nothing from now on.

    Raises OperatorError when ``url`` is no Redis or the folder no worker's.
    """
    if not url.startswith(SCHEMES):
        raise OperatorError(f"{folder} is a worker's folder: give the crawl's Redis with -s STATE_URL=redis://…")
    try:
        left = json.loads(folder.worker.read_text())
        keys = worker_keys(left["crawl"], left["worker"])
    except (OSError, ValueError, KeyError) as error:
        raise OperatorError(f"{folder.worker} cannot be read ({error}); it names the worker.") from error
    link = RedisLink(url)
    try:
        link.call(BEGIN, list(keys[:3]), uuid.uuid4().hex)
        value: bytes | None = link.call("HGET", [keys.state], f"fact:{name}")
        return value
    finally:
        link.close()
