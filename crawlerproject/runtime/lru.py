"""A table of bounded size that forgets what was not used for the longest time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class LruCache(Generic[_K, _V]):
    """At most so many entries."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._table: OrderedDict[_K, _V] = OrderedDict()
        self.peek = self._table.get
        """A dictionary's ``get``; what it finds does not count as used."""
        self.touch = self._table.move_to_end
        """An entry that is there counts as used."""

    def __contains__(self, key: _K) -> bool:
        return key in self._table

    def __getitem__(self, key: _K) -> _V:
        """The value, which counts as used. Raises KeyError."""
        self._table.move_to_end(key)
        return self._table[key]

    def __setitem__(self, key: _K, value: _V) -> None:
        self._table[key] = value
        self._table.move_to_end(key)
        if len(self._table) > self._most:
            self._table.popitem(last=False)

    def get(self, key: _K) -> _V | None:
        """The value, which counts as used; None when it is not there."""
        try:
            self._table.move_to_end(key)
        except KeyError:
            return None
        return self._table[key]

    def forget(self, matches: Callable[[_K], bool]) -> None:
        """Remove every entry whose key matches."""
        for key in [key for key in self._table if matches(key)]:
            del self._table[key]


class WeighedCache(LruCache[_K, _V]):
    """As well, at most so much in all of what ``weigh`` says of each value."""

    def __init__(self, most: int, most_weight: int, weigh: Callable[[_V], int]) -> None:
        super().__init__(most)
        self.weight = 0
        self._most_weight, self._weigh = most_weight, weigh

    def __setitem__(self, key: _K, value: _V) -> None:
        table = self._table
        if key in table:
            self.weight -= self._weigh(table.pop(key))
        table[key] = value
        self.weight += self._weigh(value)
        while len(table) > self._most or self.weight > self._most_weight:
            self.weight -= self._weigh(table.popitem(last=False)[1])

    def forget(self, matches: Callable[[_K], bool]) -> None:
        """Remove every entry whose key matches."""
        super().forget(matches)
        self.weight = sum(map(self._weigh, self._table.values()))
