"""Servers of Redis for a module, and crawls in them for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crawlerproject.stores.redis.journals import PartitionJournals
from tests.stores.redis_crawls import opened
from tests.stores.redis_servers import RedisServer, redis_cluster, redis_server, valkey_program


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One server for the module."""
    with redis_server(tmp_path_factory.mktemp("redis"), "--appendfsync", "no") as started:
        yield started


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    """Three servers in a cluster."""
    with redis_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One Valkey for the module."""
    with redis_server(tmp_path_factory.mktemp("valkey"), "--appendfsync", "no", program=valkey_program()) as started:
        yield started


@pytest.fixture
def store(server: RedisServer) -> Iterator[PartitionJournals]:
    """A new crawl, all of it held."""
    made = opened(server.url)
    yield made
    made.close()


@pytest.fixture
def rival(server: RedisServer, store: PartitionJournals) -> Iterator[PartitionJournals]:
    """Another worker of the same crawl that holds nothing."""
    made = opened(server.url, "two", store.crawl, take=False)
    yield made
    made.close()


@pytest.fixture
def spread(cluster: list[RedisServer]) -> Iterator[PartitionJournals]:
    """A new crawl in a cluster, all of it held: its batches are decided before they are written."""
    made = opened(cluster[0].url)
    yield made
    made.close()


@pytest.fixture
def spread_rival(cluster: list[RedisServer], spread: PartitionJournals) -> Iterator[PartitionJournals]:
    """Another worker of the same crawl that holds nothing."""
    made = opened(cluster[0].url, "two", spread.crawl, take=False)
    yield made
    made.close()
