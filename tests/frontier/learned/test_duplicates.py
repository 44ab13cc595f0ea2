"""What the crawl has by content: before its commit, after it, and after a commit that failed."""

from __future__ import annotations

import asyncio

import pytest

from crawlerproject.frontier.learned.duplicates import Duplicate, DuplicateIndex, NearBits
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import Address, parse
from crawlerproject.stores.protocols import Changes, Fingerprint, NearText, PageRecord
from tests.stores.memory_store import MemoryStore

ORIGINAL = Original("<urn:uuid:12345678-1234-4234-8234-123456789abc>", "http://a/1", "2026-11-21T10:11:12.123456Z")
KEY, OTHER = b"1" * 24, b"2" * 24


class Others:
    """What the workers of a fleet know: one text, and that of nothing when it is asked for 0."""

    def __init__(self) -> None:
        self.added: list[str] = []

    async def near(self, made: Fingerprint) -> NearText | None:
        """The one text."""
        return NearText(1, KEY, "http://a/1") if made.value else None

    def add(self, made: Fingerprint, url: str) -> None:
        """Remember it."""
        self.added.append(url)

    def facts(self) -> list[tuple[str, bytes]]:
        """Nothing waits."""
        return []

    def stored(self, facts: list[tuple[str, bytes]]) -> None:
        """Remember it."""
        self.added.append("stored")


@pytest.fixture
def store() -> MemoryStore:
    """Empty."""
    return MemoryStore()


@pytest.fixture
def duplicates(store: MemoryStore) -> DuplicateIndex:
    """Six bits within a host, three across."""
    return DuplicateIndex(store, NearBits(6, 3))


def test_a_payload_is_known_at_once_and_after_the_commit(store: MemoryStore, duplicates: DuplicateIndex) -> None:
    """The next page may refer to it before it is committed; the store answers later."""
    changes = Changes()
    duplicates.add_payload(b"d" * 20, ORIGINAL, changes)
    assert duplicates.original(b"d" * 20) == ORIGINAL
    assert DuplicateIndex(store, NearBits(6, 3)).original(b"d" * 20) is None  # a crash now forgets it with its capture

    store.apply(changes)
    duplicates.stored(changes, [])

    assert duplicates.original(b"d" * 20) == ORIGINAL
    assert duplicates.exact(b"d" * 20, "http://b/") == Duplicate("exact", "http://a/1")
    assert duplicates.exact(b"d" * 20, "http://a/1") is None


@pytest.mark.parametrize("committed", [False, True])
def test_what_is_named_as_canonical_is_as_near_as_a_page_of_the_host(
    store: MemoryStore, duplicates: DuplicateIndex, committed: bool
) -> None:
    """Six bits, wherever it is; another page that is nearer does not matter. Never the page itself."""
    named = parse("http://a.test/named")
    changes = Changes(pages=[(named.key, PageRecord(named.url, "fetched", 200, 0.0))])
    duplicates.add_fingerprint(Fingerprint(named.host, 0, named.key), named.url, changes)
    duplicates.add_fingerprint(Fingerprint("b.test", 0b111111, OTHER), "http://b.test/nearer", changes)
    if committed:
        store.apply(changes)
        duplicates.stored(changes, [])

    def bits(value: int, key: bytes = KEY) -> int | None:
        found = duplicates.named(Fingerprint("b.test", value, key), named)
        assert found is None or (found.kind, found.url) == ("canonical", named.url)
        return None if found is None else found.bits

    assert [bits((1 << n) - 1) for n in (0, 6, 7)] == [0, 6, None]
    assert bits(0, named.key) is None
    assert duplicates.named(Fingerprint("b.test", 0, KEY), parse("http://a.test/never-fetched")) is None


def test_in_a_fleet_another_host_is_the_others_to_know(duplicates: DuplicateIndex) -> None:
    """The nearest of their texts is canonical where the page names it."""
    named = Address("http://a/1", KEY, "a", "http")
    duplicates.add_fingerprint(Fingerprint("a", 1, KEY), named.url, Changes())
    duplicates.others = Others()
    made = Fingerprint("b", 1, OTHER)

    assert duplicates.named(made, named) is None
    assert asyncio.run(duplicates.near_elsewhere(made, named)) == Duplicate("canonical", named.url, 1)
    assert asyncio.run(duplicates.near_elsewhere(made)) == Duplicate("near", named.url, 1)


@pytest.mark.parametrize("committed", [False, True])
def test_reach_is_wider_within_a_host(store: MemoryStore, duplicates: DuplicateIndex, committed: bool) -> None:
    """Six bits at the same host, three at another, committed or not; never the page itself."""
    changes = Changes(pages=[(KEY, PageRecord("http://a/1", "fetched", 200, 0.0))])
    duplicates.add_fingerprint(Fingerprint("a", 0, KEY), "http://a/1", changes)
    if committed:
        store.apply(changes)
        duplicates.stored(changes, [])

    def bits(host: str, value: int, key: bytes = OTHER) -> int | None:
        found = duplicates.near(Fingerprint(host, value, key))
        assert found is None or found.url == "http://a/1"
        return None if found is None else found.bits

    assert [bits("a", (1 << n) - 1) for n in (0, 6, 7)] == [0, 6, None]
    assert [bits("b", (1 << n) - 1) for n in (0, 3, 4)] == [0, 3, None]
    assert bits("a", 0, KEY) is None


def test_other_workers_are_asked_and_informed(store: MemoryStore) -> None:
    """Of a fleet; a crawl alone has no others."""
    others = Others()
    fleet = DuplicateIndex(store, NearBits(6, 3), others)
    alone = DuplicateIndex(store, NearBits(6, 3))
    asked = [fleet.near_elsewhere(Fingerprint("b", value, OTHER)) for value in (1, 0)]
    fleet.add_fingerprint(Fingerprint("b", 0, OTHER), "http://b/", Changes())

    assert [asyncio.run(each) for each in asked] == [Duplicate("near", "http://a/1", 1), None]
    assert asyncio.run(alone.near_elsewhere(Fingerprint("b", 1, OTHER))) is None
    assert others.added == ["http://b/"]


def test_only_what_was_committed_leaves_memory(store: MemoryStore, duplicates: DuplicateIndex) -> None:
    """Pages that end while a commit is on its way belong to the next one."""
    first, later = Changes(), Changes()
    duplicates.add_fingerprint(Fingerprint("a", 0, KEY), "http://a/1", first)
    duplicates.add_fingerprint(Fingerprint("a", 2**64 - 1, OTHER), "http://a/2", later)

    duplicates.stored(first, [])

    assert duplicates.near(Fingerprint("a", 2**64 - 1, b"3" * 24)) == Duplicate("near", "http://a/2", 0)
    assert duplicates.near(Fingerprint("a", 0, b"3" * 24)) is None  # the store that should have it was not given it
