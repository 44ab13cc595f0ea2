"""The store that a worker's frontier sees: answers from memory, writes once a batch, Redis behind it in a thread.

It may answer from memory because no other worker writes the partitions that its worker holds. What is not in memory is
asked of Redis at once: memory makes it fast, never right.

What a worker has decided and Redis does not have yet: one batch that is being made, one that is being sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from threading import Lock, RLock

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import host_name
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import Changes, Comparison, Near, PageRecord, QueuedPage, host_of_fact
from crawlerproject.stores.redis.batch_writer import Pending
from crawlerproject.stores.redis.buffer.at_hand import HostFields, KnownLinks, PageRecords, RedisFingerprints
from crawlerproject.stores.redis.buffer.queue_heads import BufferedQueues
from crawlerproject.stores.redis.connection import Call
from crawlerproject.stores.redis.redis_queues import QueuePlace
from crawlerproject.stores.redis.redis_store import Granted, RedisStore

# Rows queued and removed by one batch, beyond which no more are refused: Redis serves no other client meanwhile (some
# 5 µs a row).
_ROWS_A_BATCH = 10_000


class Outbox:
    """``lock`` is held while the batches are read or changed, and not while one is sent."""

    def __init__(self, store: RedisStore, lock: RLock) -> None:
        self._store = store
        self._lock = lock
        self._pending = Pending()
        self._sent: Pending | None = None  # being sent; sent again just so when that failed

    def waiting(self) -> list[Pending]:
        """What Redis does not have yet, the oldest first."""
        return [self._pending] if self._sent is None else [self._sent, self._pending]

    def newest(self) -> list[Pending]:
        """The same, the newest first."""
        return self.waiting()[::-1]

    def merge(self, changes: Changes) -> None:
        """Add a change to the batch that is being made."""
        self._pending.merge(changes)

    def original(self, digest: bytes) -> tuple[Original | None] | None:
        """The first capture of a payload, alone in a tuple; None: nothing was decided about it."""
        return next(((each.payloads[digest],) for each in self.newest() if digest in each.payloads), None)

    # --- messages between workers ---------------------------------------------------------------

    def post(self, partition: int, message: bytes) -> None:
        """Send a message with the next batch, before anything of that batch counts."""
        with self._lock:
            self._pending.messages_out.append((partition, message))

    def messages_read(self, partition: int, count: int) -> None:
        """So many messages of a partition are answered by what was decided since."""
        with self._lock:
            self._pending.messages_read[partition] = count

    def unread(self, partitions: Sequence[int], limit: int) -> dict[int, list[bytes]]:
        """The oldest messages to partitions whose earlier ones are settled; the next batch removes them."""
        with self._lock:
            unsettled = {partition for each in self.waiting() for partition in each.messages_read}
        asked = [p for p in partitions if p not in unsettled]
        calls = [Call("LRANGE", [self._store.keys_of(p).inbox], [0, limit - 1]) for p in asked]
        return {p: found for p, found in zip(asked, self._store.link.many(calls), strict=True) if found}

    # --- sending --------------------------------------------------------------------------------

    @property
    def crowded(self) -> bool:
        """Whether so many rows wait to be sent that the next should not be decided before these are."""
        return self._pending.rows >= _ROWS_A_BATCH

    @property
    def empty(self) -> bool:
        """Whether Redis has everything."""
        return not self._pending and self._sent is None

    def send(self, behind: Callable[[str], QueuePlace | None]) -> None:
        """Send a batch that an earlier try left, and what was decided since. Raises StorageError; call again later.

        ``behind``: the place in a host's queue behind which rows may be bundled; see ``Pending.bundle``.
        """
        self._send_begun()
        with self._lock:
            if self._pending:
                self._pending.bundle(behind)
                self._sent, self._pending = self._pending, Pending()
        self._send_begun()
        self._store.batches.finish()

    def _send_begun(self) -> None:
        """Send the batch once, however often this is tried."""
        store = self._store
        if (batch := self._sent) is None:
            return
        store.batches.finish()
        if batch.serial in (-1, store.batches.serial):  # else an earlier try was decided though its answer was lost
            batch.serial = store.batches.serial
            if batch.messages_out:
                store.post(batch.messages_out)
                batch.messages_out = []
            store.batches.write(batch.parts(store.partition, store.held), batch.facts_of_worker())
        if batch.payloads:  # now that the captures count
            store.set_originals(batch.payloads.items())
        with self._lock:
            self._sent = None


# Known URLs of a partition that is taken over, which a filter is filled with: for more it would cost Redis as much as
# it saves (half a microsecond to tell a key, as much to answer for one).
_KEYS_AT_TAKE_OVER = 50_000
# Captures of payloads at hand: each is asked for when its page is compared, and when it is written.
_ORIGINALS = 2_000
# States of hosts at hand.
_STATES = 100_000


class BufferedStore:
    """A ``FrontierStore``; ``sync`` sends what was applied and may run in another thread, all else in one thread."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self._lock = RLock()  # around what is at hand
        self._sending = Lock()  # one batch at a time
        self.outbox = Outbox(store, self._lock)
        self.queues = BufferedQueues(store.queues, self.outbox.waiting, self._lock)
        self.links = KnownLinks()
        self._hosts: LruCache[str, bytes | None] = LruCache(_STATES)
        self._fields = HostFields(self.outbox.waiting, lambda host: store.partition(host) in store.held)
        self._prints = RedisFingerprints(store, self.outbox.waiting)
        self._records = PageRecords(self.outbox.waiting)
        self._originals: LruCache[bytes, Original | None] = LruCache(_ORIGINALS)

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
                self.queues.arrive(name)
            if keys is not None:
                self.links.filter.begin(partition, keys)
        return granted, [name for name, _ in found]

    def give_back(self, partition: int) -> None:
        """Let a partition go: everything about it is sent; nothing about it is at hand any more."""
        self.store.release([partition])
        with self._lock:
            self._hosts.forget(lambda host: self.store.partition(host) == partition)
            self.queues.leave(lambda host: self.store.partition(host) == partition)
            self.links.leave(partition)
            self._prints.forget()
            self._records.forget()
            self._fields.forget(lambda host: self.store.partition(host) == partition)

    # --- questions ------------------------------------------------------------------------------

    def look_up(self, pages: Iterable[tuple[bytes, str]]) -> None:
        """Prefetch the answers about these pages (key, host), of partitions that are held. Runs in a thread.

        Two round trips at most; none for links that are surely new, or known here, on hosts that are known here.
        """
        with self._lock:
            waiting = self.outbox.waiting()
            asked = {key: host for key, host in pages if not self.links.has(key, waiting)}
            wanted = dict.fromkeys(asked.values())
            # The name without its port knows of the others (frontier/frontier_state.py).
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

    def at_hand(self, hosts: Iterable[str], visited: Iterable[tuple[bytes, str]] = ()) -> None:
        """Prefetch the host fields that completing a page will read, and the records of pages (key, host) that are
        visited again, of partitions that are held. Runs in a thread.

        One round trip at most for either, none for hosts and pages that are known here; one for the payloads of pages.
        """
        pages = {key: host for key, host in visited if self.store.partition(host) in self.store.held}
        with self._lock:
            names, keys = self._fields.missing(hosts), self._records.missing(pages)
        found = self.store.host_fields(names) if names else []
        records = self.store.records(keys, [pages[key] for key in keys]) if keys else []
        with self._lock:
            self._fields.learn(names, found)
            self._records.learn(keys, records)
        # An answer that nothing has changed refers to the capture of before.
        self._learn_originals({record.digest for record in records if record is not None and record.digest})

    def _learn_originals(self, digests: Collection[bytes]) -> None:
        with self._lock:
            unknown = [digest for digest in digests if digest not in self._originals]
        if unknown:
            found, _ = self.store.originals_and_fingerprints(unknown, ())
            with self._lock:
                for digest, original in zip(unknown, found, strict=True):
                    self._originals[digest] = original

    def compare_ahead(self, pages: Sequence[Comparison], bits: int) -> None:
        """Prefetch what comparing pages will read, on hosts in partitions that are held. Runs in a thread.

        Three round trips at most. ``bits``: so many may differ in the fingerprints of near pages.
        """
        prints = self._prints
        with self._lock:
            digests = [page.digest for page in pages if page.digest]
            hosts = prints.missing(page.host for page in pages if page.value is not None)
        try:
            originals, rows = self.store.originals_and_fingerprints(digests, hosts)
            with self._lock:
                for digest, original in zip(digests, originals, strict=True):
                    self._originals[digest] = original
                prints.learn(hosts, rows)
                near = [each for host, value in _values(pages) for each in prints.unnamed(host, value, bits)]
            keys = self.store.named(near) if near else []
            with self._lock:
                prints.name(near, keys)
                wanted = {page.canonical: page.host for page in pages if page.canonical}
                wanted |= {key: host for (host, _), key in zip(near, keys, strict=True) if key is not None}
                missing = self._records.missing(wanted)
            records = self.store.records(missing, [wanted[key] for key in missing]) if missing else []
            with self._lock:
                self._records.learn(missing, records)
        finally:
            with self._lock:
                prints.leave()

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before; without ``hosts`` everywhere."""
        host_of = dict(zip(keys, hosts, strict=True)) if hosts is not None else {}
        with self._lock:
            waiting = self.outbox.waiting()
            answers = {key: self.links.answer(key, waiting) for key in keys}
            unsure = [key for key, answer in answers.items() if answer is None]
            if unsure and hosts is not None:
                new = self.links.surely_new(unsure, [self.store.partition(host_of[key]) for key in unsure])
                answers.update(dict.fromkeys(new, False))
                unsure = [key for key in unsure if key not in new]
        if unsure:
            where = None if hosts is None else [host_of[key] for key in unsure]
            answers.update(zip(unsure, self.store.known(unsure, where), strict=True))
        return [bool(answers[key]) for key in keys]

    def head(self, host: str, limit: int, after: QueuePlace | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        if after is None:
            return self.queues.head(host, limit)
        self.sync()
        return self.store.head(host, limit, after)

    def page(self, key: bytes, host: str | None = None) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first."""
        with self._lock:
            return self._records.get(key, lambda: self.store.page(key, host or self._prints.hosts.get(key)))

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page of the partitions held, and its key."""
        self.sync()
        return self.store.pages()

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """The host's fingerprints within ``bits`` of ``value``, nearest first.

        Across hosts ("") nothing is found: those of all workers are asked about in batches (fleet/text_questions.py).
        """
        if not host:
            return []
        with self._lock:
            return self._prints.near(host, value, bits)

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1, in any worker's WARC."""
        with self._lock:
            if (unsent := self.outbox.original(digest)) is not None:
                return unsent[0]
            if digest in self._originals:
                return self._originals[digest]
        try:
            return self.store.original(digest)
        except StorageError:
            return None  # stored whole once more, rather than by reference to what cannot be asked for

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        with self._lock:
            if host not in self._hosts:
                unsent = next((each.hosts[host] for each in self.outbox.newest() if host in each.hosts), None)
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
                self.queues.open_up_to(row)
            self.links.apply(changes, self.outbox.waiting())
            self.outbox.merge(changes)
            self.queues.apply(changes)
            for made in changes.fingerprints:
                self._prints.add(made)
            for name, packed in changes.hosts:
                self._hosts[name] = packed
            self._fields.apply(changes)
            self._records.apply(changes)

    def sync(self) -> None:
        """Send everything applied so far, then fetch what will be asked for. Raises StorageError; call again later."""
        with self._sending:
            self.outbox.send(self.queues.behind)
            self.queues.refill()

    def reach(self) -> None:
        """As ``sync``, and make sure that Redis answers and takes writes, though there be nothing to send."""
        self.sync()
        self.store.batches.touch()

    def close(self) -> None:
        """Let go of the connection."""
        self.store.close()


def _values(pages: Sequence[Comparison]) -> Iterator[tuple[str, int]]:
    """Hosts and fingerprints of those that have one."""
    return ((page.host, page.value) for page in pages if page.value is not None)
