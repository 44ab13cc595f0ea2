"""What the crawl has archived, by content: payloads by digest, texts by fingerprint. Committed or about to be.

A capture that is not committed yet may be referred to: whatever cuts it off the archive cuts off every later capture.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.text_likeness import near
from crawlerproject.rules.url.urls import Address
from crawlerproject.stores.protocols import Changes, Fingerprint, FrontierStore, NearText


@dataclass(frozen=True, slots=True)
class NearBits:
    """Bits in which the fingerprints of near duplicates may differ."""

    within_host: int
    across_hosts: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """What a page repeats."""

    # "exact": its payload; "near": its text, but for a few bits; "canonical": likewise, and it says so itself
    kind: str
    url: str  # of the page that it repeats
    bits: int = 0  # in which the fingerprints differ


class OtherWorkers(Protocol):
    """The texts that all workers of a fleet archived."""

    async def near(self, made: Fingerprint) -> NearText | None:
        """The nearest text of another page; None as well when that cannot be found out."""

    def add(self, made: Fingerprint, url: str) -> None:
        """A page was archived that repeats no other."""

    def facts(self) -> list[tuple[str, bytes]]:
        """What the next commit stores: the others may not know of all that was added."""

    def stored(self, facts: list[tuple[str, bytes]]) -> None:
        """These facts are committed."""


Ahead = Callable[[bytes], Awaitable[None]]
"""Fetches the first capture of the payload with this sha1 from a store that is far away."""


class _Unstored(NamedTuple):
    """An archived page whose fingerprint the store does not have yet."""

    value: int
    key: bytes
    url: str


class DuplicateIndex:
    """Finds what a page repeats. What is added reaches the store with the next commit."""

    def __init__(
        self, store: FrontierStore, reach: NearBits, others: OtherWorkers | None = None, ahead: Ahead | None = None
    ) -> None:
        """``others``: of a fleet, whose workers each have the texts of some hosts; they know those of all.

        ``ahead`` is to be awaited before a page is compared.
        """
        self.others = others
        self.ahead = ahead
        self._store = store
        self._reach = reach
        self._payloads: dict[bytes, Original] = {}  # not in the store yet
        self._missing = b""  # the digest last asked for in vain: a page asks when it is compared and when it is written
        self._fingerprints: dict[str, list[_Unstored]] = defaultdict(list)  # by host, likewise
        self._all: list[_Unstored] = []  # of all hosts, in the order in which they came
        self._values = array("Q")  # of these

    def original(self, digest: bytes) -> Original | None:
        """The first capture of this payload."""
        found = self._payloads.get(digest)
        if found is None and digest != self._missing:
            found = self._store.original(digest)
            if found is None:
                self._missing = digest
        return found

    def exact(self, digest: bytes, url: str) -> Duplicate | None:
        """Another page with this payload."""
        original = self.original(digest)
        return None if original is None or original.url == url else Duplicate("exact", original.url)

    def near(self, made: Fingerprint) -> Duplicate | None:
        """The page with the nearest text: of the same host if any is near enough, else of another known here."""
        host, wanted, own = made
        within, across = self._reach.within_host, self._reach.across_hosts
        for value, key, url in self._fingerprints.get(host, ()):
            if (bits := (value ^ wanted).bit_count()) <= within and key != own:
                return Duplicate("near", url, bits)
        return (
            self._stored(made, host, within)
            or (self._unstored_anywhere(made, across) if self._all else None)
            or (self._stored(made, "", across) if self.others is None else None)
        )

    def named(self, made: Fingerprint, canonical: Address) -> Duplicate | None:
        """The page that one names as its canonical; None unless that is archived and its text is near, on any host.

        What is named is often not there, or another page: the same front page on all of a site, the site that a mirror
        was copied from.
        """
        if canonical.key == made.key or (self.others is not None and canonical.host != made.host):
            return None  # itself; or a page that another worker may have, which ``near_elsewhere`` knows
        within = self._reach.within_host
        for value, key, url in self._fingerprints.get(canonical.host, []):
            if key == canonical.key and (bits := (value ^ made.value).bit_count()) <= within:
                return Duplicate("canonical", url, bits)
        record = self._store.page(canonical.key, canonical.host)
        if record is None:
            return None
        near = self._store.near(canonical.host, made.value, within)
        return next((Duplicate("canonical", record.url, bits) for bits, key in near if key == canonical.key), None)

    async def near_elsewhere(self, made: Fingerprint, canonical: Address | None = None) -> Duplicate | None:
        """The nearest text among all hosts of a fleet."""
        found = await self.others.near(made) if self.others is not None else None
        if found is None:
            return None
        named = canonical is not None and canonical.key == found.key
        return Duplicate("canonical" if named else "near", found.url, found.bits)

    def _unstored_anywhere(self, made: Fingerprint, reach_bits: int) -> Duplicate | None:
        for place, differ in near(self._values, made.value, reach_bits):
            page = self._all[place]
            if page.key != made.key:
                return Duplicate("near", page.url, differ)
        return None

    def _stored(self, made: Fingerprint, host: str, reach_bits: int) -> Duplicate | None:
        for bits, key in self._store.near(host, made.value, reach_bits):
            record = self._store.page(key) if key != made.key else None
            if record is not None:
                return Duplicate("near", record.url, bits)
        return None

    def add_payload(self, digest: bytes, original: Original, changes: Changes) -> None:
        """A payload was captured for the first time."""
        self._payloads[digest] = original
        changes.payloads.append((digest, original))

    def add_fingerprint(self, made: Fingerprint, url: str, changes: Changes) -> None:
        """A page was archived that repeats no other."""
        page = _Unstored(made.value, made.key, url)
        self._fingerprints[made.host].append(page)
        self._all.append(page)
        self._values.append(made.value)
        changes.fingerprints.append(made)
        if self.others is not None:
            self.others.add(made, url)

    def facts(self) -> list[tuple[str, bytes]]:
        """What the next commit stores, beside the changes."""
        return self.others.facts() if self.others is not None else []

    def stored(self, changes: Changes, facts: list[tuple[str, bytes]]) -> None:
        """These are in the store: the changes are found there from now on."""
        if self.others is not None:
            self.others.stored(facts)
        self._missing = b""
        for digest, _ in changes.payloads:
            self._payloads.pop(digest, None)
        count = len(changes.fingerprints)  # they are stored in the order in which they came
        del self._all[:count], self._values[:count]
        for made in changes.fingerprints:
            pages = self._fingerprints[made.host]
            del pages[0]
            if not pages:
                del self._fingerprints[made.host]
