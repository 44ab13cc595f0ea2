"""Records of pages that a worker has at hand: of those that are visited again, and of those just decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import Changes, PageRecord
from crawlerproject.stores.redis.pending import Pending
from crawlerproject.stores.row_codec import unpack_record

# As many as the pages that one step looks up, and those on their way; some 500 bytes each.
_RECORDS = 10_000


class PageRecords:
    """Of pages in partitions that are held. Not safe for threads."""

    def __init__(self, waiting: Callable[[], Sequence[Pending]]) -> None:
        """``waiting``: what Redis does not have yet, the oldest first."""
        self._waiting = waiting
        self._at_hand: LruCache[bytes, PageRecord | None] = LruCache(_RECORDS)

    def missing(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those of the pages that Redis must be asked for."""
        return [key for key in keys if key not in self._at_hand]

    def learn(self, keys: Sequence[bytes], found: Sequence[PageRecord | None]) -> None:
        """What Redis said; what was decided here meanwhile stands."""
        for key, record in zip(keys, found, strict=True):
            if key not in self._at_hand:
                self._at_hand[key] = self.unsent(key) or record

    def unsent(self, key: bytes) -> PageRecord | None:
        """The record that Redis does not have yet; None: there is none."""
        for pending in reversed(self._waiting()):
            if key in pending.pages:
                return unpack_record(pending.pages[key][1])
        return None

    def get(self, key: bytes, ask: Callable[[], PageRecord | None]) -> PageRecord | None:
        """The page's record; ``ask`` is called when it is not at hand."""
        if key in self._at_hand:
            return self._at_hand[key]
        return self.unsent(key) or ask()

    def apply(self, changes: Changes) -> None:
        """Take in what was decided here."""
        for key, record in changes.pages:
            self._at_hand[key] = record

    def forget(self) -> None:
        """Others write some of the pages from now on."""
        self._at_hand.forget(lambda _: True)
