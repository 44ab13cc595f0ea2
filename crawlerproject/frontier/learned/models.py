"""What a crawl learns of hosts, one kind of fact each, and all that it learns while it runs.

A model keeps what it has learned until a commit has stored it: ``facts`` go with the next commit, ``stored`` says that
one has arrived. Facts of a commit that failed are among the next ones.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

import orjson

from crawlerproject.frontier.passage import Visit, linking_domain
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pauses import URLS_DOING
from crawlerproject.rules.row_kinds import ROW_KINDS
from crawlerproject.rules.traps.budgets import ExternalBudgets, RequisiteBudgets
from crawlerproject.rules.traps.template_yield import (
    CUT_COSTS_PAGES,
    LISTS,
    SIMILAR_COSTS_PAGES,
    HostYields,
    Trapped,
)
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.urls import host_key, host_name
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.operator_files.watched_lists import TrapAllowFile
from crawlerproject.stores.protocols import OF_NAMES, Changes, FactReader, HostFact, QueuedPage

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.duplicates import DuplicateIndex
    from crawlerproject.frontier.passage import Visit

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
        key, recent = self._key_of(host), self._recent
        if (found := recent.peek(key)) is not None:
            recent.touch(key)
        else:
            found = self._dirty.get(key) or self._storing.get(key)
            if found is None:
                packed = self._store.fact(self._kind + key)
                if packed is None and self._of_names and key != host:  # an older version kept one for each port
                    packed = self._store.fact(self._kind + host)
                found = self._fact.unpack(packed) if packed else self._fact()
            recent[key] = found
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
        """The bytes that the store keeps."""
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
        elif (
            ROW_KINDS[row.flags].is_robots
            and visit.status
            and row.url.startswith("https://")
            and self.of(row.host).error
        ):
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


logger = logging.getLogger(__name__)

# Hosts kept at hand: 2 KB each as a rule and 30 KB at most.
_TRAPS_KEPT = 20_000  # of requisites 1 KB each, and 40 KB at most
_REDIRECT = "R"  # last letter of the way to what a redirect led to
# Answers about the host or the moment, not about the page.
_SILENT = frozenset({Reason.RATE_LIMITED, Reason.CHALLENGE})


class TrapModel:
    """Answers "is this a trap?" and learns from every page. ``now`` is epoch seconds."""

    def __init__(self, store: FactReader, allow: TrapAllowFile | None = None) -> None:
        self._allow = allow or TrapAllowFile()
        self.yields = HostModel(store, HostFact.TRAPS, HostYields, _TRAPS_KEPT)
        self.external = HostModel(store, HostFact.EXTERNAL, ExternalBudgets, _TRAPS_KEPT)
        self.requisites = HostModel(store, HostFact.REQUISITES, RequisiteBudgets, _TRAPS_KEPT)
        self.models: tuple[HostModel[Any], ...] = (self.yields, self.external, self.requisites)

    # --- whether to ask -------------------------------------------------------------------------

    def allows(self, host: str, now: float) -> bool:
        """Whether the operator says that nothing of this host is a trap."""
        return self._allow.allows(host, "", now)

    def allowed(self, host: str, template: str, now: float) -> bool:
        """Whether the operator says that this is no trap, of the port or of the whole name."""
        name = host_name(host)
        return self._allow.allows(name, template, now) or (name != host and self._allow.allows(host, template, now))

    def refuses(self, host: str, url: str, now: float) -> bool:
        """Whether the budget of the URL's template, or of its host, is spent."""
        spent = self.yields.of(host).spent(url)
        return bool(spent) and self._refuses(self.yields, host, spent, spent, now)

    def refuses_shape(self, host: str, url: str, now: float) -> bool:
        """A link whose path looks endless: counted and refused, unless the operator says otherwise."""
        if self.allowed(host, "", now):
            return False
        yields = self.yields.changed(host)
        yields.shapes += 1
        yields.example = url[:500]
        return True

    def refuses_external(self, host: str, domain: str, now: float) -> bool:
        """Whether the budget of the domain that named a URL of this host is spent."""
        name = self.external.of(host).spent(domain)
        return bool(name) and self._refuses(self.external, host, name, f"@{name}", now)

    def refuses_requisite(self, host: str, url: str, domain: str, now: float) -> bool:
        """Whether the budget of a requisite's shape is spent, or of the ``domain`` that named it ("": the host's)."""
        spent = self.requisites.of(host).spent(url, domain)
        return bool(spent) and self._refuses(self.requisites, host, spent, spent, now)

    def refuses_list(self, host: str, now: float) -> bool:
        """Whether the budget of a host's sitemaps and feeds is spent."""
        return self.yields.of(host).lists.spent and self._refuses(self.yields, host, LISTS, LISTS, now)

    def _refuses(self, model: HostModel[Any], host: str, name: str, template: str, now: float) -> bool:
        """Count a refusal under what is spent, ``name``, unless the operator says that ``template`` is no trap."""
        if self.allowed(host, template, now):
            return False
        model.changed(host).refused(name)
        return True

    def admits_list(self, host: str, now: float) -> bool:
        """Take one more sitemap into the host's queue."""
        yields = self.yields.changed(host)
        if yields.lists.full and not self.allowed(host, LISTS, now):
            yields.refused(LISTS)
            return False
        yields.lists.named += 1
        return True

    # --- what pages teach -----------------------------------------------------------------------

    def learn(self, visit: Visit, now: float) -> bool:
        """Take in a visit; one that says nothing about its template is left out. Whether its text was new."""
        row, kind, cut = visit.row, ROW_KINDS[visit.row.flags], visit.too_slow
        is_render = kind.is_render
        if not visit.marks if is_render else _says_nothing(visit):
            return False
        marks = visit.marks or (int.from_bytes(visit.digest[:4], "big"),)
        read = is_render or visit.reason is Reason.FETCHED
        # It says nothing that the host had not shown, unless another site named that page.
        repeated = "" if is_render else _repeated(visit)
        if kind.is_external:
            read = read and not (kind.is_list and not visit.found) and not repeated
            return self._learn_of_external(row, marks, read, cut=cut)
        if kind.is_list and kind.is_recrawl:
            return False
        yields = self.yields.changed(row.host)
        if kind.is_list:
            # One that is kept for another host of the same owner: what its pages yield is known there.
            elsewhere = row.note.rpartition("://")[2] not in ("", row.host)
            yields.lists.fetched += not (elsewhere and visit.found)
            return False  # what it names may be
        new = read and yields.new_text(marks)
        similar = new and bool(repeated) and not self.external.of(row.host).named(repeated)
        new = new and not similar
        if visit.is_feed and not kind.is_recrawl:
            new = new and not yields.lists.spent
            yields.lists.fetched += 1
        redirected = row.hops.endswith(_REDIRECT) and host_key(row.via) == row.host
        if redirected and visit.location:
            yields.led_on(row.via, False)
        cost = CUT_COSTS_PAGES if cut else SIMILAR_COSTS_PAGES if similar else 1
        if (trapped := yields.learn(row.url, new and not cut, cost)) is not None:
            _log(row.host, trapped)
        if new and redirected:
            yields.led_on(row.via, True)
        if new and kind.is_listed:
            yields.lists.new += 1
        return new

    def _learn_of_external(self, row: QueuedPage, marks: tuple[int, ...], read: bool, *, cut: bool = False) -> bool:
        """The host itself learns nothing: neither from errors nor which texts it has shown."""
        budgets = self.external.changed(row.host)
        new = read and budgets.new_text(row.url, marks) and not self.yields.of(row.host).knows_text(marks)
        domain = linking_domain(row.host, row.via, row.flags, row.note)
        if (trapped := budgets.learn(domain, new and not cut, CUT_COSTS_PAGES if cut else 1)) is not None:
            _log(row.host, trapped)
        return new

    def learn_subrequest(self, visit: Visit, page_host: str) -> None:
        """A page in the browser, of another domain, has had this host asked for a file: charged as its links are.

        Whatever comes of it is a request; one with content that no other site has shown yet earns as a page does.
        """
        if visit.status is None and visit.reason not in URLS_DOING:
            return
        host, budgets = visit.row.host, self.external.changed(visit.row.host)
        new = visit.reason is Reason.FETCHED and not visit.too_slow
        new = new and budgets.new_text(visit.row.url, (int.from_bytes(visit.digest[:4], "big"),))
        trapped = budgets.learn(bounded_domain(page_host), new, CUT_COSTS_PAGES if visit.too_slow else 1)
        if trapped is not None:
            _log(host, trapped)

    def learn_requisite(self, visit: Visit, *, wanted: bool) -> None:
        """A page requisite was answered; ``wanted``: with what a page may use."""
        row = visit.row
        if visit.status is None or visit.reason in _SILENT:
            return
        domain, mark = linking_domain(row.host, row.via, row.flags, row.note), int.from_bytes(visit.digest[:4], "big")
        wanted, cost = wanted and not visit.too_slow, CUT_COSTS_PAGES if visit.too_slow else 1
        trapped = self.requisites.changed(row.host).learn(row.url, domain, mark, wanted=wanted, cost=cost)
        if trapped is not None:
            name = host_name(row.host)
            logger.info("%s %s is a trap among requisites from now on: %s", name, trapped.template, trapped.why)


def _log(host: str, trapped: Trapped) -> None:
    known = {"host": host, "reason": Reason.TRAP}
    logger.info("%s %s is a trap from now on: %s", host_name(host), trapped.template, trapped.why, extra=known)


def _says_nothing(visit: Visit) -> bool:
    """Whether a visit, but of a page in the browser, is no sign of what its host has."""
    kind = visit.row.kind
    if visit.shell or visit.respelled or not kind.teaches_templates or visit.reason in _SILENT or visit.status == 304:
        return True
    if visit.status is None and not (kind.is_external and visit.reason in URLS_DOING):
        return True
    return bool(visit.location) and host_key(visit.location) != visit.row.host  # a way out is worth its request


def _repeated(visit: Visit) -> str:
    """The URL of another page of the host that says nearly the same; a site that names it as canonical sets no trap."""
    found = visit.duplicate
    if found is None or found.kind == "canonical" or host_key(found.url) != visit.row.host:
        return ""
    return found.url
