"""What a crawl learns of its hosts and pages while it runs, and stores with each commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlerproject.crawl.progress.totals import TotalsBook
    from crawlerproject.frontier.hosts.domain_counts import DomainHostCounts
    from crawlerproject.frontier.learned.certificates import BadCertificates
    from crawlerproject.frontier.learned.duplicates import DuplicateIndex
    from crawlerproject.frontier.learned.renders import Renders
    from crawlerproject.frontier.learned.revisits import Revisits
    from crawlerproject.frontier.learned.traps import TrapModel
    from crawlerproject.stores.protocols import Changes

Facts = list[tuple[str, bytes]]


@dataclass(slots=True)
class Learned:
    """All that learns: ``facts`` go with a commit, ``stored`` is called when it is applied."""

    traps: TrapModel
    certificates: BadCertificates
    renders: Renders
    revisits: Revisits
    domains: DomainHostCounts
    duplicates: DuplicateIndex
    totals: TotalsBook

    def facts(self) -> Facts:
        """What the next commit stores."""
        learned = self.traps.facts() + self.certificates.facts() + self.renders.take_facts()
        return learned + self.revisits.take_facts() + self.domains.facts() + self.totals.facts()

    def stored(self, changes: Changes, facts: Facts) -> None:
        """A commit of these is applied."""
        self.duplicates.stored(changes)
        self.traps.stored()
        self.domains.stored()
        self.certificates.stored()
        self.totals.stored(facts)
