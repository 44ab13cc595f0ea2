"""Keys of URLs that were found lately and are known: most links of a page repeat those of the page before."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 65_536  # of each of the two generations; some 120 bytes a key, so 16 MB at most


class RecentKeys:
    """A set that forgets: when the younger generation is full it becomes the older one, whose keys are dropped."""

    __slots__ = ("_most", "_older", "_younger")

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._younger: set[bytes] = set()
        self._older: set[bytes] = set()

    def __contains__(self, key: bytes) -> bool:
        return key in self._younger or key in self._older

    def add(self, keys: Iterable[bytes]) -> None:
        """Remember keys, which must be in the store: what is remembered is never asked of it."""
        self._younger.update(keys)
        if len(self._younger) > self._most:
            self._older, self._younger = self._younger, set()
