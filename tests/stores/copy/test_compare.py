"""A copied frontier is believed only when both sides are the same: each way in which they can differ is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.copy.compare import HeldStore, RedisCrawl, compare
from crawlerproject.stores.copy.copying import to_redis
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.keys import payloads_key
from crawlerproject.stores.redis.redis_store import RedisStore
from crawlerproject.stores.rocks.rocks_tables import Tables, open_to_write
from tests.commands.test_state import frontier
from tests.stores.conformance import row
from tests.stores.redis_crawls import LEASE_MS
from tests.stores.redis_servers import RedisServer

HOSTS, PAGES = 40, 40  # so few that every page is looked at whole
HOST = "h0.test"


class Sides(NamedTuple):
    """A frontier in RocksDB, and its copy."""

    rocks: Tables
    redis: HeldStore


@pytest.fixture
def sides(server: RedisServer, tmp_path: Path) -> Iterator[Sides]:
    """Just copied, and the same."""
    frontier(tmp_path / "frontier", PAGES)
    name = tmp_path.name
    to_redis(tmp_path / "frontier", "now", RedisCrawl(server.url, name, 4, 0), lambda: None, lambda word: None)
    with closing(RedisLink(server.url)) as link, closing(open_to_write(tmp_path / "frontier")) as rocks:
        yield Sides(rocks, HeldStore(link, name, 0))


def hash_of(store: HeldStore, kind: str) -> str:
    """The hash in Redis that has the host, or its pages."""
    return str(getattr(store.keys_of(store.partition(HOST)), kind))


def first_field(store: HeldStore, key: str) -> bytes:
    """One that is there."""
    return next(iter(dict(store.fields(key))))


def test_what_is_the_same_is_counted(sides: Sides) -> None:
    """Every kind of row."""
    copied = compare(*sides)
    assert copied.counts == {
        "hosts": HOSTS,
        "known URLs": HOSTS * PAGES,
        "pages": HOSTS * PAGES // 2,
        "queued URLs": HOSTS * PAGES // 2,
        "robots.txt and facts about hosts": 2 * HOSTS,
        "fingerprints": HOSTS * PAGES // 2,
        "payloads": HOSTS * PAGES // 2,
    }
    assert copied.looked_at == HOSTS + HOSTS * PAGES // 2


def without_a_host(sides: Sides) -> None:
    sides.redis.link.call("HDEL", [hash_of(sides.redis, "hosts")], HOST)


def without_a_page(sides: Sides) -> None:
    key = hash_of(sides.redis, "pages")
    sides.redis.link.call("HDEL", [key], first_field(sides.redis, key))


def without_robots(sides: Sides) -> None:
    key = hash_of(sides.redis, "robots")
    sides.redis.link.call("HDEL", [key], first_field(sides.redis, key))


def with_another_row(sides: Sides) -> None:
    sides.redis.apply(Changes(queued=[row(HOST, 1)]))


def without_a_payload(sides: Sides) -> None:
    places = (payloads_key(sides.redis.crawl, bytes([number])) for number in range(256))
    key = next(each for each in places if sides.redis.link.call("HLEN", [each]))
    sides.redis.link.call("HDEL", [key], first_field(sides.redis, key))


def with_another_state_of_a_host(sides: Sides) -> None:
    sides.redis.link.call("HSET", [hash_of(sides.redis, "hosts")], HOST, b"another")


def with_another_page(sides: Sides) -> None:
    (key, _), (_, other) = list(sides.rocks.rows(tables.PAGES))[:2]
    sides.rocks.put([(tables.PAGES, key, other)])


@pytest.mark.parametrize(
    ("differ", "words"),
    [
        (without_a_host, "40 hosts in RocksDB, 39 in Redis"),
        (without_a_page, "(1,600 known URLs in RocksDB, 1,599|800 pages in RocksDB, 799) in Redis"),
        (without_robots, "80 robots.txt and facts about hosts in RocksDB, 79 in Redis"),
        (with_another_row, "(1,600 known URLs in RocksDB, 1,601|800 queued URLs in RocksDB, 801) in Redis"),
        (without_a_payload, "800 payloads in RocksDB, 799 in Redis"),
        (with_another_state_of_a_host, "the host h0.test"),
        (with_another_page, r"http://h\d+\.test/\d+"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_difference_is_one_sentence(sides: Sides, differ: Callable[[Sides], None], words: str) -> None:
    """What differs, and what to do."""
    differ(sides)

    with pytest.raises(OperatorError, match=rf"not the same as what was copied: {words}\. Remove it and copy again\.$"):
        compare(*sides)


def test_a_worker_that_is_at_work_holds_up_a_copy(sides: Sides) -> None:
    """Nothing is read meanwhile."""
    place, name = sides.redis.link.place, sides.redis.crawl
    sides.redis.release(list(sides.redis.held))
    with closing(RedisStore(RedisLink(place), name, "w1", 4)) as worker, closing(RedisLink(place)) as link:
        worker.begin("life")
        assert worker.acquire(0, LEASE_MS) is not None
        with pytest.raises(OperatorError, match="A worker is at work"):
            HeldStore(link, name, 0)
