"""A table that forgets what was not used for the longest time."""

from __future__ import annotations

from crawlerproject.runtime.lru import LruCache, WeighedCache


def test_what_was_used_stays() -> None:
    """Setting and getting count; being looked for with ``in`` does not."""
    table: LruCache[str, int] = LruCache(3)
    for number, key in enumerate("abc"):
        table[key] = number
    assert "a" in table
    assert table["b"] == 1
    table["d"] = 3
    assert [key in table for key in "abcd"] == [False, True, True, True]
    assert table.get("c") == 2
    assert table.get("a") is None
    table["e"] = 4
    assert (table.get("b"), table.get("c"), table.get("d"), table.get("e")) == (None, 2, 3, 4)


def test_some_are_forgotten_on_purpose() -> None:
    """Every entry of such a key, no other."""
    table: LruCache[int, str] = LruCache(9)
    for number in range(9):
        table[number] = str(number)
    table.forget(lambda number: number % 2 == 0)
    assert [number for number in range(9) if number in table] == [1, 3, 5, 7]


def test_a_look_is_no_use() -> None:
    """``peek`` is a dictionary's ``get``: what it finds may be the next to go."""
    cache: LruCache[str, int] = LruCache(2)
    cache["a"], cache["b"] = 1, 2
    assert (cache.peek("a"), cache.peek("x", 9)) == (1, 9)
    cache["c"] = 3
    assert "a" not in cache


def test_what_entries_weigh_is_bounded() -> None:
    """One that is heavier than all may be is not kept; one that is replaced or forgotten weighs nothing more."""
    table: WeighedCache[str, bytes] = WeighedCache(3, 10, len)
    table["a"] = table["b"] = b"....."
    assert table.weight == 10
    table["a"] = b".."
    table["c"] = b"..."
    assert (table.weight, list(table._table)) == (10, ["b", "a", "c"])
    table["d"] = b""
    assert (table.weight, list(table._table)) == (5, ["a", "c", "d"])
    table.forget("c".__eq__)
    assert (table.weight, list(table._table)) == (2, ["a", "d"])
    table["e"] = b"..........."
    assert (table.weight, list(table._table)) == (0, [])
