"""What can be asked of a crawl in Redis, by whoever holds its partitions or only looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.partitions import partition_of
from crawlerproject.stores.host_facts import host_of_fact
from crawlerproject.stores.protocols import PageRecord, QueuedPage
from crawlerproject.stores.redis.batch import host_of_field
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import PartitionKeys, partition_keys, payloads_key, worker_keys
from crawlerproject.stores.redis.queue_members import NOWHERE, Place, behind, in_order, place_of
from crawlerproject.stores.row_codec import host_fingerprints_prefix, unpack_original, unpack_print, unpack_record

_HOSTS_AT_A_TIME = 1000
# Pages looked at in one call.
_PAGES_AT_A_TIME = 1000
_MEMBERS_AT_A_TIME = 1000


class RedisReader:
    """Answers from Redis; blocking. Raises StorageError."""

    def __init__(self, link: RedisLink, crawl: str, worker: str, partitions: int) -> None:
        """``partitions``: how many the crawl has; ``worker``: whose facts are asked for."""
        self.link = link
        self.crawl = crawl
        self.worker = worker
        self.partitions = partitions
        self.held: dict[int, int] = {}  # partition -> token
        self._worker_keys = worker_keys(crawl, worker)
        self._keys = [partition_keys(crawl, number) for number in range(partitions)]

    def partition(self, host: str) -> int:
        """The partition of a host key."""
        return partition_of(host, self.partitions)

    def keys_of(self, partition: int) -> PartitionKeys:
        """The keys of a partition."""
        return self._keys[partition]

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

    def head(self, host: str, limit: int, after: Place | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        behind = (row for row in self.queue(host) if after is None or place_of(row) > after)
        return list(islice(behind, limit))

    def queue(self, host: str) -> Iterator[QueuedPage]:
        """The host's whole queue in order."""
        return in_order(host, self.members(self._queue(host)))

    def members(self, key: str | bytes) -> Iterator[bytes]:
        """Every member of a sorted set whose scores are all 0, in order."""
        start = b"-"
        while found := self.link.call("ZRANGEBYLEX", [key], start, b"+", b"LIMIT", 0, _MEMBERS_AT_A_TIME):
            yield from found
            start = b"(" + found[-1]

    def heads(self, hosts: Mapping[str, Place], limit: int) -> list[list[bytes]]:
        """The first members of many hosts' queues behind a place of each, in one call."""
        starts = [(self._queue(host), b"-" if start == NOWHERE else behind(start)) for host, start in hosts.items()]
        return self.link.many([Call("ZRANGEBYLEX", [key], [start, b"+", b"LIMIT", 0, limit]) for key, start in starts])

    def page(self, key: bytes, host: str | None = None) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first.

        Without its ``host`` every partition is asked.
        """
        if host is not None:
            value = self._field_bytes(self._keys[self.partition(host)].pages, key)
            return unpack_record(value) if value else None
        values = self.link.many([Call("HGET", [keys.pages], [key]) for keys in self._keys])
        return next((unpack_record(value) for value in values if value), None)

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page of the partitions held, and its key; some may come twice."""
        for partition in list(self.held):
            cursor = 0
            while True:
                answer = self.link.call("HSCAN", [self._keys[partition].pages], cursor, b"COUNT", _PAGES_AT_A_TIME)
                cursor, fields = int(answer[0]), dict(answer[1])  # redis makes a dictionary of it
                yield from ((key, unpack_record(value)) for key, value in fields.items() if value)
                if not cursor:
                    break

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        return self._field(self._keys[self.partition(host)].hosts, host)

    def states(self, hosts: Sequence[str]) -> list[bytes | None]:
        """The packed states of many hosts."""
        return self.link.many(self._state_calls(hosts))

    def _state_calls(self, hosts: Sequence[str]) -> list[Call]:
        return [
            Call("HGET", [self._keys[self.partition(host)].hosts], [host.encode("utf-8", "surrogatepass")])
            for host in hosts
        ]

    def states_and_fields(self, hosts: Sequence[str], names: Sequence[str]) -> tuple[list[Any], list[Any]]:
        """As ``states`` and ``host_fields``, in one round trip."""
        found = self.link.many([*self._state_calls(hosts), *self._field_calls(names)])
        return found[: len(hosts)], found[len(hosts) :]

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        return self._field(self._keys[self.partition(origin.rpartition("://")[2])].robots, origin)

    def fact(self, name: str) -> bytes | None:
        """A fact of this worker, or of a host."""
        if host := host_of_fact(name):
            return self._field(self._keys[self.partition(host)].robots, name)
        own = self._field(self._worker_keys.state, f"fact:{name}")
        # A crawl that began in RocksDB brought some.
        return own if own is not None else self._field(worker_keys(self.crawl, "").state, f"fact:{name}")

    def host_fields(self, names: Sequence[str]) -> list[bytes | None]:
        """Robots records (by origin) and facts of hosts. One round trip."""
        return self.link.many(self._field_calls(names))

    def _field_calls(self, names: Sequence[str]) -> list[Call]:
        keys = [self._keys[self.partition(host_of_field(name))].robots for name in names]
        fields = [name.encode("utf-8", "surrogatepass") for name in names]
        return [Call("HGET", [key], [field]) for key, field in zip(keys, fields, strict=True)]

    def hosts_with_work(self) -> Iterator[str]:
        """Every host of the partitions held with at least one queued row, each once."""
        for partition in list(self.held):
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

    def prints_of(self, host: str) -> list[tuple[int, bytes]]:
        """The fingerprints of a host and the pages that have them."""
        prefix = host_fingerprints_prefix(host)
        key = self._keys[self.partition(host)].prints
        end = (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix) + 1, "big")[1:]
        last = b"+" if not any(end) else b"(" + end
        return [unpack_print(member) for member in self.link.call("ZRANGEBYLEX", [key], b"[" + prefix, last)]

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1."""
        value = self._field_bytes(payloads_key(self.crawl, digest), digest)
        return unpack_original(value) if value else None

    def messages(self, partitions: Sequence[int], limit: int) -> dict[int, list[bytes]]:
        """The oldest letters in the partitions' inboxes, empty inboxes left out."""
        calls = [Call("LRANGE", [self._keys[p].inbox], [0, limit - 1]) for p in partitions]
        return {p: found for p, found in zip(partitions, self.link.many(calls), strict=True) if found}

    def _field(self, key: str, name: str) -> bytes | None:
        return self._field_bytes(key, name.encode("utf-8", "surrogatepass"))

    def _field_bytes(self, key: str, name: bytes) -> bytes | None:
        value: bytes | None = self.link.call("HGET", [key], name)
        return value

    def _queue(self, host: str) -> bytes:
        prefix = self._keys[self.partition(host)].queue_prefix
        return prefix.encode() + host.encode("utf-8", "surrogatepass")
