"""All that one crawl learns of hosts, pages and itself while it runs, and stores with each commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.certificates import BadCertificates
    from crawlerproject.frontier.learned.duplicates import DuplicateIndex
    from crawlerproject.frontier.learned.host_model import Facts, HostModel, PersistentState
    from crawlerproject.frontier.learned.learner import Visit
    from crawlerproject.frontier.learned.traps import TrapModel
    from crawlerproject.stores.protocols import Changes


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
        self.of_hosts: tuple[HostModel[Any], ...] = (*traps.models, certificates, renders, revisits, domains, names)
        self._persistent: tuple[PersistentState, ...] = (*self.of_hosts, totals, duplicates)

    def learn(self, visit: Visit, now: float) -> None:
        """Take in a visit whose page has its record: ``revisits`` learned from it when they made that."""
        if self.traps.learn(visit, now) and visit.repeats is None:
            self.domains.yielded(visit.row.host)
        self.certificates.learn(visit, now)
        self.renders.learn(visit, now)

    def facts(self) -> Facts:
        """What the next commit stores."""
        return [fact for state in self._persistent for fact in state.facts()]

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
