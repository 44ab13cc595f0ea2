"""Texts of all hosts in Redis: found as by the index on disk, bounded, and known to every worker at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlerproject.frontier.learned.duplicates import Duplicate, DuplicateIndex, NearBits
from crawlerproject.stores.protocols import Changes, Fingerprint, NearText, PageRecord, Text
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.texts import BLOCKS, RedisTexts
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.stores.conformance import turned
from tests.stores.redis_crawls import numbers
from tests.stores.redis_servers import RedisServer


@pytest.fixture(params=["server", "cluster"])
def link(request: pytest.FixtureRequest) -> Iterator[RedisLink]:
    """One server, or three in a cluster."""
    servers: RedisServer | list[RedisServer] = request.getfixturevalue(request.param)
    link = RedisLink(servers[0].url if isinstance(servers, list) else servers.url)
    yield link
    link.close()


def texts_in(link: RedisLink, most: int = 10 * BLOCKS) -> RedisTexts:
    """Those of a new crawl."""
    return RedisTexts(link, f"texts-{next(numbers)}", most)


def text(value: int, number: int = 0) -> Text:
    """Of a page with this number."""
    return Text(value, number.to_bytes(24, "big"), f"http://h{number % 7}.test/ü/{number}")


def clusters(count: int, seed: int) -> list[Text]:
    """Texts around some centres, up to five bits apart, in an order of chance."""
    chance = random.Random(seed)
    centres = [chance.getrandbits(64) for _ in range(count)] + [0, 2**64 - 1]
    values = [turned(centre, bits, chance) for centre in centres for bits in (0, 1, 1, 2, 3, 3, 5)]
    chance.shuffle(values)
    return [text(value, number) for number, value in enumerate(values)]


def on_disk(texts: list[Text], folder: Path) -> list[Duplicate | None]:
    """What a crawl alone says of these pages, one after the other."""
    store = RocksStore(folder)
    index = DuplicateIndex(store, NearBits(0, 3))
    found = []
    for value, key, url in texts:
        made = Fingerprint(f"host-of-{key.hex()}", value, key)
        found.append(index.near(made))
        changes = Changes(pages=[(key, PageRecord(url, "fetched", 200, 0.0))])
        if found[-1] is None:
            index.add_fingerprint(made, url, changes)
        store.apply(changes)
        index.stored(changes, [])
    store.close()
    return found


def test_what_is_added_again_is_there_once(link: RedisLink) -> None:
    """An answer may get lost; a row that lies across two others is none."""
    texts = texts_in(link, most=BLOCKS * 3)
    one, two = text(0x0000_0102_0304_0506, 1), text(0x0000_0708_0102_0304, 2)
    astride = text(0x0000_0304_0506_0708, 3)  # the end of one and the beginning of the other
    for _ in range(3):
        texts.exchange([one, two, one], [], 3)
    texts.exchange([astride], [], 3)

    found = texts.exchange([], [page.value for page in (one, two, astride)], 0)
    assert found == [[NearText(0, page.key, page.url)] for page in (one, two, astride)]


def test_the_oldest_of_a_block_are_forgotten(link: RedisLink) -> None:
    """A block has so many rows at most, and the pages of these; a later start may know fewer."""
    texts = texts_in(link, most=BLOCKS * 4)
    pages = [text(0xABCD << 48 | turned(0, 20, random.Random(seed)) >> 16, seed) for seed in range(10)]
    for page in pages:
        texts.exchange([page], [], 3)
    assert [bool(near) for near in texts.exchange([], [page.value for page in pages], 0)] == [False] * 6 + [True] * 4

    fewer = RedisTexts(link, texts._crawl, BLOCKS)
    fewer.exchange([text(0xABCD << 48, 99)], [], 3)
    assert fewer.exchange([], [page.value for page in pages], 0) == [[]] * 10
    assert fewer.exchange([], [0xABCD << 48], 0) == [[NearText(0, (99).to_bytes(24, "big"), text(0, 99).url)]]
