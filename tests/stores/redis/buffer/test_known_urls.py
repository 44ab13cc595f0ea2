"""The filter in front of the seen set: what it calls new is new."""

from __future__ import annotations

from hashlib import blake2b

from crawlerproject.stores.redis.buffer.known_urls import SeenFilter


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
