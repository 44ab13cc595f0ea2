"""What is said on a connection between two workers, as bytes: a length, what kind of frame it is, its content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

import orjson

from crawlerproject.stores.protocols import Box

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


class Kind(IntEnum):
    """Of a frame."""

    HELLO = 0
    POSTS = 1
    ACKS = 2


_KINDS = {int(kind): kind for kind in Kind}


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
    """What came over a connection is not what is to come: it must begin again."""


def hello_frame(hello: Hello) -> bytes:
    """As bytes."""
    return _frame(Kind.HELLO, orjson.dumps(hello._asdict()))


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
    return _frame(Kind.POSTS, b"".join(parts))


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
    return _frame(Kind.ACKS, b"".join([_ACK.pack(*box, up_to) for box, up_to in acks]))


def acks_of(body: bytes) -> Iterator[tuple[Box, int]]:
    """Raises BrokenConnection."""
    if len(body) % _ACK.size:
        raise BrokenConnection("a frame ends within an acknowledgement")
    for partition, outbox, up_to in _ACK.iter_unpack(body):
        yield Box(partition, outbox), up_to


def head_of(head: bytes) -> tuple[Kind, int]:
    """Of which kind a frame is, and how many bytes follow. Raises BrokenConnection."""
    size, number = HEAD.unpack(head)
    if size > MAX_BYTES or number not in _KINDS:
        raise BrokenConnection(f"a frame of {size:,} bytes, kind {number}")
    return _KINDS[number], size


def _frame(kind: Kind, body: bytes) -> bytes:
    return HEAD.pack(len(body), kind) + body
