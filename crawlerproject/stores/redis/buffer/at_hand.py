"""What a worker has in memory of its hosts' pages: records, robots.txt and facts of hosts, fingerprints."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from crawlerproject.errors import StorageError
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.fingerprints import HostFingerprints
from crawlerproject.stores.protocols import Changes, Fingerprint, HostFact, Near, PageRecord, host_of_fact
from crawlerproject.stores.redis.batch_writer import Pending, fields_of, host_of_field
from crawlerproject.stores.redis.reader import RedisReader
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
