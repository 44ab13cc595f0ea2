"""What a worker has decided and not yet sent to Redis: many changes as one, the last word on each thing."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from crawlerproject.rules.hosts import host_key
from crawlerproject.rules.warc_records import Original
from crawlerproject.stores.protocols import Changes, Fingerprint, QueuedPage
from crawlerproject.stores.redis_beat import Part, host_of_fact
from crawlerproject.stores.rows import pack_print, pack_record

Place = tuple[int, int]


def place_of(row: QueuedPage) -> Place:
    """Where a row stands in its host's queue."""
    return row.priority, row.arrival


class Pending:
    """Changes in the order of their coming, merged: applied at once they do what they would have done one by one."""

    def __init__(self) -> None:
        self.removed: dict[str, dict[Place, QueuedPage]] = {}  # by host
        self.queued: dict[str, dict[Place, QueuedPage]] = {}
        self.keys: dict[bytes, str] = {}  # new keys -> host
        self.pages: dict[bytes, tuple[str, bytes]] = {}  # key -> host, packed record
        self.hosts: dict[str, bytes] = {}
        self.robots: dict[str, bytes] = {}
        self.facts: dict[str, bytes] = {}
        self.prints: dict[tuple[str, int], bytes] = {}  # host, fingerprint -> page's key
        self.payloads: dict[bytes, Original | None] = {}
        self.letters_read: dict[int, int] = {}  # partition -> letters that this beat answers
        self.letters_out: list[tuple[int, bytes]] = []
        self.serial = -1  # of the worker's last beat when this was first sent

    def __bool__(self) -> bool:
        kept = self.removed or self.queued or self.pages or self.hosts or self.robots
        return bool(kept or self.facts or self.letters_read or self.letters_out or self.prints or self.payloads)

    def merge(self, changes: Changes) -> None:
        """Take in a later change."""
        for row in changes.removed:
            self.queued.get(row.host, {}).pop(place_of(row), None)
            self.removed.setdefault(row.host, {})[place_of(row)] = row
        for row in changes.queued:
            self.queued.setdefault(row.host, {})[place_of(row)] = row
            self.keys[row.key] = row.host
        for key, record in changes.pages:
            self.pages[key] = host_key(record.url), pack_record(record)
        self.hosts.update(changes.hosts)
        self.robots.update(changes.robots)
        self.facts.update(changes.facts)
        for made in changes.fingerprints:
            self.prints[made.host, made.value] = made.key
        for digest, original in changes.payloads:
            if original is None or self.payloads.get(digest) is None:
                self.payloads[digest] = original

    def facts_of_worker(self) -> list[tuple[str, bytes]]:
        """Facts that no partition gets."""
        return [(name, packed) for name, packed in self.facts.items() if not host_of_fact(name)]

    def overlay(self, host: str, rows: Iterable[QueuedPage]) -> list[QueuedPage]:
        """The host's rows as they will be once this is applied to ``rows``; in order."""
        removed, queued = self.removed.get(host), self.queued.get(host)
        kept = {place_of(row): row for row in rows if not removed or place_of(row) not in removed}
        if queued:
            kept.update(queued)
        return [kept[place] for place in sorted(kept)]

    def parts(self, partition: Callable[[str], int], held: Container[int]) -> dict[int, Part]:
        """By partition; facts of hosts that are not ``held`` any more are left out: what they teach is not ours."""
        parts: dict[int, Part] = {}

        def part(host: str) -> Part:
            return parts.setdefault(partition(host), Part())

        for host, rows in self.removed.items():
            part(host).removed += rows.values()
        for host, rows in self.queued.items():
            part(host).queued += rows.values()
        for key, host in self.keys.items():
            part(host).keys.append(key)
        for key, (host, packed) in self.pages.items():
            part(host).pages.append((key, packed))
        for host, packed in self.hosts.items():
            part(host).hosts[host] = packed
        for origin, packed in self.robots.items():
            part(origin.rpartition("://")[2]).robots[origin] = packed
        for name, packed in self.facts.items():
            if (host := host_of_fact(name)) and partition(host) in held:
                part(host).robots[name] = packed
        for (host, value), key in self.prints.items():
            part(host).prints.append(pack_print(Fingerprint(host, value, key)))
        for number, read in self.letters_read.items():
            parts.setdefault(number, Part()).letters = read
        return parts
