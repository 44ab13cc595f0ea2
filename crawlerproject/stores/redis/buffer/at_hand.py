"""What a worker has in memory of its hosts' pages: records, robots.txt and facts of hosts, fingerprints.

What a worker can say of links without asking Redis: which are known, which are surely new.

Of those it has not seen itself a Bloom filter of the keys of whole partitions says that they are surely new, never that
one is known: in layers of which each new one holds twice as many (Almeida et al., Scalable Bloom Filters, 2007). It
answers for a partition only once it has every key of it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from crawlerproject.errors import StorageError
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.fingerprints import HostFingerprints
from crawlerproject.stores.protocols import Changes, Fingerprint, HostFact, Near, PageRecord, host_of_fact
from crawlerproject.stores.redis.batch_writer import Pending, fields_of, host_of_field
from crawlerproject.stores.redis.redis_reader import RedisReader
from crawlerproject.stores.row_codec import unpack_print, unpack_record

# As many as the pages that one step looks up, and those on their way; some 500 bytes each.
_RECORDS = 10_000
# Eight of a host; a robots.txt is mostly under 2 KB, the others are mostly nothing.
_FIELDS = 80_000
# Pages that others nearly repeat, by the host where their record is: only those just found are asked about.
_PAGES = 1_000
# Pages by their fingerprints, some 200 bytes each: those that the next pages nearly repeat.
_NAMED = 10_000


class PageRecords:
    """Of pages in partitions that are held. Not safe for threads."""

    def __init__(self, waiting: Callable[[], Sequence[Pending]]) -> None:
        """``waiting``: what Redis does not have yet, the oldest first."""
        self._waiting = waiting
        self._at_hand: LruCache[bytes, PageRecord | None] = LruCache(_RECORDS)

    def missing(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those of the pages that Redis must be asked for."""
        return [key for key in keys if key not in self._at_hand]

    def learn(self, keys: Sequence[bytes], found: Sequence[PageRecord | None]) -> None:
        """What Redis said; what was decided here meanwhile stands."""
        for key, record in zip(keys, found, strict=True):
            if key not in self._at_hand:
                self._at_hand[key] = self.unsent(key) or record

    def unsent(self, key: bytes) -> PageRecord | None:
        """The record that Redis does not have yet; None: there is none."""
        for pending in reversed(self._waiting()):
            if key in pending.pages:
                return unpack_record(pending.pages[key][1])
        return None

    def get(self, key: bytes, ask: Callable[[], PageRecord | None]) -> PageRecord | None:
        """The page's record; ``ask`` is called when it is not at hand."""
        if key in self._at_hand:
            return self._at_hand[key]
        return self.unsent(key) or ask()

    def apply(self, changes: Changes) -> None:
        """Take in what was decided here."""
        for key, record in changes.pages:
            self._at_hand[key] = record

    def forget(self) -> None:
        """Others write some of the pages from now on."""
        self._at_hand.forget(lambda _: True)


class HostFields:
    """By the name of the field: an origin, or a fact's. Not safe for threads."""

    def __init__(self, waiting: Callable[[], Sequence[Pending]], held: Callable[[str], bool]) -> None:
        """``waiting``: what Redis does not have yet, the oldest first; ``held``: whether a host is ours alone."""
        self._waiting = waiting
        self._held = held
        self._at_hand: LruCache[str, bytes | None] = LruCache(_FIELDS)

    def missing(self, hosts: Iterable[str]) -> list[str]:
        """Fields of these hosts that Redis must be asked for; others' hosts are left out."""
        ours = filter(self._held, set(hosts))
        return [name for host in ours for name in fields_of(host) if name not in self._at_hand]

    def missing_of_domains(self, hosts: Iterable[str]) -> list[str]:
        """What Redis must be asked for of these hosts' domains."""
        domains = filter(self._held, {registered_domain(host) for host in hosts})
        return [name for domain in domains if (name := HostFact.DOMAIN + domain) not in self._at_hand]

    def learn(self, names: Sequence[str], found: Sequence[bytes | None]) -> None:
        """What Redis said; what was decided here meanwhile stands."""
        said = dict(zip(names, found, strict=True))
        for name in names:
            self.get(name, said.__getitem__)

    def get(self, name: str, ask: Callable[[str], bytes | None]) -> bytes | None:
        """The field; ``ask`` is called when it is not at hand."""
        if name in self._at_hand:
            return self._at_hand[name]
        unsent = self.unsent_fact(name) if host_of_fact(name) else self._unsent_robots(name)
        packed = ask(name) if unsent is None else unsent
        if self._held(host_of_field(name)):
            self._at_hand[name] = packed
        return packed

    def unsent_fact(self, name: str) -> bytes | None:
        """The newest of a fact, a worker's too, that Redis does not have yet."""
        return next((each.facts[name] for each in reversed(self._waiting()) if name in each.facts), None)

    def _unsent_robots(self, origin: str) -> bytes | None:
        return next((each.robots[origin] for each in reversed(self._waiting()) if origin in each.robots), None)

    def apply(self, changes: Changes) -> None:
        """Take in what was decided here."""
        of_hosts = [(name, packed) for name, packed in changes.facts if host_of_fact(name)]
        for name, packed in (*changes.robots, *of_hosts):
            if self._held(host_of_field(name)):
                self._at_hand[name] = packed

    def forget(self, gone: Callable[[str], bool]) -> None:
        """Others write about such hosts from now on."""
        self._at_hand.forget(lambda name: gone(host_of_field(name)))


class RedisFingerprints:
    """Not safe for threads."""

    def __init__(self, store: RedisReader, waiting: Callable[[], Sequence[Pending]]) -> None:
        self.hosts: LruCache[bytes, str] = LruCache(_PAGES)  # page that was near -> its host
        self._store = store
        self._waiting = waiting
        self._keys: LruCache[tuple[str, int], bytes | None]
        self._coming: dict[str, list[int]]  # of hosts that are being read: what Redis may not have had yet
        self.forget()

    def forget(self) -> None:
        """Others write some of the hosts from now on."""
        self._at_hand = HostFingerprints(lambda host: array("Q", [*self._unsent(host), *self._stored(host)]))
        self._keys = LruCache(_NAMED)
        self._coming = {}

    def missing(self, hosts: Iterable[str]) -> list[str]:
        """Those of the hosts that Redis must be asked for; ``learn`` or ``leave`` is called next."""
        missing = [host for host in dict.fromkeys(hosts) if host not in self._at_hand]
        self._coming = {host: self._unsent(host) for host in missing}
        return missing

    def learn(self, hosts: Sequence[str], found: Sequence[Sequence[bytes]]) -> None:
        """What Redis said, to which is added what was decided here meanwhile."""
        for host, rows in zip(hosts, found, strict=True):
            if (came := self._coming.pop(host, None)) is not None and host not in self._at_hand:
                self._at_hand.put(host, array("Q", {*came, *(unpack_print(row)[0] for row in rows)}))

    def leave(self) -> None:
        """Redis did not say."""
        self._coming = {}

    def unnamed(self, host: str, value: int, bits: int) -> list[tuple[str, int]]:
        """Hosts and fingerprints, near this one, of whose pages Redis must be asked."""
        near = self._at_hand.near(host, value, bits)
        return [
            (host, each) for _, each in near if self._unsent_key(host, each) is None and (host, each) not in self._keys
        ]

    def name(self, prints: Sequence[tuple[str, int]], found: Sequence[bytes | None]) -> None:
        """The pages of these."""
        for (host, value), key in zip(prints, found, strict=True):
            self._keys[host, value] = key
            if key is not None:
                self.hosts[key] = host

    def add(self, made: Fingerprint) -> None:
        """One more of a host."""
        self._at_hand.add(made.host, made.value)
        if made.host in self._coming:
            self._coming[made.host].append(made.value)

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """Those of the host within ``bits`` of ``value``, nearest first; none when Redis does not say."""
        try:
            found = self._at_hand.near(host, value, bits)
            if unnamed := self.unnamed(host, value, bits):
                self.name(unnamed, self._store.named(unnamed))
        except StorageError:
            return []  # a page that is not compared is archived like any other
        named = [(differ, self._unsent_key(host, each) or self._keys.get((host, each))) for differ, each in found]
        near = [Near(differ, key) for differ, key in named if key is not None]
        for each in near:
            self.hosts[each.key] = host
        return near

    def _unsent(self, host: str) -> list[int]:
        return [value for pending in self._waiting() for name, value in pending.prints if name == host]

    def _unsent_key(self, host: str, value: int) -> bytes | None:
        waiting = reversed(self._waiting())
        return next((each.prints[host, value] for each in waiting if (host, value) in each.prints), None)

    def _stored(self, host: str) -> Iterator[int]:
        _, [rows] = self._store.originals_and_fingerprints((), [host])
        return (unpack_print(row)[0] for row in rows)


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
