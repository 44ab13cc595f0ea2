"""What a frontier has written to others: which of its messages are to be posted now, and whose rows may go.

A message is a row until it has taken effect where it went. Whatever carries it, it is posted once it is durable, behind
the one before it in its box; a start posts again all that it finds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from sys import maxsize

from crawlerproject.stores.protocols import Box, Messages, Posted

# Read from the store at a time, so that many small messages do not exceed a window by much.
_SLICE_BYTES = 64 << 10
# What a message is counted for besides its content: its place in tables and on the wire.
_OVERHEAD_BYTES = 200


class Outboxes:
    """Of one frontier. Of what is posted and not read only the numbers are kept here."""

    def __init__(
        self,
        messages: Messages,
        read: Callable[[Box, int, int, int], list[tuple[int, bytes]]] | None = None,
        receiver: Callable[[Box], str] = lambda box: "",
        window_bytes: int = maxsize,
    ) -> None:
        """``read``: as ``messages.of``, which it replaces. ``window_bytes``: for one ``receiver``, posted and not read,
        with the message that exceeds it.
        """
        self._messages, self._read = messages, read
        self._receiver, self.window_bytes = receiver, window_bytes
        self._unposted = dict.fromkeys(messages.boxes())  # may have messages behind their place, in turn
        self._places: dict[Box, int] = {}  # the last number that was posted
        self._unread: dict[Box, deque[tuple[int, int]]] = {}  # number, bytes; in order, none empty
        self._unread_bytes = Counter[str]()  # of these, by receiver
        self.full = False  # something waits until a receiver has read, as far as ``waiting`` has seen

    def wrote(self) -> None:
        """Whatever was written until now is durable, or will be before ``waiting`` is asked."""
        self._unposted |= dict.fromkeys(Box(each, self._messages.outbox) for each in self._messages.take_changed())

    def waiting(self, most_bytes: int) -> list[tuple[int, Posted]]:
        """What is to be posted now, each with its partition, until it has so many bytes. StorageError."""
        posts, chosen, self.full = list[tuple[int, Posted]](), Counter[str](), False
        for box in list(self._unposted):
            # Of the own outbox what is synced; the messages of others are older than the start.
            up_to = self._messages.durable.last if box.outbox == self._messages.outbox else maxsize
            to, place = self._receiver(box), self._places.get(box, 0)
            at, after = place, place if box in self._unread else 0
            while (most := min(most_bytes, self.window_bytes - self._unread_bytes[to] - chosen[to], _SLICE_BYTES)) > 0:
                found = (self._read or self._messages.of)(box, at, up_to, most)
                for number, packed in found:
                    posts.append((box.partition, Posted(box.outbox, number, packed, after)))
                    at = after = number
                size = post_bytes(posts[len(posts) - len(found) :])
                chosen[to] += size
                most_bytes -= size
                if not found:
                    if at == place:
                        del self._unposted[box]
                    break
            self.full = self.full or self._unread_bytes[to] + chosen[to] >= self.window_bytes
        return posts

    def are_posted(self, posts: Iterable[tuple[int, Posted]]) -> None:
        """These are in inboxes. Their boxes may have more, which comes behind that of others."""
        for post in posts:
            box, size = Box(post[0], post[1].outbox), post_bytes([post])
            self._places[box] = post[1].number
            self._unread.setdefault(box, deque()).append((post[1].number, size))
            self._unread_bytes[self._receiver(box)] += size
            self._unposted.pop(box, None)
            self._unposted[box] = None

    def unread(self) -> list[Box]:
        """Those with messages that are posted and have not taken effect, as far as it is known here."""
        return list(self._unread)

    def unread_by(self) -> list[str]:
        """The receivers that have not read all that is, or is to be, posted for them."""
        return sorted(set(map(self._receiver, [*self._unposted, *self._unread])))

    def forget(self, box: Box, up_to: int) -> list[tuple[Box, int]]:
        """The receiver will never need the messages of the box up to this number again: their rows may go."""
        may_go, unread = list[tuple[Box, int]](), self._unread.get(box, deque())
        while unread and unread[0][0] <= up_to:
            number, size = unread.popleft()
            self._unread_bytes[self._receiver(box)] -= size
            may_go.append((box, number))
        if not unread:
            self._unread.pop(box, None)
        return may_go


def post_bytes(posts: Iterable[tuple[int, Posted]]) -> int:
    """What they are counted for."""
    return sum(len(each.packed) + _OVERHEAD_BYTES for _, each in posts)
