"""What a crawl learns of hosts, pages and itself while it runs, and stores with each commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from crawlerproject.crawl.progress.tallies import TotalsBook
    from crawlerproject.frontier.learned.duplicates import DuplicateIndex
    from crawlerproject.frontier.learned.learner import Facts
    from crawlerproject.frontier.learned.learners import Learners
    from crawlerproject.stores.protocols import Changes


class Learned(NamedTuple):
    """``facts`` go with a commit, ``stored`` is called when it is applied."""

    hosts: Learners
    duplicates: DuplicateIndex
    totals: TotalsBook

    def facts(self) -> Facts:
        """What the next commit stores."""
        others = self.duplicates.others
        return self.hosts.facts() + self.totals.facts() + (others.facts() if others is not None else [])

    def stored(self, changes: Changes, facts: Facts) -> None:
        """A commit of these is applied."""
        self.duplicates.stored(changes)
        self.hosts.stored()
        self.totals.stored(facts)
        if self.duplicates.others is not None:
            self.duplicates.others.stored(facts)
