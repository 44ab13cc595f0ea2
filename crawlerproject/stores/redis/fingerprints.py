"""The fingerprints of a worker's hosts: compared in memory, kept in Redis."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence

from crawlerproject.errors import StorageError
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.fingerprints import HostFingerprints
from crawlerproject.stores.protocols import Fingerprint, Near
from crawlerproject.stores.redis.pending import Pending
from crawlerproject.stores.redis.reader import RedisReader
from crawlerproject.stores.row_codec import host_fingerprints_prefix, unpack_print

# Pages that others nearly repeat, by the host where their record is: only those just found are asked about.
_PAGES = 1_000


class RedisFingerprints:
    """Not safe for threads."""

    def __init__(self, store: RedisReader, waiting: Callable[[], Sequence[Pending]]) -> None:
        self.hosts: LruCache[bytes, str] = LruCache(_PAGES)  # page that was near -> its host
        self._store = store
        self._waiting = waiting
        self._at_hand = self._fresh()

    def forget(self) -> None:
        """Others write some of the hosts from now on."""
        self._at_hand = self._fresh()

    def add(self, made: Fingerprint) -> None:
        """One more of a host."""
        self._at_hand.add(made.host, made.value)

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """Those of the host within ``bits`` of ``value``, nearest first; none when Redis does not say."""
        try:
            found = self._at_hand.near(host, value, bits)
            keys = dict(self._load(host)) if found else {}
        except StorageError:
            return []  # a page that is not compared is archived like any other
        near = [Near(differ, keys[each]) for differ, each in found if each in keys]
        for each in near:
            self.hosts[each.key] = host
        return near

    def _fresh(self) -> HostFingerprints:
        return HostFingerprints(lambda host: array("Q", [value for value, _ in self._load(host)]))

    def _load(self, host: str) -> list[tuple[int, bytes]]:
        found = dict(self._stored(host))
        for pending in self._waiting():
            found.update({value: key for (name, value), key in pending.prints.items() if name == host})
        return list(found.items())

    def _stored(self, host: str) -> Iterator[tuple[int, bytes]]:
        prefix, store = host_fingerprints_prefix(host), self._store
        end = (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix) + 1, "big")[1:]
        last = b"+" if not any(end) else b"(" + end
        key = store.of_host(host).prints
        return map(unpack_print, store.link.call("ZRANGEBYLEX", [key], b"[" + prefix, last))
