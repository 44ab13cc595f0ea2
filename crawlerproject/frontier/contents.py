"""What the crawl has archived, by content: payloads by digest, texts by fingerprint. Committed or about to be.

A capture that is not committed yet may be referred to: whatever cuts it off the archive cuts off every later capture.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawlerproject.rules.similarity import distance_bits
from crawlerproject.rules.warc_records import Original
from crawlerproject.stores.protocols import Changes, ContentStore, Fingerprint


@dataclass(frozen=True, slots=True)
class Reach:
    """Bits in which the fingerprints of near duplicates may differ."""

    within_host: int
    across_hosts: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """What a page repeats."""

    kind: str  # "exact": its payload; "canonical": it says so itself; "near": its text, but for a few bits
    url: str  # of the page that it repeats
    bits: int = 0  # in which the fingerprints differ


class Contents:
    """Finds what a page repeats. What is added reaches the store with the next commit."""

    def __init__(self, store: ContentStore, reach: Reach) -> None:
        self._store = store
        self._reach = reach
        self._payloads: dict[bytes, Original] = {}  # not in the store yet
        self._fingerprints: list[tuple[Fingerprint, str]] = []  # the same, with the page's URL

    def original(self, digest: bytes) -> Original | None:
        """The first capture of this payload."""
        return self._payloads.get(digest) or self._store.original(digest)

    def exact(self, digest: bytes, url: str) -> Duplicate | None:
        """Another page with this payload."""
        original = self.original(digest)
        return None if original is None or original.url == url else Duplicate("exact", original.url)

    def near(self, made: Fingerprint) -> Duplicate | None:
        """The page with the nearest text: of the same host if any is near enough, else of another."""
        return self._unstored(made, self._reach.within_host, same_host=True) or (
            self._stored(made, made.host, self._reach.within_host)
            or self._unstored(made, self._reach.across_hosts, same_host=False)
            or self._stored(made, "", self._reach.across_hosts)
        )

    def _unstored(self, made: Fingerprint, reach_bits: int, *, same_host: bool) -> Duplicate | None:
        for other, url in self._fingerprints:
            bits = distance_bits(other.value, made.value)
            if bits <= reach_bits and (other.host == made.host) == same_host and other.key != made.key:
                return Duplicate("near", url, bits)
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
        self._fingerprints.append((made, url))
        changes.fingerprints.append(made)

    def stored(self, changes: Changes) -> None:
        """The changes are in the store: they are found there from now on."""
        for digest, _ in changes.payloads:
            self._payloads.pop(digest, None)
        del self._fingerprints[: len(changes.fingerprints)]
