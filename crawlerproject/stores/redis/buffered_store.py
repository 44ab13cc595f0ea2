"""The store that a worker's frontier sees: answers from memory, writes once a beat, Redis behind it in a thread.

It may answer from memory because nobody else writes the partitions that its worker holds. What it does not have at
hand it asks Redis for, at once: memory makes it fast, never right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock, RLock

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.hosts import host_name
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.host_facts import host_of_fact
from crawlerproject.stores.protocols import Changes, Near, PageRecord, QueuedPage
from crawlerproject.stores.redis.fingerprints import RedisFingerprints
from crawlerproject.stores.redis.host_fields import HostFields
from crawlerproject.stores.redis.known_urls import KnownLinks
from crawlerproject.stores.redis.pending import Pending
from crawlerproject.stores.redis.queue_heads import MEMBERS, QueueHeads
from crawlerproject.stores.redis.queue_members import Place
from crawlerproject.stores.redis.store import Granted, RedisStore
from crawlerproject.stores.row_codec import unpack_record

# Known URLs of a partition that is taken over, which a filter is filled with: for more it would cost Redis as much as
# it saves (half a microsecond to tell a key, as much to answer for one).
_KEYS_AT_TAKE_OVER = 50_000
# Rows queued and removed by one beat, beyond which no more are refused: Redis serves nobody else meanwhile (some 5 µs
# a row).
_ROWS_A_BEAT = 10_000
# States of hosts at hand.
_STATES = 100_000


class BufferedStore:
    """A ``FrontierStore``; ``sync`` sends what was applied and may run in another thread, all else in one thread."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self._lock = RLock()  # around what is at hand
        self._sending = Lock()  # one beat at a time
        self._pending = Pending()
        self._flying: Pending | None = None  # being sent; sent again just so when that failed
        self.heads = QueueHeads()
        self.links = KnownLinks()
        self._hosts: LruCache[str, bytes | None] = LruCache(_STATES)
        self._fields = HostFields(self._waiting, lambda host: store.partition(host) in store.held)
        self._prints = RedisFingerprints(store, self._waiting)

    # --- partitions -----------------------------------------------------------------------------

    def take(self, partition: int, lease_ms: int) -> tuple[Granted, list[str]] | None:
        """Take a partition that is free: how, and its hosts with work. In a thread or not."""
        granted = self.store.acquire(partition, lease_ms)
        if granted is None:
            return None
        found = list(self.store.hosts_of(partition))
        keys = self.store.all_keys(partition, _KEYS_AT_TAKE_OVER)
        with self._lock:
            for name, packed in found:
                self._hosts[name] = packed
                self.heads.arrive(name)
            if keys is not None:
                self.links.filter.begin(partition, keys)
        return granted, [name for name, _ in found]

    def give_back(self, partition: int) -> None:
        """Let a partition go: everything about it is sent; nothing about it is at hand any more."""
        self.store.release([partition])
        with self._lock:
            self._hosts.forget(lambda host: self.store.partition(host) == partition)
            self.heads.leave(lambda host: self.store.partition(host) == partition)
            self.links.leave(partition)
            self._prints.forget()
            self._fields.forget(lambda host: self.store.partition(host) == partition)

    # --- questions ------------------------------------------------------------------------------

    def look_up(self, pages: Iterable[tuple[bytes, str]]) -> None:
        """Have the answers about these pages (key, host), of partitions that are held, at hand. In a thread.

        Two round trips at most; none for links that are surely new, or known here, on hosts that are known here.
        """
        with self._lock:
            waiting = self._waiting()
            asked = {key: host for key, host in pages if not self.links.has(key, waiting)}
            wanted = dict.fromkeys(asked.values())
            # The name without its port knows of the others (frontier/state.py).
            wanted.update(dict.fromkeys(host_name(name) for name in asked.values() if ":" in name))
            names = [name for name in wanted if name not in self._hosts]
            fields = self._fields.missing_of_domains(names)
            new = self.links.surely_new(list(asked), [self.store.partition(host) for host in asked.values()])
        keys = [key for key in asked if key not in new]
        answers = self.store.known(keys, [asked[key] for key in keys]) if keys else []
        states, found = self.store.states_and_fields(names, fields) if names else ([], [])
        with self._lock:
            self.links.learn(new, zip(keys, answers, strict=True))
            for name, packed in zip(names, states, strict=True):
                if name not in self._hosts:
                    self._hosts[name] = packed
            self._fields.learn(fields, found)

    def at_hand(self, hosts: Iterable[str]) -> None:
        """Have at hand what the end of a page asks about hosts of partitions that are held. In a thread.

        One round trip at most, none for hosts that are known here.
        """
        with self._lock:
            names = self._fields.missing(hosts)
        found = self.store.host_fields(names) if names else []
        with self._lock:
            self._fields.learn(names, found)

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before."""
        with self._lock:
            answers = [self.links.answer(key, self._waiting()) for key in keys]
        unsure = [key for key, answer in zip(keys, answers, strict=True) if answer is None]
        if not unsure:
            return [bool(answer) for answer in answers]
        found = dict(zip(unsure, self._asked_known(unsure, keys, hosts), strict=True))
        return [found[key] if answer is None else answer for key, answer in zip(keys, answers, strict=True)]

    def _asked_known(self, unsure: list[bytes], keys: Sequence[bytes], hosts: Sequence[str] | None) -> list[bool]:
        """What Redis says: all partitions without ``hosts``, else one for each key and none for what is surely new."""
        if hosts is None:
            return self.store.known(unsure)
        host_of = dict(zip(keys, hosts, strict=True))
        with self._lock:
            new = self.links.surely_new(unsure, [self.store.partition(host_of[key]) for key in unsure])
        asked = [key for key in unsure if key not in new]
        said = dict(zip(asked, self.store.known(asked, [host_of[key] for key in asked]), strict=True)) if asked else {}
        return [said.get(key, False) for key in unsure]

    def head(self, host: str, limit: int, after: Place | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        if after is not None:
            self.sync()
            return self.store.head(host, limit, after)
        with self._lock:
            while (rows := self.heads.first(host, limit)) is None:
                self._ask_for_head(host, limit)
            return rows

    def _ask_for_head(self, host: str, limit: int) -> None:
        """Have more of a queue at hand, maybe still not enough: rows may be gone, or stand behind what was read."""
        waiting, start = self._waiting(), self.heads.known_to(host)
        count = self.heads.count(host, limit, waiting)
        [members] = self.store.heads({host: start}, count)
        self.heads.put(host, members, count, waiting, start)

    def _waiting(self) -> list[Pending]:
        return [self._pending] if self._flying is None else [self._flying, self._pending]

    def page(self, key: bytes) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first."""
        with self._lock:
            for pending in (self._pending, self._flying):
                if pending is not None and key in pending.pages:
                    return unpack_record(pending.pages[key][1])
            return self.store.page(key, self._prints.hosts.get(key))

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page of the partitions held, and its key."""
        self.sync()
        return self.store.pages()

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """The host's fingerprints within ``bits`` of ``value``, nearest first.

        Across hosts ("") nothing is found: hosts of other workers are not at hand, and a shared index of all texts
        would cost a question in Redis for every page.
        """
        if not host:
            return []
        with self._lock:
            return self._prints.near(host, value, bits)

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1, in any worker's WARC."""
        with self._lock:
            for pending in (self._pending, self._flying):
                if pending is not None and digest in pending.payloads:
                    return pending.payloads[digest]
        try:
            return self.store.original(digest)
        except StorageError:
            return None  # stored whole once more, rather than by reference to what cannot be asked for

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        with self._lock:
            if host not in self._hosts:
                unsent = next((each.hosts[host] for each in reversed(self._waiting()) if host in each.hosts), None)
                self._hosts[host] = unsent or self.store.host(host)
            return self._hosts[host]

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        with self._lock:
            return self._fields.get(origin, self.store.robots)

    def fact(self, name: str) -> bytes | None:
        """A fact of this worker, or of a host."""
        with self._lock:
            if host := host_of_fact(name):
                if host in self._hosts and self._hosts[host] is None and self._fields.unsent_fact(name) is None:
                    return None  # nothing was ever decided about it
                return self._fields.get(name, self.store.fact)
            unsent = self._fields.unsent_fact(name)
        return self.store.fact(name) if unsent is None else unsent

    def hosts_with_work(self) -> Iterator[str]:
        """Every host of the partitions held with at least one queued row, each once."""
        self.sync()
        yield from self.store.hosts_with_work()

    # --- changes --------------------------------------------------------------------------------

    def apply(self, changes: Changes) -> None:
        """Take it in whole; ``sync`` sends it whole. Until then it dies with the process."""
        with self._lock:
            for row in changes.removed:
                self._open_up_to(row)
            self.links.apply(changes, self._waiting())
            self._pending.merge(changes)
            for row in changes.removed:
                self.heads.drop(row)
            for row in changes.queued:
                self.heads.add(row)
            for made in changes.fingerprints:
                self._prints.add(made)
            for name, packed in changes.hosts:
                self._hosts[name] = packed
            self._fields.apply(changes)

    def _open_up_to(self, row: QueuedPage) -> None:
        """A row that is removed was at hand, as a rule; else it may be in a bundle."""
        while not self.heads.is_open(row, self._waiting()):
            self._ask_for_head(row.host, MEMBERS)

    def post(self, partition: int, message: bytes) -> None:
        """Send a letter with the next ``sync``, before anything of that beat counts."""
        with self._lock:
            self._pending.letters_out.append((partition, message))

    def messages(self, partitions: Sequence[int], limit: int) -> dict[int, list[bytes]]:
        """Unread letters of partitions whose earlier ones are settled; they go with the next ``sync``."""
        with self._lock:
            waiting = set(self._pending.letters_read) | set(self._flying.letters_read if self._flying else ())
        return self.store.messages([p for p in partitions if p not in waiting], limit)

    def letters_read(self, partition: int, count: int) -> None:
        """So many letters of a partition are answered by what was applied since."""
        with self._lock:
            self._pending.letters_read[partition] = count

    @property
    def crowded(self) -> bool:
        """Whether so many rows wait to be sent that the next should not be decided before these are."""
        return self._pending.rows >= _ROWS_A_BEAT

    @property
    def unsent(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._pending) or self._flying is not None

    def sync(self) -> None:
        """Send everything applied so far, then fetch what will be asked for. Raises StorageError; call again later."""
        with self._sending:
            self._sync()

    def _sync(self) -> None:
        if self._flying is not None:
            self._send()
        with self._lock:
            if self._pending:
                self._pending.bundle(self.heads.behind)
                self._flying, self._pending = self._pending, Pending()
        if self._flying is not None:
            self._send()
        self.store.finish()
        self._refill()

    def reach(self) -> None:
        """As ``sync``, and make sure that Redis answers and takes writes, though there be nothing to send."""
        self.sync()
        self.store.touch()

    def close(self) -> None:
        """Let go of the connection."""
        self.store.close()

    def _send(self) -> None:
        """Send the flying changes once, however often this is tried."""
        flying, store = self._flying, self.store
        assert flying is not None
        store.finish()
        if flying.serial in (-1, store.serial):  # else an earlier try was decided though its answer was lost
            flying.serial = store.serial
            if flying.letters_out:
                store.post(flying.letters_out)
                flying.letters_out = []
            store.apply_parts(flying.parts(store.partition, store.held), flying.facts_of_worker())
        if flying.payloads:  # now that the captures count
            store.set_originals(flying.payloads.items())
        with self._lock:
            self._flying = None

    def _refill(self) -> None:
        with self._lock:
            wanted = {host: self.heads.known_to(host) for host in sorted(self.heads.wanted)}
            self.heads.wanted.clear()
        if not wanted:
            return
        found = self.store.heads(wanted, MEMBERS)
        with self._lock:
            for (host, start), members in zip(wanted.items(), found, strict=True):
                if self.heads.lacks(host, start):  # else it was asked for meanwhile
                    self.heads.put(host, members, MEMBERS, self._waiting(), start)
