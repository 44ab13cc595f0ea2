"""What workers know of their crawl, put together."""

from __future__ import annotations

import orjson

from crawlerproject.frontier.known_seeds import COMBINED, HUBS_FACT, MOVES_FACT, SCOPE_FACT, KnownSeeds, moves_of
from crawlerproject.frontier.learned.subscriptions import read_hubs
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes
from tests.stores.memory_store import MemoryStore

A, B, C = (parse(f"http://{name}.test/") for name in "abc")


def store(**seeds: str) -> MemoryStore:
    """A worker that knows these seeds (by the letter of their host) with their options."""
    made = MemoryStore()
    known = KnownSeeds(made)
    addresses = [parse(f"http://{name}.test/") for name in seeds]
    options = {address.url: seeds[address.host[0]] for address in addresses if seeds[address.host[0]]}
    known.take(addresses, addresses, options, "host")
    made.apply(Changes(facts=known.facts()))
    return made


def together(*workers: MemoryStore) -> MemoryStore:
    """One store with the combined facts."""
    made = MemoryStore()
    for name, combine in COMBINED.items():
        if found := [value for worker in workers if (value := worker.fact(name)) is not None]:
            made.apply(Changes(facts=[(name, combine(found))]))
    return made


def test_seeds_are_those_of_all_workers() -> None:
    """Each once, with the options that the first worker has for it."""
    known = KnownSeeds(together(store(a="", b="scope=path"), store(b="scope=host", c="depth=1")))
    assert (known.scope, known.hosts) == ("host", ["a.test", "b.test", "c.test"])
    assert known.unknown([A, B, C, parse("http://d.test/")]) == [parse("http://d.test/")]
    assert list(known.changed([B], [], {B.url: "scope=path"})) == []
    assert [change.kept for change in known.changed([C], [], {C.url: ""})] == ["depth=1"]


def test_one_worker_alone_is_taken_at_its_word() -> None:
    """Putting one together changes nothing."""
    one = store(a="", b="scope=path")
    assert all(together(one).fact(name) == one.fact(name) for name in COMBINED)


def test_scope_moves_and_hubs_are_those_of_all_workers() -> None:
    """What one worker found out holds for the crawl."""
    one, two = MemoryStore(), MemoryStore()
    one.apply(Changes(facts=[(SCOPE_FACT, b"a.test\nb.test"), (MOVES_FACT, orjson.dumps([("u", "v")]))]))
    two.apply(Changes(facts=[(SCOPE_FACT, b"b.test\nc.test"), (MOVES_FACT, orjson.dumps([("u", "v"), ("v", "w")]))]))
    one.apply(Changes(facts=[(HUBS_FACT, orjson.dumps({"h.test": {"asked_at": 1.0}}))]))
    two.apply(Changes(facts=[(HUBS_FACT, orjson.dumps({"h.test": {"asked_at": 2.0}, "i.test": {}}))]))
    both = together(one, two)
    assert both.fact(SCOPE_FACT) == b"a.test\nb.test\nc.test"
    assert moves_of(both) == [("u", "v"), ("v", "w")]
    assert {name: hub.asked_at for name, hub in read_hubs(both).items()} == {"h.test": 1.0, "i.test": 0.0}
