"""What is kept of every host name as one fact each: that of busy hosts at hand, all of it in the store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from crawlerproject.rules.url.hosts import host_name
from crawlerproject.stores.protocols import FactReader


class Packed(Protocol):
    """What is kept of one host."""

    def pack(self) -> bytes: ...


Kept = TypeVar("Kept", bound=Packed)


class HostFacts(Generic[Kept]):
    """What all ports of a name share; ``prefix`` and the name. ``unpack`` reads what the store has, if anything."""

    def __init__(self, store: FactReader, prefix: str, unpack: Callable[[bytes | None], Kept], most: int) -> None:
        """At hand are those of at most ``most`` hosts."""
        self._store = store
        self._prefix = prefix
        self._unpack = unpack
        self._most = most
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._dirty: dict[str, Kept] = {}
        self._storing: dict[str, Kept] = {}  # in a commit that has not ended

    def of(self, host: str) -> Kept:
        """What is kept of a host (a key), and of the other ports of its name."""
        name = host_name(host)
        found = self._kept.get(name) or self._dirty.get(name) or self._storing.get(name)
        if found is None:
            packed = self._store.fact(self._prefix + name)
            if packed is None and name != host:
                packed = self._store.fact(self._prefix + host)  # of a version that told ports apart
            found = self._unpack(packed)
        self._kept[name] = found
        self._kept.move_to_end(name)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return found

    def changed(self, host: str) -> Kept:
        """The same, which the next commit stores."""
        found = self._dirty[host_name(host)] = self.of(host)
        return found

    def unstored(self) -> set[str]:
        """Hosts of which something is not in the store yet."""
        return self._dirty.keys() | self._storing.keys()

    def forget(self, mine: Callable[[str], bool]) -> None:
        """Drop what is kept of hosts that others decide about now."""
        for host in [host for host in self._kept if not mine(host)]:
            del self._kept[host]

    def facts(self) -> list[tuple[str, bytes]]:
        """What the next commit stores."""
        self._storing |= self._dirty
        self._dirty = {}
        return [(self._prefix + host, kept.pack()) for host, kept in self._storing.items()]

    def stored(self) -> None:
        """The last ``facts`` have reached the store; those that have not are in the next ones."""
        self._storing.clear()
