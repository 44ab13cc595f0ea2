"""What a worker can say of links without asking Redis: which are known, which are surely new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.pending import Pending
from crawlerproject.stores.redis.seen_filter import SeenFilter

# Keys that are known for sure, some 110 bytes each: the links that every page of a site repeats.
_KEYS = 300_000


class KnownLinks:
    """Not safe for threads. ``waiting`` is always what is not yet written in Redis, the oldest first."""

    def __init__(self) -> None:
        self.filter = SeenFilter()
        self._known: LruCache[bytes, None] = LruCache(_KEYS)
        self._new: set[bytes] = set()  # not known as of the last ``learn``

    def has(self, key: bytes, waiting: Sequence[Pending]) -> bool:
        """Whether the page is surely known."""
        if self._known.use(key):
            return True
        return any(key in each.keys or key in each.new or key in each.pages for each in waiting)

    def answer(self, key: bytes, waiting: Sequence[Pending]) -> bool | None:
        """Whether the page is known; None: ask."""
        return True if self.has(key, waiting) else False if key in self._new else None

    def surely_new(self, keys: Sequence[bytes], partitions: Sequence[int]) -> set[bytes]:
        """Those of the keys, each of a page in that partition, that need not be asked about."""
        return {key for key, sure in zip(keys, self.filter.new(keys, partitions), strict=True) if sure}

    def learn(self, new: Iterable[bytes], answers: Iterable[tuple[bytes, bool]]) -> None:
        """Keys that are new, and what Redis said of others."""
        self._new = set(new)
        for key, known in answers:
            if known:
                self._known[key] = None
            else:
                self._new.add(key)

    def leave(self, partition: int) -> None:
        """Others write the partition from now on."""
        self.filter.leave(partition)
        self._new.clear()

    def apply(self, changes: Changes, waiting: Sequence[Pending]) -> None:
        """Pages that become known; those that Redis does not have yet are noted in the last of ``waiting``."""
        for row in changes.queued:
            if not self.has(row.key, waiting):
                (waiting[-1].new if row.key in self._new else waiting[-1].keys)[row.key] = row.host
                self._add(row.key)
        for key, _ in changes.pages:
            if not self.has(key, waiting):
                self._add(key)

    def _add(self, key: bytes) -> None:
        self.filter.add(key)
        self._known[key] = None
        self._new.discard(key)
