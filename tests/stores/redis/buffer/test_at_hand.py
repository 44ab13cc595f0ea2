"""What is at hand of hosts: asked for once, never older than what was decided here."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.protocols import Changes, Comparison, Fingerprint, Near, PageRecord
from crawlerproject.stores.redis.buffer.at_hand import SeenFilter
from crawlerproject.stores.redis.buffer.buffered_store import BufferedStore
from crawlerproject.stores.redis.redis_store import RedisStore
from tests.stores.redis_crawls import LEASE_MS

HOSTS = [f"h{number}.example" for number in range(4)]


@pytest.fixture
def ahead(store: RedisStore) -> BufferedStore:
    """What a worker sees of a crawl in which each host is known a little."""
    before = BufferedStore(store)
    robots = [(f"https://{host}", b"rules of " + host.encode()) for host in HOSTS]
    before.apply(Changes(robots=robots, facts=[(f"traps/{host}", b"yields") for host in HOSTS]))
    before.sync()
    return BufferedStore(store)


def asked(ahead: BufferedStore) -> int:
    """What the worker has cost in round trips."""
    return ahead.store.link.round_trips


def test_one_round_trip_for_many_hosts_and_none_afterwards(ahead: BufferedStore) -> None:
    """Also for what a host does not have, and for a host that nothing is known of."""
    began = asked(ahead)
    ahead.at_hand([*HOSTS, "new.example"])
    assert asked(ahead) == began + 1

    for host in HOSTS:
        assert ahead.robots(f"https://{host}") == b"rules of " + host.encode()
        assert ahead.robots(f"http://{host}") is None
        assert ahead.fact(f"traps/{host}") == b"yields"
        assert ahead.fact(f"certificate/{host}") is None
    assert ahead.robots("http://new.example") is None
    ahead.at_hand(HOSTS)
    assert asked(ahead) == began + 1


def test_what_was_decided_here_stands(ahead: BufferedStore) -> None:
    """Before it is sent and after, empty values too; what has been forgotten is asked for again."""
    ahead.apply(Changes(robots=[("https://h0.example", b"newer")], facts=[("traps/h0.example", b"")]))
    ahead.at_hand(HOSTS)
    for _ in range(2):
        assert ahead.robots("https://h0.example") == b"newer"
        assert ahead.fact("traps/h0.example") == b""
        ahead.sync()
    fresh = BufferedStore(ahead.store)
    assert (fresh.robots("https://h0.example"), fresh.fact("traps/h0.example")) == (b"newer", b"")


def test_a_partition_that_goes_takes_its_fields_along(ahead: BufferedStore) -> None:
    """Another worker writes them from then on: they are asked for each time, until it comes back."""
    ahead.at_hand(HOSTS)
    partition = ahead.store.partition(HOSTS[0])
    ahead.give_back(partition)
    began = asked(ahead)
    ahead.at_hand(HOSTS[:1])
    assert asked(ahead) == began
    for times in (1, 2):
        assert ahead.fact(f"traps/{HOSTS[0]}") == b"yields"
        assert asked(ahead) == began + times
    assert ahead.store.acquire(partition, LEASE_MS)
    began = asked(ahead)
    ahead.at_hand(HOSTS[:1])
    assert asked(ahead) == began + 1


KEYS = [bytes([number]) * 24 for number in range(1, 5)]
ORIGINAL = Original("<urn:uuid:00000000-0000-4000-8000-000000000001>", "http://h0.example/", "2026-01-01T00:00:00Z")


@pytest.fixture
def archived(ahead: BufferedStore) -> BufferedStore:
    """A worker to which it is unknown that three pages were archived; the third names the second as canonical."""
    before = BufferedStore(ahead.store)
    pages = [(key, PageRecord(f"http://{HOSTS[0]}/{key[0]}", "ok", 200, 1.0)) for key in KEYS[:3]]
    prints = [Fingerprint(HOSTS[0], 0b111 << number, key) for number, key in enumerate(KEYS[:2])]
    before.apply(Changes(pages=pages, payloads=[(b"d" * 20, ORIGINAL)], fingerprints=prints))
    before.sync()
    return BufferedStore(ahead.store)


def test_what_is_compared_is_there_after_three_round_trips(archived: BufferedStore) -> None:
    """For many pages; comparing them costs none then, nor does a second page's of a host whose pages repeat nothing."""
    began = asked(archived)
    pages = [Comparison(b"d" * 20, HOSTS[0], 0b111, KEYS[2]), Comparison(b"n" * 20, HOSTS[1], 0b1)]
    archived.compare_ahead(pages, 3)
    assert asked(archived) == began + 3

    assert (archived.original(b"d" * 20), archived.original(b"n" * 20)) == (ORIGINAL, None)
    assert archived.near(HOSTS[0], 0b111, 3) == [Near(0, KEYS[0]), Near(2, KEYS[1])]
    assert archived.near(HOSTS[1], 0b1, 3) == []
    found = [archived.page(key) for key in KEYS[:2]] + [archived.page(KEYS[2], HOSTS[0])]
    assert [page and page.url for page in found] == [f"http://{HOSTS[0]}/{number}" for number in (1, 2, 3)]
    assert asked(archived) == began + 3
    archived.compare_ahead([Comparison(b"m" * 20, HOSTS[1], 0b11)], 3)
    assert asked(archived) == began + 4


def test_what_is_archived_while_redis_answers_is_compared_too(
    archived: BufferedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is sent before the answer is taken in, and the answer knows nothing of it."""
    answer = archived.store.originals_and_fingerprints

    def answers_late(*asked: Any) -> Any:
        found = answer(*asked)
        archived.apply(Changes(fingerprints=[Fingerprint(HOSTS[0], 0b1111, KEYS[3])]))
        archived.sync()
        return found

    archived.apply(Changes(fingerprints=[Fingerprint(HOSTS[1], 0b1, KEYS[2])]))
    with monkeypatch.context() as patched:
        patched.setattr(archived.store, "originals_and_fingerprints", answers_late)
        archived.compare_ahead([Comparison(b"", HOSTS[0], 0b1111), Comparison(b"", HOSTS[1], 0b1)], 3)

    assert archived.near(HOSTS[0], 0b1111, 0) == [Near(0, KEYS[3])]
    assert archived.near(HOSTS[1], 0b1, 0) == [Near(0, KEYS[2])]


def test_what_redis_did_not_say_is_asked_for_when_it_is_needed(
    archived: BufferedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host is compared whole or not at all."""
    with monkeypatch.context() as patched, pytest.raises(StorageError):
        patched.setattr(archived.store, "originals_and_fingerprints", _away)
        archived.compare_ahead([Comparison(b"d" * 20, HOSTS[0], 0b111)], 3)

    archived.apply(Changes(fingerprints=[Fingerprint(HOSTS[0], 0b1111, KEYS[3])]))
    assert archived.near(HOSTS[0], 0b111, 0) == [Near(0, KEYS[0])]
    assert archived.original(b"d" * 20) == ORIGINAL


def _away(*asked: Any) -> Any:
    raise StorageError("away")


def keys(first: int, count: int) -> list[bytes]:
    """Keys as those of pages: a hash of the host, then one of the path."""
    hosts = [blake2b(b"host %d" % number, digest_size=8).digest() for number in range(10)]
    return [hosts[n % 10] + blake2b(b"%d" % (n // 10), digest_size=16).digest() for n in range(first, first + count)]


def test_a_known_key_is_never_new_however_much_it_grows() -> None:
    """Four layers later every key ever added is still doubted, and few others are (they are told as asked)."""
    known, others, seen = keys(0, 500_000), keys(500_000, 100_000), SeenFilter()
    seen.begin(3, known[:10])
    for key in known[10:]:
        seen.add(key)

    assert not any(seen.new(known, [3] * len(known)))
    answers = seen.new(others, [3] * len(others))
    assert sum(answers) > 0.99 * len(others)
    assert seen.take_counts() == {"sure": sum(answers), "asked": len(known) + len(others) - sum(answers)}
    assert seen.take_counts() == {}
    assert len(seen._layers) == 4


def test_it_answers_for_whole_partitions_only() -> None:
    """Of others it says nothing, nor of one that was given back; a host's page is not another host's."""
    old, new, seen = keys(0, 20), keys(20, 20), SeenFilter()
    assert seen.new(new, [1] * 20) == [False] * 20
    seen.begin(1, old)
    assert seen.new(old + new, [1] * 20 + [1, 2] * 10) == [False] * 20 + [True, False] * 10
    seen.leave(1)
    assert seen.new(new, [1] * 20) == [False] * 20
    assert seen.new([], []) == []
