"""Messages on their way between two workers: sent in order, some at a time; taken once; acknowledged when durable.

What is sent over a connection between two workers, as bytes: a length, what kind of frame it is, its content.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import IntEnum
from struct import Struct
from sys import maxsize
from typing import NamedTuple

import orjson

from crawlerproject.fleet.link_exchange import Unread
from crawlerproject.stores.protocols import Box, Messages

FORMAT = 1
"""Of all below; workers of two versions do not write to each other."""
MAX_BYTES = 16 << 20
"""Of a frame: a slice of messages, and one message of any size that there is (some 1.5 MB, a robots.txt)."""

# Bytes that follow, kind.
HEAD = Struct(">IB")
# A box, the number of the message before on this connection, its own, bytes of its content.
_POST = Struct(">I16sQQI")
# A box, up to which number it was read.
_ACK = Struct(">I16sQ")


class FrameKind(IntEnum):
    """Of a frame."""

    HELLO = 0
    POSTS = 1
    ACKS = 2


_KINDS = {int(kind): kind for kind in FrameKind}


class Hello(NamedTuple):
    """The first frame of either side: who is at this end, and which worker it believes at the other."""

    sender: str
    receiver: str
    format: int = FORMAT


class Post(NamedTuple):
    """One message on its way."""

    box: Box
    after: int  # the number of the box's message before it on this connection; 0: it is the first
    number: int
    packed: bytes


class BrokenConnection(Exception):
    """What was received does not follow what was received before: the connection must begin again."""


def hello_frame(hello: Hello) -> bytes:
    """As bytes."""
    return _frame(FrameKind.HELLO, orjson.dumps(hello._asdict()))


def hello_of(body: bytes) -> Hello:
    """Raises BrokenConnection."""
    try:
        return Hello(**orjson.loads(body))
    except (TypeError, ValueError) as error:
        raise BrokenConnection(f"a greeting of another kind: {error}") from error


def posts_frame(posts: Iterable[Post]) -> bytes:
    """As bytes."""
    parts: list[bytes] = []
    for (partition, outbox), after, number, packed in posts:
        parts += (_POST.pack(partition, outbox, after, number, len(packed)), packed)
    return _frame(FrameKind.POSTS, b"".join(parts))


def posts_of(body: bytes) -> Iterator[Post]:
    """Raises BrokenConnection."""
    at = 0
    while at < len(body):
        if at + _POST.size > len(body):
            raise BrokenConnection("a frame ends within a message")
        partition, outbox, after, number, size = _POST.unpack_from(body, at)
        at += _POST.size
        if at + size > len(body):
            raise BrokenConnection("a frame ends within a message")
        yield Post(Box(partition, outbox), after, number, body[at : at + size])
        at += size


def acks_frame(acks: Iterable[tuple[Box, int]]) -> bytes:
    """As bytes."""
    return _frame(FrameKind.ACKS, b"".join([_ACK.pack(*box, up_to) for box, up_to in acks]))


def acks_of(body: bytes) -> Iterator[tuple[Box, int]]:
    """Raises BrokenConnection."""
    if len(body) % _ACK.size:
        raise BrokenConnection("a frame ends within an acknowledgement")
    for partition, outbox, up_to in _ACK.iter_unpack(body):
        yield Box(partition, outbox), up_to


def head_of(head: bytes) -> tuple[FrameKind, int]:
    """Of which kind a frame is, and how many bytes follow. Raises BrokenConnection."""
    size, number = HEAD.unpack(head)
    if size > MAX_BYTES or number not in _KINDS:
        raise BrokenConnection(f"a frame of {size:,} bytes, kind {number}")
    return _KINDS[number], size


def _frame(kind: FrameKind, body: bytes) -> bytes:
    return HEAD.pack(len(body), kind) + body


WINDOW_BYTES = 1 << 20
"""On their way to a worker, sent and not acknowledged, with the one that exceeds it: some 8,000 links, more than a
worker takes in between two of its commits."""
SLICE_BYTES = 64 << 10
"""Read from the store in one turn of the loop: below a millisecond."""
# What a message is counted for besides its content: its place in the tables here and on the wire.
_OVERHEAD_BYTES = 200
MOST_BYTES = 16 << 20
"""Waits to be read, of all senders together, before no more frames are taken: sixteen windows."""


class Outgoing:
    """For one receiver. Of what is sent and not acknowledged only the numbers are kept."""

    def __init__(self, messages: Messages, boxes: Iterable[Box] = ()) -> None:
        """``boxes``: those for this receiver that hold messages from before."""
        self._messages = messages
        self._unsent: dict[Box, None] = dict.fromkeys(boxes)  # may have messages behind their place, in turn
        self._places: dict[Box, int] = {}  # the last number that was sent on this connection
        self._acknowledged: dict[Box, int] = {}
        self._sent: dict[Box, deque[tuple[int, int]]] = {}  # number, bytes; in order, none empty
        self._sent_bytes = 0
        self._delivered: list[tuple[Box, int]] = []

    @property
    def empty(self) -> bool:
        """Whether the receiver has acknowledged everything."""
        return not self._unsent and not self._sent

    def more(self, box: Box) -> None:
        """The box has new messages, and they are synced."""
        self._unsent[box] = None

    def next(self) -> list[Post]:
        """The next messages to be sent, about a slice; none while there are none, or too many on their way."""
        posts: list[Post] = []
        room = min(SLICE_BYTES, WINDOW_BYTES - self._sent_bytes)
        for box in list(self._unsent):
            if room <= 0:
                break
            behind = self._places.get(box) or self._acknowledged.get(box, 0)
            # Of the own outbox what is synced; the messages of others are older than the start, which syncs.
            up_to = self._messages.durable.last if box.outbox == self._messages.outbox else maxsize
            found = self._messages.of(box, behind, up_to, room)
            del self._unsent[box]
            for number, packed in found:
                if room <= 0:
                    break
                posts.append(Post(box, self._places.get(box, 0), number, packed))
                self._places[box] = number
                size = len(packed) + _OVERHEAD_BYTES
                self._sent.setdefault(box, deque()).append((number, size))
                self._sent_bytes += size
                room -= size
            if room <= 0:
                self._unsent[box] = None  # there may be more; behind the others
        return posts

    def acknowledged(self, box: Box, up_to: int) -> None:
        """The receiver will never need the messages of the box up to this number again."""
        sent = self._sent.get(box)
        if sent is None:
            return
        while sent and sent[0][0] <= up_to:
            number, size = sent.popleft()
            self._sent_bytes -= size
            self._acknowledged[box] = number
            self._delivered.append((box, number))
        if not sent:
            del self._sent[box]

    def lost(self) -> None:
        """The connection is: the next one begins with what is not acknowledged."""
        for box in self._sent:
            self._unsent[box] = None
        self._sent.clear()
        self._places.clear()
        self._sent_bytes = 0

    def take_delivered(self) -> list[tuple[Box, int]]:
        """Messages whose rows may go."""
        delivered, self._delivered = self._delivered, []
        return delivered


class Connection:
    """What has come over one connection, and what is to be acknowledged on it."""

    def __init__(self, wake: Callable[[], object]) -> None:
        """``wake``: there is something to acknowledge."""
        self.received: dict[Box, int] = {}
        self._acks: dict[Box, int] = {}
        self._wake = wake

    def acknowledge(self, box: Box, up_to: int) -> None:
        """With the next frame."""
        first = not self._acks
        self._acks[box] = up_to
        if first:
            self._wake()

    def take_acks(self) -> list[tuple[Box, int]]:
        """What to acknowledge now."""
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

    def begin(self, wake: Callable[[], object]) -> Connection:
        """A sender has connected; until ``end``."""
        connection = Connection(wake)
        self._connections.add(connection)
        return connection

    def end(self, connection: Connection) -> None:
        """It is closed; what was received over it stays."""
        self._connections.discard(connection)

    def take(self, connection: Connection, posts: Iterable[Post]) -> None:
        """Keep what is new of these until it is read. Raises BrokenConnection for a gap, or for another's partition."""
        for box, after, number, packed in posts:
            if box.partition not in self._mine:
                raise BrokenConnection(f"a message for partition {box.partition}, which another worker holds")
            last = connection.received.get(box, 0)
            if number <= last:
                continue
            if after != last:
                raise BrokenConnection(f"after message {last} comes the one behind {after}")
            connection.received[box] = number
            if number > (self._taken.get(box) or self._durable_up_to(box)):
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
                    if box in connection.received:
                        connection.acknowledge(box, up_to)

    def _durable_up_to(self, box: Box) -> int:
        """What the store says when the process looks first is as of its start, which syncs."""
        durable = self._durable.get(box)
        if durable is None:
            durable = self._durable[box] = self._messages.read_up_to(box)
        return durable
