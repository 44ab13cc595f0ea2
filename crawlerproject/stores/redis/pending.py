"""What a worker has decided and not yet sent to Redis: many changes as one, the last word on each thing."""

from __future__ import annotations

from collections.abc import Callable, Container

from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.protocols import Changes, Fingerprint, QueuedPage, host_of_fact
from crawlerproject.stores.redis.batch import Part
from crawlerproject.stores.redis.queue_members import QueuePlace, bundled, place_of
from crawlerproject.stores.row_codec import pack_print, pack_record


class Pending:
    """Changes in the order of their coming, merged: applied at once they do what they would have done one by one."""

    def __init__(self) -> None:
        self.rows = 0  # queued and removed
        self.removed: dict[str, dict[QueuePlace, QueuedPage]] = {}  # by host
        self.queued: dict[str, dict[QueuePlace, QueuedPage]] = {}
        self.bundles: dict[str, list[bytes]] = {}  # members made of queued rows; see ``bundle``
        self.opened: dict[str, dict[bytes, list[QueuedPage]]] = {}  # bundles that become single rows
        self.keys: dict[bytes, str] = {}  # keys that were not known -> host
        self.new: dict[bytes, str] = {}  # of these, keys that Redis was asked for
        self.pages: dict[bytes, tuple[str, bytes]] = {}  # key -> host, packed record
        self.hosts: dict[str, bytes] = {}
        self.robots: dict[str, bytes] = {}
        self.facts: dict[str, bytes] = {}
        self.prints: dict[tuple[str, int], bytes] = {}  # host, fingerprint -> page's key
        self.payloads: dict[bytes, Original | None] = {}
        self.messages_read: dict[int, int] = {}  # partition -> messages that this batch answers
        self.messages_out: list[tuple[int, bytes]] = []
        self.serial = -1  # of the worker's last batch when this was first sent

    def __bool__(self) -> bool:
        kept = self.removed or self.queued or self.pages or self.hosts or self.robots
        return bool(kept or self.facts or self.messages_read or self.messages_out or self.prints or self.payloads)

    def merge(self, changes: Changes) -> None:
        """Take in a later change."""
        self.rows += len(changes.removed) + len(changes.queued)
        for row in changes.removed:
            self.queued.get(row.host, {}).pop(place_of(row), None)
            self.removed.setdefault(row.host, {})[place_of(row)] = row
        for row in changes.queued:
            self.queued.setdefault(row.host, {})[place_of(row)] = row
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

    def bundle(self, behind: Callable[[str], QueuePlace | None]) -> None:
        """Put queued rows together that come after the place that ``behind`` tells for a host (None: none of them).

        From then on they count as being in Redis: who comes to one opens its bundle.
        """
        for host, rows in self.queued.items():
            if (least := behind(host)) is None:
                continue
            far = [rows.pop(place) for place in sorted(place for place in rows if place > least)]
            bundles, rest = bundled(far)
            rows.update((place_of(row), row) for row in rest)
            if bundles:
                self.bundles[host] = bundles

    def overlay(self, host: str, rows: dict[QueuePlace, QueuedPage]) -> None:
        """Make of the host's rows what they will be once this is applied; bundles are not looked into."""
        for opened in self.opened.get(host, {}).values():
            rows.update((place_of(row), row) for row in opened)
        if gone := self.removed.get(host):
            for place in [place for place in rows if place in gone]:
                del rows[place]
        rows.update(self.queued.get(host, {}))

    def parts(self, partition: Callable[[str], int], held: Container[int]) -> dict[int, Part]:
        """By partition. Of hosts that are not ``held`` any more facts and opened bundles are left out."""
        parts: dict[int, Part] = {}

        def part(host: str) -> Part:
            return parts.setdefault(partition(host), Part())

        for host, rows in self.removed.items():
            part(host).removed += rows.values()
        for host, bundles in self.opened.items():
            if partition(host) in held:
                self._open(host, bundles, part(host))
        for host, rows in self.queued.items():
            part(host).queued += rows.values()
        for host, members in self.bundles.items():
            part(host).bundles.append((host, members))
        for key, host in self.keys.items():
            part(host).keys.append(key)
        for key, host in self.new.items():
            if key not in self.pages:
                part(host).new.append(key)
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
        for number, read in self.messages_read.items():
            parts.setdefault(number, Part()).messages = read
        return parts

    def _open(self, host: str, bundles: dict[bytes, list[QueuedPage]], part: Part) -> None:
        removed, queued = self.removed.get(host, ()), self.queued.get(host, ())
        for member, rows in bundles.items():
            part.opened.append((host, member))
            part.queued += [row for row in rows if place_of(row) not in removed and place_of(row) not in queued]
