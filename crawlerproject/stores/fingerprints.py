"""Fingerprints of texts: those of the hosts used last in memory, eight bytes a page, and what is known of each text."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from crawlerproject.rules.text_likeness import near

# 32 MB: the 10,000 hosts of a broad crawl with 400 pages each. A host that fell out is read again, 0.25 µs a page.
MAX_FINGERPRINTS = 4_000_000
# An empty host costs about 200 bytes as well.
MAX_HOSTS = 50_000


class Text(NamedTuple):
    """A page that repeats no other, by its text."""

    value: int  # its fingerprint, 64 bits
    key: bytes  # the page's, 24 bytes
    url: str


class NearText(NamedTuple):
    """A page whose fingerprint is near the one that was asked about."""

    bits: int  # in which they differ
    key: bytes  # the page's
    url: str


class HostFingerprints:
    """A host's pages are compared one by one: exact for every distance, 10 µs for 10,000 of them."""

    def __init__(
        self,
        load: Callable[[str], array[int]],
        max_fingerprints: int = MAX_FINGERPRINTS,
        max_hosts: int = MAX_HOSTS,
    ) -> None:
        self._load = load
        self._max_fingerprints = max_fingerprints
        self._max_hosts = max_hosts
        self._hosts: OrderedDict[str, array[int]] = OrderedDict()
        self._count = 0

    def __contains__(self, host: str) -> bool:
        return host in self._hosts

    def near(self, host: str, value: int, bits: int) -> list[tuple[int, int]]:
        """The host's fingerprints within ``bits`` of ``value``: (bits that differ, fingerprint), nearest first."""
        if host not in self._hosts:
            self.put(host, self._load(host))
        self._hosts.move_to_end(host)
        values = self._hosts[host]
        return sorted({(differ, values[place]) for place, differ in near(values, value, bits)})

    def put(self, host: str, values: array[int]) -> None:
        """All fingerprints of a host that is not in memory."""
        self._hosts[host] = values
        self._count += len(values)
        while len(self._hosts) > 1 and (self._count > self._max_fingerprints or len(self._hosts) > self._max_hosts):
            self._count -= len(self._hosts.popitem(last=False)[1])

    def add(self, host: str, value: int) -> None:
        """A fingerprint that the store has now; a host that is not in memory will be loaded with it."""
        values = self._hosts.get(host)
        if values is not None:
            values.append(value)
            self._count += 1
