"""What other workers have sent to this one: taken once and in order, and acknowledged when its effect is durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from crawlerproject.fleet.mail.frames import BrokenConnection, Post
from crawlerproject.stores.protocols import Box, Messages

MOST_BYTES = 16 << 20
"""Waits to be read, of all senders together, before no more frames are taken: sixteen windows."""


class Unread(NamedTuple):
    """A message that was taken and has had no effect yet."""

    box: Box
    number: int
    packed: bytes


class Connection:
    """What has come over one connection, and what is to be acknowledged on it."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """``wake``: there is something to acknowledge."""
        self.came: dict[Box, int] = {}
        self._acks: dict[Box, int] = {}
        self._wake = wake

    def acknowledge(self, box: Box, up_to: int) -> None:
        """Say so with the next frame."""
        first = not self._acks
        self._acks[box] = up_to
        if first:
            self._wake()

    def take_acks(self) -> list[tuple[Box, int]]:
        """What to say now."""
        acks, self._acks = list(self._acks.items()), {}
        return acks


class Incoming:
    """Of all senders. ``mine``: the partitions that this worker holds."""

    def __init__(self, messages: Messages, mine: Collection[int]) -> None:
        self.unread: deque[Unread] = deque()
        self.bytes = 0  # of these
        self._messages = messages
        self._mine = mine
        self._taken: dict[Box, int] = {}
        self._durable: dict[Box, int] = {}
        self._unsynced: deque[tuple[int, dict[Box, int]]] = deque()  # by the change that they are in
        self._read: dict[Box, int] = {}  # in no change that was applied
        self._connections: set[Connection] = set()

    @property
    def full(self) -> bool:
        """Whether no more frames should be taken for now."""
        return self.bytes >= MOST_BYTES

    @property
    def empty(self) -> bool:
        """Whether all that was taken has taken effect, durably."""
        return not (self.unread or self._read or self._unsynced)

    # --- connections ----------------------------------------------------------------------------

    def begin(self, wake: Callable[[], None]) -> Connection:
        """A sender has connected; until ``end``."""
        connection = Connection(wake)
        self._connections.add(connection)
        return connection

    def end(self, connection: Connection) -> None:
        """It is gone; what came over it stays."""
        self._connections.discard(connection)

    def take(self, connection: Connection, posts: Iterable[Post]) -> None:
        """Keep what is new of these until it is read. Raises BrokenConnection for a gap, or for another's partition."""
        for box, after, number, packed in posts:
            if box.partition not in self._mine:
                raise BrokenConnection(f"a message for partition {box.partition}, which another worker holds")
            came = connection.came.get(box, 0)
            if number <= came:
                continue
            if after != came:
                raise BrokenConnection(f"after message {came} comes the one behind {after}")
            connection.came[box] = number
            if number > self._taken_up_to(box):
                self._taken[box] = number
                self.unread.append(Unread(box, number, packed))
                self.bytes += len(packed)
            elif number <= (durable := self._durable_up_to(box)):
                connection.acknowledge(box, durable)

    # --- their effect ---------------------------------------------------------------------------

    def read(self, messages: Iterable[Unread]) -> None:
        """These, the first of ``unread``, have taken effect: what came of them is in a change that says so."""
        for message in messages:
            first = self.unread.popleft()
            assert first is message, "messages take effect in the order of their coming"
            self.bytes -= len(message.packed)
            self._read[message.box] = message.number

    def applied(self) -> None:
        """The change with all that was ``read`` is applied."""
        if self._read:
            self._unsynced.append((self._messages.applied.changes, self._read))
            self._read = {}

    def synced(self) -> None:
        """Acknowledge what is durable by now."""
        durable = self._messages.durable.changes
        while self._unsynced and self._unsynced[0][0] <= durable:
            _, marks = self._unsynced.popleft()
            self._durable.update(marks)
            for connection in self._connections:
                for box, up_to in marks.items():
                    if box in connection.came:
                        connection.acknowledge(box, up_to)

    def _taken_up_to(self, box: Box) -> int:
        taken = self._taken.get(box)
        if taken is None:
            taken = self._taken[box] = self._durable_up_to(box)
        return taken

    def _durable_up_to(self, box: Box) -> int:
        """What the store says when the process looks first is as of its start, which syncs."""
        durable = self._durable.get(box)
        if durable is None:
            durable = self._durable[box] = self._messages.read_up_to(box)
        return durable
