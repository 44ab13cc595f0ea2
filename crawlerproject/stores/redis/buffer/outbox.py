"""What a worker has decided and Redis does not have yet: one batch that is being made, one that is being sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock

from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.batch_writer import Pending
from crawlerproject.stores.redis.connection import Call
from crawlerproject.stores.redis.queues import QueuePlace
from crawlerproject.stores.redis.store import RedisStore

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
