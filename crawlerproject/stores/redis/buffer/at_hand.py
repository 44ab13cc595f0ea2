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
from crawlerproject.stores.row_codec import host_fingerprints_prefix, unpack_print, unpack_record

# As many as the pages that one step looks up, and those on their way; some 500 bytes each.
_RECORDS = 10_000
# Eight of a host; a robots.txt is mostly under 2 KB, the others are mostly nothing.
_FIELDS = 80_000
# Pages that others nearly repeat, by the host where their record is: only those just found are asked about.
_PAGES = 1_000


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
