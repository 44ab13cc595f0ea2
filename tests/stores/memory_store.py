"""The frontier store that forgets: the same contract in dictionaries, for tests and trials."""

from __future__ import annotations

import uuid
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence

from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.protocols import Applied, Box, Changes, Due, Fingerprint, Near, PageRecord, QueuedPage

_Place = tuple[int, int]


class MemoryMessages:
    """The ``Messages`` of a MemoryStore."""

    def __init__(self) -> None:
        self.outbox = uuid.uuid4().bytes
        self.applied = self.durable = Applied()
        self._boxes: dict[Box, dict[int, bytes]] = {}  # none empty
        self._read: dict[Box, int] = {}
        self._changed: set[int] = set()

    def begin(self) -> None:
        """As after a start: the numbers of another outbox begin."""
        self.outbox = uuid.uuid4().bytes
        self.applied = self.durable = Applied()

    def boxes(self) -> list[Box]:
        """Those that hold messages, in order."""
        return sorted(self._boxes)

    def of(self, box: Box, after: int, up_to: int, most_bytes: int) -> list[tuple[int, bytes]]:
        """Messages of a box with numbers above ``after`` and not above ``up_to``; none once they have so many bytes."""
        found: list[tuple[int, bytes]] = []
        for number, packed in sorted(self._boxes.get(box, {}).items()):
            if most_bytes > 0 and after < number <= up_to:
                found.append((number, packed))
                most_bytes -= len(packed)
        return found

    def read_up_to(self, box: Box) -> int:
        """The last number that took effect here; 0 before the first."""
        return self._read.get(box, 0)

    def take_changed(self) -> set[int]:
        """The partitions with new messages since this was last called."""
        changed, self._changed = self._changed, set()
        return changed

    def apply(self, changes: Changes) -> None:
        """What a change says of messages."""
        changed, last = self.applied
        if changes.messages or changes.read:
            self.applied = Applied(changed + 1, last + len(changes.messages))
        for number, (partition, packed) in enumerate(changes.messages, last + 1):
            self._boxes.setdefault(Box(partition, self.outbox), {})[number] = packed
            self._changed.add(partition)
        self._read.update(changes.read)
        for box, number in changes.delivered:
            messages = self._boxes.get(box, {})
            if messages.pop(number, None) is not None and not messages:
                del self._boxes[box]


class MemoryStore:
    """A ``FrontierStore`` whose rows live and die with the object."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[_Place, QueuedPage]] = {}
        self._order: dict[str, list[_Place]] = {}  # the places of each host, sorted
        self._seen: set[bytes] = set()
        self._pages: dict[bytes, PageRecord] = {}
        self._hosts: dict[str, bytes] = {}
        self._robots: dict[str, bytes] = {}
        self._facts: dict[str, bytes] = {}
        self._fingerprints: dict[tuple[str, int], Fingerprint] = {}
        self._originals: dict[bytes, Original] = {}
        self._due: list[Due] = []  # sorted
        self.messages = MemoryMessages()

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before."""
        return [key in self._seen for key in keys]

    def head(self, host: str, limit: int, after: _Place | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after``."""
        order = self._order.get(host, [])
        start = 0 if after is None else bisect_right(order, after)
        rows = self._rows.get(host, {})
        return [rows[place] for place in order[start : start + limit]]

    def page(self, key: bytes, host: str | None = None) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first."""
        return self._pages.get(key)

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page and its key."""
        yield from list(self._pages.items())

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        return self._hosts.get(host)

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        return self._robots.get(origin)

    def fact(self, name: str) -> bytes | None:
        """A crawl-wide fact."""
        return self._facts.get(name)

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """The host's fingerprints within ``bits`` of ``value``, nearest first; "": those of all hosts."""
        near: dict[int, Near] = {}
        for made in self._fingerprints.values():
            differ = (made.value ^ value).bit_count()
            if differ <= bits and host in ("", made.host):
                near[made.value] = Near(differ, made.key)
        return sorted(near.values())

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1."""
        return self._originals.get(digest)

    def hosts_with_work(self) -> Iterator[str]:
        """Every host with at least one queued row, each once."""
        return iter(sorted(self._rows))

    def due(self, limit: int, after: Due) -> list[Due]:
        """The first ``limit`` places behind the place ``after``, by moment and then by name."""
        start = bisect_right(self._due, after)
        return self._due[start : start + limit]

    def is_due(self, place: Due) -> bool:
        """Whether the host has this very place."""
        at = bisect_left(self._due, place)
        return self._due[at : at + 1] == [place]

    def packed_hosts(self, hosts: Sequence[str]) -> list[bytes | None]:
        """As ``host`` for each of them."""
        return [self._hosts.get(host) for host in hosts]

    def apply(self, changes: Changes) -> None:
        """Apply all of it: rows are removed before others are queued."""
        for row in changes.removed:
            self._remove(row)
        for row in changes.queued:
            self._queue(row)
        for key, record in changes.pages:
            self._seen.add(key)
            self._pages[key] = record
        self._hosts.update(changes.hosts)
        self._robots.update(changes.robots)
        self._facts.update(changes.facts)
        self._fingerprints.update({(made.host, made.value): made for made in changes.fingerprints})
        for digest, original in changes.payloads:
            if original is None:
                self._originals.pop(digest, None)
            else:
                self._originals[digest] = original
        for host, before, after in changes.due:
            if before is not None and self.is_due(place := Due(before, host)):
                self._due.remove(place)
            if after is not None and not self.is_due(place := Due(after, host)):
                insort(self._due, place)
        self.messages.apply(changes)

    def sync(self) -> None:
        """Nothing here survives a power loss, but for what is said of messages."""
        self.messages.durable = self.messages.applied

    def close(self) -> None:
        """Nothing is held open."""

    def _queue(self, row: QueuedPage) -> None:
        place = row.priority, row.arrival
        rows = self._rows.setdefault(row.host, {})
        if place not in rows:
            insort(self._order.setdefault(row.host, []), place)
        rows[place] = row
        self._seen.add(row.key)

    def _remove(self, row: QueuedPage) -> None:
        place = row.priority, row.arrival
        rows = self._rows.get(row.host, {})
        if rows.pop(place, None) is None:
            return
        self._order[row.host].remove(place)
        if not rows:
            del self._rows[row.host], self._order[row.host]
