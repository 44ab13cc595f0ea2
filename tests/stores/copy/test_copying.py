"""A copied frontier is believed only when both sides are the same: each way in which they can differ is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.repartition.fact_rules import join
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.copy.copying import RedisCrawl, compare, to_redis, to_rocks
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.keys import fleet_keys, worker_keys
from crawlerproject.stores.rocks.rocks_tables import Tables, open_to_write
from tests.commands.test_state import frontier
from tests.stores.redis_crawls import LEASE_MS
from tests.stores.redis_servers import RedisServer

HOSTS, PAGES = 40, 40
HOST = b"h0.test"


class Sides(NamedTuple):
    """A frontier in RocksDB, and its copy, all of which is held."""

    rocks: Tables
    journals: PartitionJournals


@pytest.fixture
def sides(server: RedisServer, tmp_path: Path) -> Iterator[Sides]:
    """Just copied, and the same."""
    frontier(tmp_path / "frontier", PAGES)
    name = tmp_path.name
    to_redis(tmp_path / "frontier", "now", RedisCrawl(server.url, name, 4, 0), lambda: None, lambda word: None)
    journals = PartitionJournals(RedisLink(server.url), name, "looks", 0)
    assert all(journals.acquire(partition, LEASE_MS) for partition in range(4))
    with closing(journals), closing(open_to_write(tmp_path / "frontier")) as rocks:
        yield Sides(rocks, journals)


def test_what_is_the_same_is_counted(sides: Sides) -> None:
    """Every kind of row."""
    copied = compare(*sides)
    assert copied.counts == {
        "hosts": HOSTS,
        "known URLs": HOSTS * PAGES,
        "pages": HOSTS * PAGES // 2,
        "queued URLs": HOSTS * PAGES // 2,
        "robots.txt": HOSTS,
        "fingerprints": HOSTS * PAGES // 2,
    }
    assert copied.looked_at == HOSTS + HOSTS * PAGES // 2


def first(rocks: Tables, table: str) -> tuple[bytes, bytes]:
    """A row."""
    return next(iter(rocks.rows(table)))


def without(rocks: Tables, table: str) -> None:
    """Remove a row."""
    batch = rocks.batch()
    batch.delete(table, first(rocks, table)[0])
    rocks.write(batch)


def without_a_host(sides: Sides) -> None:
    without(sides.rocks, tables.HOSTS)


def without_a_page(sides: Sides) -> None:
    without(sides.rocks, tables.PAGES)


def without_robots(sides: Sides) -> None:
    without(sides.rocks, tables.ROBOTS)


def without_a_row(sides: Sides) -> None:
    without(sides.rocks, tables.QUEUE)


def with_another_state_of_a_host(sides: Sides) -> None:
    sides.rocks.put([(tables.HOSTS, HOST, b"another")])


def with_another_page(sides: Sides) -> None:
    (key, _), (_, other) = list(sides.rocks.rows(tables.PAGES))[:2]
    sides.rocks.put([(tables.PAGES, key, other)])


@pytest.mark.parametrize(
    ("differ", "words"),
    [
        (without_a_host, "39 hosts in RocksDB, 40 in Redis"),
        (without_a_page, "799 pages in RocksDB, 800 in Redis"),
        (without_robots, "39 robots.txt in RocksDB, 40 in Redis"),
        (without_a_row, "799 queued URLs in RocksDB, 800 in Redis"),
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


def test_a_worker_that_is_at_work_holds_up_a_copy(sides: Sides, tmp_path: Path) -> None:
    """Nothing is read meanwhile."""
    source = RedisCrawl(sides.journals.link.place, sides.journals.crawl)
    with pytest.raises(OperatorError, match="A worker is at work"):
        to_rocks(source, tmp_path / "back", join, lambda: None, lambda word: None)


def test_facts_of_all_workers_come_back_as_one(sides: Sides, tmp_path: Path) -> None:
    """By the rules of moves between workers: counts are sums, lists are whole."""
    link, crawl = sides.journals.link, sides.journals.crawl
    sides.journals.release(list(sides.journals.held))
    for worker, pages, hosts in (("one", 3, "a.test"), ("two", 4, "b.test a.test")):
        link.call("HSET", [fleet_keys(crawl).incarnations], worker, "1")
        facts = {"totals": f"[{pages},10,0,{pages}]", "scope": hosts, "websub": f'[["{hosts}"]]'}
        link.call(
            "HSET",
            [worker_keys(crawl, worker).state],
            *(part for name, value in facts.items() for part in (f"fact:{name}", value)),
        )
    to_rocks(RedisCrawl(link.place, crawl), tmp_path / "back", join, lambda: None, lambda word: None)

    with closing(open_to_write(tmp_path / "back")) as rocks:
        assert rocks.get(tables.FACTS, b"totals") == b"[7,20,0,3]"
        assert {b"a.test", b"b.test"} <= {*(rocks.get(tables.FACTS, b"scope") or b"").split()}
        assert rocks.get(tables.FACTS, b"websub") == b'[["b.test a.test"],["a.test"]]'
