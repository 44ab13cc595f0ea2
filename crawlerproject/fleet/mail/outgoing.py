"""What one worker has to send to another: which messages, in which order, and how much at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from sys import maxsize

from crawlerproject.fleet.mail.frames import Post
from crawlerproject.stores.protocols import Box, Messages

WINDOW_BYTES = 1 << 20
"""On their way to a worker, sent and not acknowledged, with the one that exceeds it: some 7,000 links, more than a
worker takes in between two of its commits."""
SLICE_BYTES = 64 << 10
"""Read from the store in one turn of the loop: below a millisecond."""
# What a message is counted for besides its content: its place in the tables here and on the wire.
_OVERHEAD_BYTES = 200


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
            found = self._messages.of(box, self._behind(box), self._sendable(box), room)
            del self._unsent[box]
            for number, packed in found:
                if room <= 0:
                    break
                posts.append(Post(box, self._places.get(box, 0), number, packed))
                self._places[box] = number
                self._count(box, number, len(packed) + _OVERHEAD_BYTES)
                room -= len(packed) + _OVERHEAD_BYTES
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

    def _behind(self, box: Box) -> int:
        return self._places.get(box) or self._acknowledged.get(box, 0)

    def _sendable(self, box: Box) -> int:
        """Of the own outbox what is synced; the messages of others are older than the start, which syncs."""
        return self._messages.durable.last if box.outbox == self._messages.outbox else maxsize

    def _count(self, box: Box, number: int, size: int) -> None:
        self._sent.setdefault(box, deque()).append((number, size))
        self._sent_bytes += size
