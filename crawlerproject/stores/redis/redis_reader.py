"""What a frontier in Redis answers: to the worker that may write it, or to commands that read the whole fleet's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.fleet_shares import SUM_FACTS, partition_of
from crawlerproject.stores.protocols import PageRecord, QueuedPage, host_of_fact
from crawlerproject.stores.redis.batch_writer import host_of_field
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import PartitionKeys, fleet_keys, partition_keys, payloads_key, worker_keys
from crawlerproject.stores.redis.redis_queues import QueuePlace, RedisQueues
from crawlerproject.stores.row_codec import (
    host_fingerprint_key,
    host_fingerprints_prefix,
    unpack_original,
    unpack_print,
    unpack_record,
)

FORMAT = 2
"""The layout of everything in Redis; 2: queues have bundles, page records are those of rocks.tables.FORMAT 2."""
_HOSTS_AT_A_TIME = 1000
# Fields in one answer.
_AT_A_TIME = 1000


class RedisReader:
    """Answers from Redis; blocking. Raises StorageError."""

    def __init__(self, link: RedisLink, crawl: str, worker: str, partitions: int) -> None:
        """``partitions``: how many the crawl has; ``worker``: whose facts are asked for."""
        self.link = link
        self.crawl = crawl
        self.worker = worker
        self.partitions = partitions
        self.shown: Collection[int] = range(partitions)  # whose pages and hosts are listed
        self._keys = [partition_keys(crawl, number) for number in range(partitions)]
        self.queues = RedisQueues(link, lambda host: self.of_host(host).queue_prefix.encode() + _packed(host))

    def partition(self, host: str) -> int:
        """The partition of a host key."""
        return partition_of(host, self.partitions)

    def keys_of(self, partition: int) -> PartitionKeys:
        """The keys of a partition."""
        return self._keys[partition]

    def of_host(self, host: str) -> PartitionKeys:
        """The keys of the partition of a host key."""
        return self._keys[self.partition(host)]

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before.

        ``hosts``, of the pages in the same order, tell where to look; without them every partition is asked.
        """
        groups: dict[int, list[int]] = {p: list(range(len(keys))) for p in range(self.partitions) if keys}
        if hosts is not None:
            groups = {}
            for index, host in enumerate(hosts):
                groups.setdefault(self.partition(host), []).append(index)
        calls = [Call("HMGET", [self._keys[p].pages], [keys[i] for i in group]) for p, group in groups.items()]
        found = [False] * len(keys)
        for group, values in zip(groups.values(), self.link.many(calls), strict=True):
            for index, value in zip(group, values, strict=True):
                found[index] = found[index] or value is not None
        return found

    def all_keys(self, partition: int, most: int) -> list[bytes] | None:
        """The keys of all known pages of a partition; None when they are more than ``most``."""
        key = self._keys[partition].pages
        found: list[bytes] | None = self.link.call("HKEYS", [key]) if self.link.call("HLEN", [key]) <= most else None
        return found

    def head(self, host: str, limit: int, after: QueuePlace | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        return self.queues.head(host, limit, after)

    def queue(self, host: str) -> Iterator[QueuedPage]:
        """The host's whole queue in order."""
        return self.queues.whole(host)

    def page(self, key: bytes, host: str | None = None) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first.

        Without its ``host`` every partition is asked.
        """
        if host is not None:
            value = self._field(self.of_host(host).pages, key)
            return unpack_record(value) if value else None
        values = self.link.many([Call("HGET", [keys.pages], [key]) for keys in self._keys])
        return next((unpack_record(value) for value in values if value), None)

    def records(self, keys: Sequence[bytes], hosts: Sequence[str]) -> list[PageRecord | None]:
        """As ``page`` for each of them, whose hosts are given in the same order."""
        calls = [Call("HGET", [self.of_host(host).pages], [key]) for key, host in zip(keys, hosts, strict=True)]
        return [unpack_record(value) if value else None for value in self.link.many(calls)]

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page of the partitions shown, and its key; some may come twice."""
        for partition in list(self.shown):
            for some in self.pages_of(partition):
                yield from some

    def pages_of(self, partition: int) -> Iterator[list[tuple[bytes, PageRecord]]]:
        """Every decided page of a partition, and its key, some at a time; one may come twice."""
        for some in self.scanned(self._keys[partition].pages):
            yield [(key, unpack_record(value)) for key, value in some.items() if value]

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        return self._field(self.of_host(host).hosts, _packed(host))

    def states_and_fields(self, hosts: Sequence[str], names: Sequence[str]) -> tuple[list[Any], list[Any]]:
        """The packed states of hosts, and what ``host_fields`` answers, in one round trip."""
        states = [(self.of_host(host).hosts, host) for host in hosts]
        fields = [(self.of_host(host_of_field(name)).robots, name) for name in names]
        found = self.link.many([Call("HGET", [key], [_packed(name)]) for key, name in (*states, *fields)])
        return found[: len(hosts)], found[len(hosts) :]

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        return self._field(self.of_host(origin.rpartition("://")[2]).robots, _packed(origin))

    def fact(self, name: str) -> bytes | None:
        """A fact of this worker, or of a host."""
        if host := host_of_fact(name):
            return self._field(self.of_host(host).robots, _packed(name))
        own = self._field(worker_keys(self.crawl, self.worker).state, _packed(f"fact:{name}"))
        if own is not None or name in SUM_FACTS.values():  # each worker has its own part of a sum
            return own
        # A crawl that began in RocksDB brought some.
        return self._field(worker_keys(self.crawl, "").state, _packed(f"fact:{name}"))

    def fact_of(self, worker: str, name: str) -> bytes | None:
        """A fact of one worker."""
        return self._field(worker_keys(self.crawl, worker).state, _packed(f"fact:{name}"))

    def workers_ever(self) -> list[str]:
        """Those that have joined, at work or not, but for those that were given up; by name."""
        return sorted(name.decode() for name in self.link.call("HKEYS", [fleet_keys(self.crawl).incarnations]))

    def host_fields(self, names: Sequence[str]) -> list[bytes | None]:
        """Robots records (by origin) and facts of hosts. One round trip."""
        return self.states_and_fields((), names)[1]

    def hosts_with_work(self) -> Iterator[str]:
        """Every host of the partitions shown with at least one queued row, each once."""
        for partition in list(self.shown):
            yield from (name for name, _ in self.hosts_of(partition))

    def hosts_of(self, partition: int) -> Iterator[tuple[str, bytes | None]]:
        """Every host of a partition with queued rows, and its packed state."""
        keys = self._keys[partition]
        names = sorted(self.link.call("SMEMBERS", [keys.work]))
        for start in range(0, len(names), _HOSTS_AT_A_TIME):
            some = names[start : start + _HOSTS_AT_A_TIME]
            states = self.link.call("HMGET", [keys.hosts], *some)
            for name, packed in zip(some, states, strict=True):
                yield name.decode("utf-8", "surrogatepass"), packed

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1."""
        [found], _ = self.originals_and_fingerprints([digest], ())
        return found

    def originals_and_fingerprints(
        self, digests: Sequence[bytes], hosts: Sequence[str]
    ) -> tuple[list[Original | None], list[list[bytes]]]:
        """The first captures of payloads, and the rows of hosts' fingerprints (``unpack_print``). One round trip."""
        calls = [Call("HGET", [payloads_key(self.crawl, digest)], [digest]) for digest in digests]
        calls += [self._range(host, host_fingerprints_prefix(host)) for host in hosts]
        found = self.link.many(calls)
        originals = [unpack_original(value) if value else None for value in found[: len(digests)]]
        return originals, found[len(digests) :]

    def named(self, prints: Sequence[tuple[str, int]]) -> list[bytes | None]:
        """The keys of the pages with these hosts and fingerprints. One round trip."""
        calls = [self._range(host, host_fingerprint_key(host, value)) for host, value in prints]
        return [unpack_print(rows[-1])[1] if rows else None for rows in self.link.many(calls)]

    def _range(self, host: str, prefix: bytes) -> Call:
        """Of the rows that begin with ``prefix``."""
        end = (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix) + 1, "big")[1:]
        last = b"+" if not any(end) else b"(" + end
        return Call("ZRANGEBYLEX", [self.of_host(host).prints], [b"[" + prefix, last])

    def scanned(self, key: str, prefix: str = "") -> Iterator[dict[bytes, bytes]]:
        """The fields of a hash whose names begin with ``prefix``, some at a time; one may come twice."""
        cursor, match = 0, [b"MATCH", f"{prefix}*"] if prefix else []
        while True:
            answer = self.link.call("HSCAN", [key], cursor, *match, b"COUNT", _AT_A_TIME)
            yield answer[1]  # redis makes a dictionary of it
            if not (cursor := int(answer[0])):
                break

    def _field(self, key: str, name: bytes) -> bytes | None:
        value: bytes | None = self.link.call("HGET", [key], name)
        return value


def _packed(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


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

    def forget_robots(self, is_gone: Callable[[str], bool]) -> None:
        """Remove the robots.txt of such origins; the crawl asks for it again where it needs one."""
        for keys in self._keys:
            if gone := [name for name, _ in self._fields(keys.robots) if "://" in name and is_gone(name)]:
                self.link.call("HDEL", [keys.robots], *map(_packed, gone))

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
        found: dict[bytes, bytes] = {}
        for some in self.scanned(key, prefix):
            found |= some
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


def require_format(link: RedisLink, crawl: str, written: int) -> None:
    """Raises OperatorError for a crawl of another layout than ours."""
    if written != FORMAT:
        age, what = ("a newer", "use that version") if written > FORMAT else ("an older", "finish it with that version")
        raise OperatorError(
            f"The crawl {crawl!r} at {link.place} was written by {age} version of this crawler; "
            f"{what}, or use another FLEET_CRAWL."
        )
