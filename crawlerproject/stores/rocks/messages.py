"""Messages to and from other workers in RocksDB: one table, in which those of a partition lie together.

Its rows by their first byte: messages that wait for their reader; how far boxes were read; of earlier versions the
outbox of this frontier. The rows of a partition have one of two prefixes, the byte of their kind and the partition, and
move with it: copied as they are, they mean the same in another frontier. What is read twice there has no second effect.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

from rocksdict import WriteBatch

from crawlerproject.stores.protocols import Applied, Box, Changes
from crawlerproject.stores.rocks.schema import MESSAGES
from crawlerproject.stores.rocks.tables import Tables
from crawlerproject.stores.row_codec import (
    MESSAGE_ROW,
    READ_ROW,
    box_key,
    box_of,
    message_key,
    number_of,
    pack_number,
)

# Behind every number of a box.
_BEHIND = b"\xff" * 9


class RocksMessages:
    """The ``Messages`` of a RocksStore. Reads the tables that ``tables`` gives at that moment."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables
        # Another one with each start: what is left of earlier ones may have been moved elsewhere, and is sent by others
        # then; and of a frontier that was put back from a backup numbers were given already that it does not know of.
        self.outbox = uuid.uuid4().bytes
        self.applied = Applied()
        self.durable = Applied()
        self._changed: set[int] = set()

    def boxes(self) -> list[Box]:
        """Those that hold messages, in order."""
        return list(self._boxes())

    def holds(self) -> bool:
        """Whether there is any message."""
        return next(self._boxes(), None) is not None

    def of(self, box: Box, after: int, up_to: int, most_bytes: int) -> list[tuple[int, bytes]]:
        """Messages of a box with numbers above ``after`` and not above ``up_to``; none once they have so many bytes."""
        rows = self._tables().rows(MESSAGES, message_key(box, after), prefix=box_key(MESSAGE_ROW, box))
        found: list[tuple[int, bytes]] = []
        for key, packed in rows:
            if most_bytes <= 0 or number_of(key) > up_to:
                break
            found.append((number_of(key), packed))
            most_bytes -= len(packed)
        return found

    def read_up_to(self, box: Box) -> int:
        """The last number that took effect here; 0 before the first."""
        kept = self._tables().messages.get(box_key(READ_ROW, box))
        return 0 if kept is None else number_of(kept)

    def take_changed(self) -> set[int]:
        """The partitions with new messages since this was last called."""
        changed, self._changed = self._changed, set()
        return changed

    def change(self, batch: WriteBatch, changes: Changes) -> None:
        """Add to a batch what a change says of messages."""
        handle, number = self._tables().handles[MESSAGES], self.applied.last
        for partition, packed in changes.messages:
            number += 1
            batch.put(message_key(Box(partition, self.outbox), number), packed, handle)
        for box, up_to in dict(changes.read).items():
            batch.put(box_key(READ_ROW, box), pack_number(up_to), handle)
        for box, gone in changes.delivered:
            batch.delete(message_key(box, gone), handle)

    def stored(self, changes: Changes) -> None:
        """The batch was written. Had it failed, its numbers would be given again to the same messages."""
        if changes.messages or changes.read:
            done = self.applied
            self.applied = Applied(done.changes + 1, done.last + len(changes.messages))
        self._changed.update(partition for partition, _ in changes.messages)

    def _boxes(self) -> Iterator[Box]:
        tables = self._tables()
        rows = tables.messages.iter()
        rows.seek(bytes([MESSAGE_ROW]))
        while rows.valid() and rows.key()[0] == MESSAGE_ROW:
            box = box_of(rows.key())
            yield box
            rows.seek(box_key(MESSAGE_ROW, box) + _BEHIND)
        tables.require_end(rows)
