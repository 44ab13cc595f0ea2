"""Pools under test, and where they connect to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scrapy.settings import Settings

from crawlerproject.errors import FetchError
from crawlerproject.fetch.pool import Endpoint, Limits, Pool
from crawlerproject.fetch.tls import Certificates
from crawlerproject.settings import OURS

LIMITS = Limits.from_settings(Settings(OURS))
GET = b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n"


def pool_with(ca_file: str = "", **limits: Any) -> Pool:
    """A pool with some limits of its own."""
    return Pool(replace(LIMITS, **limits), Certificates(ca_file))


def at(port: int, host: str = "site.test", tls: bool = False) -> Endpoint:
    """An endpoint on loopback."""
    return Endpoint("127.0.0.1", port, host, tls)


async def failing(pool: Pool, endpoint: Endpoint) -> FetchError:
    """The error a fetch ends with."""
    with pytest.raises(FetchError) as failed:
        await pool.fetch(endpoint, GET)
    pool.close()
    return failed.value
