"""A change, cut into the parts that partitions get, and those parts as bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct

from crawlerproject.rules.hosts import host_key
from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.rows import next_place, pack_place, pack_print, pack_queued, pack_record

_LENGTH = Struct(">I")


# Facts whose name begins so and ends with a host are that host's, and move with its partition (frontier/trap_desk.py,
# frontier/certificate_book.py, frontier/renders.py, frontier/revisits.py).
_HOST_FACTS = ("traps/", "certificate/", "render/", "visits:")


def host_of_fact(name: str) -> str:
    """The host that a fact is about; "" when it is the worker's."""
    return next((name.removeprefix(kind) for kind in _HOST_FACTS if name.startswith(kind)), "")


@dataclass(slots=True)
class Part:
    """What one partition gets of a beat. Rows are removed before others are queued."""

    removed: list[QueuedPage] = field(default_factory=list)
    queued: list[QueuedPage] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)  # of pages that are known from now on
    pages: list[tuple[bytes, bytes]] = field(default_factory=list)
    hosts: dict[str, bytes] = field(default_factory=dict)
    robots: dict[str, bytes] = field(default_factory=dict)
    prints: list[bytes] = field(default_factory=list)
    letters: int = 0  # read from the inbox: they go with this beat

    def packed(self) -> bytes:
        """Hosts with a queue to change, then the arguments of the APPLY script from its sixth on; see ``unpacked``."""
        hosts = list(dict.fromkeys([row.host for row in (*self.removed, *self.queued)]))
        number = {host: str(index).encode() for index, host in enumerate(hosts, 1)}
        arguments = [str(self.letters).encode()]
        numbers = (self.removed, self.queued, self.keys, self.pages, self.hosts, self.robots, self.prints)
        arguments += [str(len(each)).encode() for each in numbers]
        for row in self.removed:
            arguments += number[row.host], pack_place(row), next_place(row)
        for row in self.queued:
            arguments += number[row.host], pack_place(row) + pack_queued(row)
        arguments += self.keys
        for key, record in self.pages:
            arguments += key, record
        for states in (self.hosts, self.robots):
            for name, packed in states.items():
                arguments += name.encode("utf-8", "surrogatepass"), packed
        arguments += self.prints
        return _joined([host.encode("utf-8", "surrogatepass") for host in hosts]) + _joined(arguments)


def unpacked(packed: bytes) -> tuple[list[bytes], list[bytes]]:
    """The hosts and the arguments that ``Part.packed`` joined."""
    hosts, position = _taken(packed, 0)
    arguments, _ = _taken(packed, position)
    return hosts, arguments


def cut(changes: Changes, partition: Callable[[str], int]) -> dict[int, Part]:
    """The parts of a change by partition; ``partition`` tells that of a host."""
    parts: dict[int, Part] = {}

    def part(host: str) -> Part:
        number = partition(host)
        if number not in parts:
            parts[number] = Part()
        return parts[number]

    for row in changes.removed:
        part(row.host).removed.append(row)
    for row in changes.queued:
        found = part(row.host)
        found.queued.append(row)
        found.keys.append(row.key)
    for key, record in changes.pages:
        part(host_key(record.url)).pages.append((key, pack_record(record)))
    for host, packed in changes.hosts:
        part(host).hosts[host] = packed
    for origin, packed in changes.robots:
        part(origin.rpartition("://")[2]).robots[origin] = packed
    for name, packed in changes.facts:
        if host := host_of_fact(name):
            part(host).robots[name] = packed
    for made in changes.fingerprints:
        part(made.host).prints.append(pack_print(made))
    return parts


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
