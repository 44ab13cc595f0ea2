"""One kind of fact of every host: that of busy hosts in memory, all of them in the store.

A model keeps what it has learned until a commit has stored it: ``facts`` go with the next commit, ``stored`` says that
one has arrived. Facts of a commit that failed are among the next ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

from crawlerproject.rules.url.urls import host_name
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import OF_NAMES, Changes, FactReader, HostFact

Facts = list[tuple[str, bytes]]


class PersistentState(Protocol):
    """What each commit stores a part of."""

    def facts(self) -> Facts:
        """What the next commit stores."""

    def stored(self, changes: Changes, facts: Facts) -> None:
        """A commit of these is applied."""


class Packed(Protocol):
    """A fact; made without arguments it is that of a host of which nothing is known."""

    def pack(self) -> bytes: ...

    @classmethod
    def unpack(cls, packed: bytes, /) -> Self: ...


F = TypeVar("F", bound=Packed)


def stored_fact(store: FactReader, kind: HostFact, fact: type[F], key: str) -> F:
    """A fact as of the last commit."""
    packed = store.fact(kind + key)
    return fact.unpack(packed) if packed else fact()


def _itself(host: str) -> str:
    return host


class HostModel(Generic[F]):
    """What is known of one kind of fact, by host or domain."""

    def __init__(
        self,
        store: FactReader,
        kind: HostFact,
        fact: type[F],
        most: int,
        key_of: Callable[[str], str] | None = None,
    ) -> None:
        """In memory are those of at most ``most`` hosts. ``key_of`` a host key is what it is kept under, by default
        what the kind says: the host key or the host name.
        """
        self._store = store
        self._kind = kind
        self._fact = fact
        self._of_names = kind in OF_NAMES
        self._key_of = key_of or (host_name if self._of_names else _itself)
        self._recent: LruCache[str, F] = LruCache(most)
        self._dirty: dict[str, F] = {}
        self._storing: dict[str, F] = {}  # in a commit that has not ended

    def of(self, host: str) -> F:
        """The fact of a host (a key)."""
        key = self._key_of(host)
        found = self._recent.get(key)
        if found is None:
            found = self._recent[key] = self._load(key, host)
        return found

    def _load(self, key: str, host: str) -> F:
        if (found := self._dirty.get(key)) is not None or (found := self._storing.get(key)) is not None:
            return found
        if self._of_names and key != host and self._store.fact(self._kind + key) is None:
            key = host  # of a version that kept a fact for each port
        return stored_fact(self._store, self._kind, self._fact, key)

    def changed(self, host: str) -> F:
        """The fact of a host, which its caller changes: the next commit stores it."""
        found = self._dirty[self._key_of(host)] = self.of(host)
        return found

    def replace(self, host: str, fact: F) -> None:
        """A host has a new fact: the next commit stores it."""
        key = self._key_of(host)
        self._recent[key] = self._dirty[key] = fact

    def unstored(self) -> set[str]:
        """The keys of facts that are not in the store yet."""
        return self._dirty.keys() | self._storing.keys()

    def forget(self, mine: Callable[[str], bool]) -> None:
        """Drop the facts in memory of hosts that other workers decide about now."""
        self._recent.forget(lambda key: not mine(key))

    def facts(self) -> Facts:
        """What the next commit stores."""
        self._storing |= self._dirty
        self._dirty = {}
        return [(self._kind + key, fact.pack()) for key, fact in self._storing.items()]

    def stored(self, changes: Changes, facts: Facts) -> None:
        """The last ``facts`` have reached the store; those that changed since are in the next ones."""
        self._storing.clear()
