"""The parts of a batch that partitions get, as values and as bytes; and which facts are about a host."""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from crawlerproject.rules.url.urls import host_name
from crawlerproject.stores.protocols import OF_DOMAINS, OF_NAMES, HostFact, QueuedPage, host_of_fact
from crawlerproject.stores.redis.queue_members import bundled, place_of, single
from crawlerproject.stores.row_codec import PLACE_BYTES, pack_place

_LENGTH = Struct(">I")


_OF_HOSTS = tuple(kind for kind in HostFact if kind not in OF_DOMAINS)


def fields_of(host: str) -> list[str]:
    """What a partition keeps of a host beside its state: robots.txt of each scheme, by origin, and its facts."""
    fields = [f"http://{host}", f"https://{host}", *(kind + host for kind in _OF_HOSTS)]
    if ":" in host:
        fields += [kind + host_name(host) for kind in OF_NAMES]
    return fields


def host_of_field(name: str) -> str:
    """The host of such a field; "" for a fact of the worker."""
    return name.rpartition("://")[2] if "://" in name else host_of_fact(name)


class Arguments(NamedTuple):
    """A part of a batch, as the scripts have it (batch_scripts.py)."""

    hosts: list[bytes]  # with a queue to change
    others: list[bytes]

    def packed(self) -> bytes:
        """As one text, which the journal keeps."""
        return _joined(self.hosts) + _joined(self.others)

    @classmethod
    def unpacked(cls, packed: bytes) -> Arguments:
        """What was packed."""
        hosts, position = _taken(packed, 0)
        return cls(hosts, _taken(packed, position)[0])


@dataclass(slots=True)
class Part:
    """What one partition gets of a batch. Bundles are opened and rows removed before others are queued."""

    opened: list[tuple[str, bytes]] = field(default_factory=list)  # host, bundle; ``queued`` has what is left of it
    removed: list[QueuedPage] = field(default_factory=list)
    queued: list[QueuedPage] = field(default_factory=list)
    bundles: list[tuple[str, list[bytes]]] = field(default_factory=list)  # host, members
    keys: list[bytes] = field(default_factory=list)  # of pages that are known from now on
    new: list[bytes] = field(default_factory=list)  # the same, surely not known before
    pages: list[tuple[bytes, bytes]] = field(default_factory=list)
    hosts: dict[str, bytes] = field(default_factory=dict)
    robots: dict[str, bytes] = field(default_factory=dict)
    prints: list[bytes] = field(default_factory=list)
    messages: int = 0  # read from the inbox: they go with this batch

    def bundle(self) -> None:
        """Put together what is queued, of hosts that no worker has in memory."""
        rows: dict[str, list[QueuedPage]] = {}
        for row in self.queued:
            rows.setdefault(row.host, []).append(row)
        self.queued = []
        for host, mine in rows.items():
            bundles, rest = bundled(sorted(mine, key=place_of))
            self.bundles.append((host, bundles))
            self.queued += rest

    def arguments(self) -> Arguments:
        """As the scripts take them, but for the length of the queues' prefix, which comes first."""
        members: dict[str, list[bytes]] = {}
        for row in self.queued:
            members.setdefault(row.host, []).append(single(row))
        for host, bundles in self.bundles:
            members.setdefault(host, []).extend(bundles)
        gone = [(host, member[:PLACE_BYTES]) for host, member in self.opened]
        removed = [(row.host, pack_place(row)) for row in self.removed]
        number: dict[str, bytes] = {}
        for host in (*(host for host, _ in gone), *(host for host, _ in removed), *members):
            number.setdefault(host, str(len(number) + 1).encode())
        numbers = (gone, removed, members, self.keys, self.pages, self.hosts, self.robots, self.prints)
        arguments = [str(self.messages).encode(), *(str(len(each)).encode() for each in numbers), b"".join(self.new)]
        for host, place in (*gone, *removed):
            arguments += number[host], place
        for host, some in members.items():
            arguments += number[host], str(2 * len(some)).encode()
            for member in some:
                arguments += b"0", member
        arguments += self.keys
        for key, record in self.pages:
            arguments += key, record
        for states in (self.hosts, self.robots):
            for name, packed in states.items():
                arguments += name.encode("utf-8", "surrogatepass"), packed
        for made in self.prints:
            arguments += b"0", made
        return Arguments([host.encode("utf-8", "surrogatepass") for host in number], arguments)


def _joined(values: list[bytes]) -> bytes:
    pieces = [_LENGTH.pack(len(values))]
    for value in values:
        pieces += _LENGTH.pack(len(value)), value
    return b"".join(pieces)


def _taken(packed: bytes, position: int) -> tuple[list[bytes], int]:
    (count,) = _LENGTH.unpack_from(packed, position)
    position += _LENGTH.size
    values = []
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(packed, position)
        position += _LENGTH.size
        values.append(packed[position : position + length])
        position += length
    return values, position
