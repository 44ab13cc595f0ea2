"""What a worker can say of links without asking Redis: which are known, which are surely new.

Of those it has not seen itself a Bloom filter of the keys of whole partitions says that they are surely new, never that
one is known: in layers of which each new one holds twice as many (Almeida et al., Scalable Bloom Filters, 2007). It
answers for a partition only once it has every key of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.batch_writer import Pending

# Keys that are known for sure, some 110 bytes each: the links that every page of a site repeats.
_KEYS = 300_000
# Bits a key and bits set for each, when a layer is full: false-positive rate 1 in 400.
_BITS = 16
_PROBES = 4
# Keys of the first layer; 128 KB.
_FIRST = 1 << 16
_Words = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]


class SeenFilter:
    """Not safe for threads."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._layers = [np.zeros(_FIRST * _BITS // 8, np.uint8)]
        self._in_last = 0
        self._whole: set[int] = set()
        self._coming: list[bytes] = []

    def begin(self, partition: int, keys: Iterable[bytes]) -> None:
        """These are all keys of a partition; ``add`` brings those that follow."""
        self._coming += keys
        self._whole.add(partition)

    def leave(self, partition: int) -> None:
        """Others write the partition from now on."""
        self._whole.discard(partition)

    def add(self, key: bytes) -> None:
        """A key that is known from now on."""
        self._coming.append(key)

    def new(self, keys: Sequence[bytes], partitions: Sequence[int]) -> list[bool]:
        """Whether each key, of 24 bytes, in that partition is new for sure."""
        self._take_in()
        whole = [partition in self._whole for partition in partitions]
        perhaps = np.zeros(len(keys), bool)
        words = _words(keys)
        for layer in self._layers:
            byte, bit = _places(words, len(layer))
            perhaps |= np.all(layer[byte] & bit, axis=0)
        sure = [each and not known for each, known in zip(whole, perhaps.tolist(), strict=True)]
        self._counts["sure"] += sum(sure)
        self._counts["asked"] += len(keys) - sum(sure)
        return sure

    def take_counts(self) -> dict[str, int]:
        """Keys since the last call: ``sure`` were new for certain, ``asked`` were not."""
        taken, self._counts = dict(self._counts), Counter()
        return taken

    def _take_in(self) -> None:
        coming, self._coming = self._coming, []
        while coming:
            room = len(self._layers[-1]) * 8 // _BITS - self._in_last
            if not room:
                self._layers.append(np.zeros(2 * len(self._layers[-1]), np.uint8))
                self._in_last = 0
                continue
            byte, bit = _places(_words(coming[:room]), len(self._layers[-1]))
            np.bitwise_or.at(self._layers[-1], byte, bit)
            self._in_last += len(coming[:room])
            coming = coming[room:]


def _words(keys: Sequence[bytes]) -> _Words:
    return np.frombuffer(b"".join(keys), "<u8").reshape(-1, 3)


def _places(words: _Words, layer_bytes: int) -> tuple[_Words, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
    """The bytes and the bits in them; keys are hashes of host and path, which two hosts may have in common."""
    host, high, low = words[:, 0], words[:, 1], words[:, 2]
    steps = np.arange(_PROBES, dtype=np.uint64)[:, None]
    bits = (high ^ host) + steps * (low ^ (host >> np.uint64(7)) | np.uint64(1))
    bits &= np.uint64(layer_bytes * 8 - 1)
    return bits >> np.uint64(3), np.left_shift(1, bits & np.uint64(7), dtype=np.uint64).astype(np.uint8)


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
