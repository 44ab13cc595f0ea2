"""The frontier of a whole fleet, read only: every partition, held by any worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.keys import fleet_keys
from crawlerproject.stores.redis.reader import RedisReader, require_format

# Fields in one answer.
_AT_A_TIME = 1000


class ActiveWorker(NamedTuple):
    """A worker that has joined and not left, and what it said last."""

    name: str
    seconds_ago: float  # that it said it, by the store's clock
    info: dict[str, Any]  # partitions, quiet, incarnation, pages, bytes, errors


class RedisView(RedisReader):
    """As ``FrontierView``, of a frontier in Redis: as of the last batches that were written."""

    def __init__(self, url: str, crawl: str) -> None:
        """Raises OperatorError when there is no such crawl."""
        link = RedisLink(url)
        super().__init__(link, crawl, "", _agreed_partitions(link, crawl))

    def __enter__(self) -> RedisView:
        return self

    def __exit__(self, *exception: object) -> None:
        self.link.close()

    def hosts(self) -> Iterator[tuple[str, bytes]]:
        """Every host ever met and its packed state."""
        for keys in self._keys:
            yield from self._fields(keys.hosts)

    def facts(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every fact about a host whose name begins with ``prefix``."""
        for keys in self._keys:
            yield from self._fields(keys.robots, prefix)

    def workers(self) -> list[ActiveWorker]:
        """Those that have joined and not left, by name."""
        keys = fleet_keys(self.crawl)
        names = sorted(self.link.call("ZRANGE", [keys.seen], 0, -1))
        if not names:
            return []
        seconds, micros = self.link.call("TIME")
        seen = self.link.call("ZMSCORE", [keys.seen], *names)
        said = self.link.call("HMGET", [keys.info], *names)
        now = int(seconds) + int(micros) / 1e6
        return [
            ActiveWorker(name.decode(), max(0.0, now - float(at) / 1000), orjson.loads(info or b"{}"))
            for name, at, info in zip(names, seen, said, strict=True)
            if at is not None
        ]

    def _fields(self, key: str, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        cursor, match = 0, [b"MATCH", f"{prefix}*"] if prefix else []
        found: dict[bytes, bytes] = {}  # a field may come twice
        while True:
            answer = self.link.call("HSCAN", [key], cursor, *match, b"COUNT", _AT_A_TIME)
            cursor = int(answer[0])
            found |= answer[1]  # redis makes a dictionary of it
            if not cursor:
                break
        for name in sorted(found):
            yield name.decode("utf-8", "surrogatepass"), found[name]


def _agreed_partitions(link: RedisLink, crawl: str) -> int:
    try:
        written, agreed = link.call("HMGET", [fleet_keys(crawl).facts], "format", "partitions")
    except StorageError as error:
        raise OperatorError(f"The crawl {crawl!r} cannot be read: {error}.") from error
    if agreed is None:
        raise OperatorError(
            f"There is no crawl {crawl!r} at {link.place}; set STATE_URL and FLEET_CRAWL to those of one."
        )
    require_format(link, crawl, int(written))
    return int(agreed)
