"""What every host's URLs and requisites yielded, and what others named of it: learned from pages, kept in the store."""

from __future__ import annotations

import logging
from typing import Any

from crawlerproject.frontier.discovered import linking_domain
from crawlerproject.frontier.learned.models import HostModel
from crawlerproject.frontier.lease import Visit
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.backoff import URLS_DOING
from crawlerproject.rules.traps.external_budgets import ExternalBudgets
from crawlerproject.rules.traps.requisite_budgets import RequisiteBudgets
from crawlerproject.rules.traps.template_yield import (
    CUT_COSTS_PAGES,
    LISTS,
    SIMILAR_COSTS_PAGES,
    HostYields,
    Trapped,
)
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.urls import host_key, host_name
from crawlerproject.stores.operator_files.watched_lists import TrapAllowFile
from crawlerproject.stores.protocols import FactReader, HostFact, QueuedPage

logger = logging.getLogger(__name__)

# Hosts kept at hand: 2 KB each as a rule and 30 KB at most.
_KEPT = 20_000  # of requisites 1 KB each, and 40 KB at most
_REDIRECT = "R"  # last letter of the way to what a redirect led to
# Answers about the host or the moment, not about the page.
_SILENT = frozenset({Reason.RATE_LIMITED, Reason.NOT_MODIFIED, Reason.CHALLENGE})


class TrapModel:
    """Answers "is this a trap?" and learns from every page. ``now`` is epoch seconds."""

    def __init__(self, store: FactReader, allow: TrapAllowFile | None = None) -> None:
        self._allow = allow or TrapAllowFile()
        self.yields = HostModel(store, HostFact.TRAPS, HostYields, _KEPT)
        self.external = HostModel(store, HostFact.STRANGERS, ExternalBudgets, _KEPT)
        self.requisites = HostModel(store, HostFact.REQUISITES, RequisiteBudgets, _KEPT)
        self.models: tuple[HostModel[Any], ...] = (self.yields, self.external, self.requisites)

    # --- whether to ask -------------------------------------------------------------------------

    def allows(self, host: str, now: float) -> bool:
        """Whether the operator says that nothing of this host is a trap."""
        return self._allow.allows(host, "", now)

    def allowed(self, host: str, template: str, now: float) -> bool:
        """Whether the operator says that this is no trap, of the port or of the whole name."""
        name = host_name(host)
        return self._allow.allows(name, template, now) or (name != host and self._allow.allows(host, template, now))

    def spends(self, host: str) -> bool:
        """Whether any budget of the host's pages is spent."""
        return self.yields.of(host).spends

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
        row, kind = visit.row, visit.row.kind
        if kind.is_render:
            if not visit.marks:
                return False
            if kind.is_external:
                return self._learn_of_external(row, visit.marks, True)
            return self._learn_own(row, self.yields.changed(row.host).new_text(visit.marks))
        if visit.shell or visit.respelled or not kind.teaches_templates or visit.reason in _SILENT:
            return False
        if visit.status is None and not (kind.is_external and visit.reason in URLS_DOING):
            return False
        if visit.location and host_key(visit.location) != row.host:
            return False  # a way out is worth its request
        marks = visit.marks or (int.from_bytes(visit.digest[:4], "big"),)
        if kind.is_external:
            read = visit.reason is Reason.FETCHED and not (kind.is_list and not visit.found)
            return self._learn_of_external(row, marks, read and not _repeated(visit), cut=visit.too_slow)
        if kind.is_list and kind.is_recrawl:
            return False
        yields = self.yields.changed(row.host)
        if kind.is_list:
            # One that is kept for another host of the same owner: what its pages yield is known there.
            elsewhere = row.note.rpartition("://")[2] not in ("", row.host)
            yields.lists.fetched += not (elsewhere and visit.found)
            return False  # what it names may be
        repeated = _repeated(visit)  # it says nothing that the host had not shown, unless another site named that page
        new = visit.reason is Reason.FETCHED and yields.new_text(marks)
        similar = new and bool(repeated) and not self.external.of(row.host).named(repeated)
        new = new and not similar
        if visit.is_feed and not kind.is_recrawl:
            new = new and not yields.lists.spent
            yields.lists.fetched += 1
        if visit.location and row.hops.endswith(_REDIRECT) and host_key(row.via) == row.host:
            yields.led_on(row.via, False)
        return self._learn_own(row, new, cut=visit.too_slow, similar=similar)

    def _learn_own(self, row: QueuedPage, new: bool, *, cut: bool = False, similar: bool = False) -> bool:
        """A page was answered: with text that the host had not shown before, or not; ``cut`` for its slowness.

        ``similar``: with a text of its own that is nearly another page's.
        """
        yields = self.yields.changed(row.host)
        cost = CUT_COSTS_PAGES if cut else SIMILAR_COSTS_PAGES if similar else 1
        if (trapped := yields.learn(row.url, new and not cut, cost)) is not None:
            _log(row.host, trapped)
        if new and row.hops.endswith(_REDIRECT) and host_key(row.via) == row.host:
            yields.led_on(row.via, True)
        if new and row.kind.is_listed:
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

    def learn_embed(self, visit: Visit, page_host: str) -> None:
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


def _repeated(visit: Visit) -> str:
    """The URL of another page of the host that says nearly the same; a site that names it as canonical sets no trap."""
    found = visit.duplicate
    if found is None or found.kind == "canonical" or host_key(found.url) != visit.row.host:
        return ""
    return found.url
