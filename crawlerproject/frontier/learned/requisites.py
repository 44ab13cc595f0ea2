"""What the requisites of pages yielded at each host: whether one more is asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable

from crawlerproject.frontier.discovered import inventor
from crawlerproject.frontier.learned.host_model import HostModel
from crawlerproject.frontier.learned.learner import Visit
from crawlerproject.reasons import Reason
from crawlerproject.rules.traps.requisite_budgets import RequisiteBudgets
from crawlerproject.rules.traps.template_yield import CUT_COSTS_PAGES
from crawlerproject.rules.url.urls import host_name
from crawlerproject.stores.host_facts import HostFact
from crawlerproject.stores.protocols import FactReader

logger = logging.getLogger(__name__)

# Hosts kept at hand: 1 KB each as a rule and 40 KB at most.
_KEPT = 20_000
# Answers about the host or the moment, not about the requisite.
_SILENT = frozenset({Reason.RATE_LIMITED, Reason.NOT_MODIFIED, Reason.CHALLENGE})


class Requisites(HostModel[RequisiteBudgets]):
    """Their budgets, by host name."""

    def __init__(self, store: FactReader, allowed: Callable[[str, str, float], bool]) -> None:
        """``allowed(host, template, now)``: the operator says that this is no trap."""
        super().__init__(store, HostFact.REQUISITES, RequisiteBudgets, _KEPT)
        self._allowed = allowed

    def refuses(self, host: str, url: str, domain: str, now: float) -> bool:
        """Whether the budget of a requisite's shape is spent, or of the ``domain`` that named it ("": the host's)."""
        spent = self.of(host).spent(url, domain)
        if not spent or self._allowed(host, spent, now):
            return False
        self.changed(host).refused(spent)
        return True

    def admits(self, host: str, domain: str, most: int, now: float) -> bool:
        """Take one more into the host's queue, of at most ``most``."""
        return self.changed(host).admit(domain, most) or self._allowed(host, f"@{domain}", now)

    def learn(self, visit: Visit, *, wanted: bool) -> None:
        """Take in one that was answered; ``wanted``: with what a page may use."""
        row = visit.row
        if visit.status is None or visit.reason in _SILENT:
            return
        domain = inventor(row.host, row.via, row.flags, row.note)
        mark = int.from_bytes(visit.digest[:4], "big")
        cost = CUT_COSTS_PAGES if visit.cut else 1
        wanted = wanted and not visit.cut
        trapped = self.changed(row.host).learn(row.url, domain, mark, wanted=wanted, cost=cost)
        if trapped is not None:
            name = host_name(row.host)
            logger.info("%s %s is a trap among requisites from now on: %s", name, trapped.template, trapped.why)
