"""What a crawl learns of hosts, one kind of fact each, and all that it learns while it runs.

A model keeps what it has learned until a commit has stored it: ``facts`` go with the next commit, ``stored`` says that
one has arrived. Facts of a commit that failed are among the next ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

import orjson

from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import host_name
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import OF_NAMES, Changes, FactReader, HostFact

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.duplicates import DuplicateIndex
    from crawlerproject.frontier.learned.traps import TrapModel
    from crawlerproject.frontier.lease import Visit

# Hosts whose certificates are in memory, some 200 bytes each: those that were asked for robots.txt lately.
_CERTIFICATES_KEPT = 5_000

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


class HostModel(Generic[F]):
    """One kind of fact of every host or domain: that of busy ones in memory, all of them in the store."""

    def __init__(
        self, store: FactReader, kind: HostFact, fact: type[F], most: int, key_of: Callable[[str], str] | None = None
    ) -> None:
        """In memory are those of at most ``most`` hosts. ``key_of`` a host key is what it is kept under, by default
        what the kind says: the host key or the host name.
        """
        self._store = store
        self._kind = kind
        self._fact = fact
        self._of_names = kind in OF_NAMES
        self._key_of = key_of or (host_name if self._of_names else str)
        self._recent: LruCache[str, F] = LruCache(most)
        self._dirty: dict[str, F] = {}
        self._storing: dict[str, F] = {}  # in a commit that has not ended

    def of(self, host: str) -> F:
        """The fact of a host (a key)."""
        key = self._key_of(host)
        found = self._recent.get(key)
        if found is None:
            found = self._dirty.get(key) or self._storing.get(key)
            if found is None:
                # A version before kept a fact of a name for each of its ports.
                of_port = self._of_names and key != host and self._store.fact(self._kind + key) is None
                found = stored_fact(self._store, self._kind, self._fact, host if of_port else key)
            self._recent[key] = found
        return found

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
        if not (self._dirty or self._storing):
            return []
        self._storing |= self._dirty
        self._dirty = {}
        return [(self._kind + key, fact.pack()) for key, fact in self._storing.items()]

    def stored(self, changes: Changes, facts: Facts) -> None:
        """The last ``facts`` have reached the store; those that changed since are in the next ones."""
        self._storing.clear()


class BadCertificate(NamedTuple):
    """What was wrong with a host's certificate; nothing, as far as is known, when ``error`` is empty."""

    error: str = ""  # "expired: …"
    seen_at: float = 0.0  # epoch seconds

    def pack(self) -> bytes:
        """As the store keeps it."""
        return orjson.dumps(tuple(self)) if self.error else b""

    @classmethod
    def unpack(cls, packed: bytes) -> BadCertificate:
        """What ``pack`` wrote."""
        error, seen_at = orjson.loads(packed)
        return cls(str(error), float(seen_at))


class BadCertificates(HostModel[BadCertificate]):
    """Notes bad certificates as pages end, and takes the note back when the host has mended it."""

    def __init__(self, store: FactReader) -> None:
        super().__init__(store, HostFact.CERTIFICATE, BadCertificate, _CERTIFICATES_KEPT)

    def learn(self, visit: Visit, now: float) -> None:
        """Take in a visit that ended ``now`` (epoch seconds)."""
        row = visit.row
        if visit.reason is Reason.TLS_CERTIFICATE:
            self.replace(row.host, BadCertificate(visit.error, now))
        # A robots.txt is the first answer of a host after a while: cheaper than a look at every page.
        elif row.kind.is_robots and visit.status and row.url.startswith("https://") and self.of(row.host).error:
            self.replace(row.host, BadCertificate())


class CrawlModels:
    """One list of what is persistent, and by name what pages teach."""

    def __init__(
        self,
        frontier: Frontier,
        traps: TrapModel,
        certificates: BadCertificates,
        duplicates: DuplicateIndex,
        totals: PersistentState,
    ) -> None:
        """``totals``: of what the crawl has done."""
        self.traps, self.certificates, self.duplicates = traps, certificates, duplicates
        renders, revisits, domains, names = frontier.renders, frontier.revisits, frontier.domains, frontier.names
        self.renders, self.revisits, self.domains, self.names = renders, revisits, domains, names
        of_hosts = (*traps.models, certificates, renders, revisits, domains, names, frontier.quiet_hours)
        self.of_hosts: tuple[HostModel[Any], ...] = tuple(model for model in of_hosts if model is not None)
        self._persistent: tuple[PersistentState, ...] = (*self.of_hosts, totals, duplicates)

    def learn(self, visit: Visit, now: float) -> None:
        """Take in a visit whose page has its record: ``revisits`` learned from it when they made that."""
        if self.traps.learn(visit, now) and visit.duplicate is None:
            self.domains.yielded(visit.row.host)
        self.certificates.learn(visit, now)
        if visit.gained is not None:
            self.renders.learn(visit, visit.gained)

    def facts(self) -> Facts:
        """What the next commit stores."""
        facts: Facts = []
        for state in self._persistent:
            facts += state.facts()
        return facts

    def stored(self, changes: Changes, facts: Facts) -> None:
        """A commit of these is applied."""
        for state in self._persistent:
            state.stored(changes, facts)

    def unstored(self) -> set[str]:
        """The hosts and domains of which something is not in the store yet."""
        return {name for model in self.of_hosts for name in model.unstored()}

    def forget(self, mine: Callable[[str], bool]) -> None:
        """Drop what is in memory of hosts that other workers decide about now."""
        for model in self.of_hosts:
            model.forget(mine)
