"""All learners of one crawl: what a visit teaches each of them, and one commit for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from crawlerproject.frontier.hosts.domain_counts import DomainHostCounts
from crawlerproject.frontier.hosts.names_to_resolve import NamesToResolve
from crawlerproject.frontier.learned.certificates import BadCertificates
from crawlerproject.frontier.learned.learner import Facts, Learner, Visit
from crawlerproject.frontier.learned.renders import Renders
from crawlerproject.frontier.learned.revisits import Revisits
from crawlerproject.frontier.learned.traps import TrapModel


class Learners(NamedTuple):
    """All that one crawl learns of hosts."""

    traps: TrapModel
    certificates: BadCertificates
    renders: Renders
    revisits: Revisits
    domains: DomainHostCounts
    names: NamesToResolve

    def learn(self, visit: Visit, now: float) -> None:
        """Take in a visit whose page has its record: ``revisits`` learned from it when they made that."""
        if self.traps.learn(visit, now) and visit.repeats is None:
            self.domains.yielded(visit.row.host)
        learners: tuple[Learner, ...] = (self.certificates, self.renders)
        for learner in learners:
            learner.learn(visit, now)

    def facts(self) -> Facts:
        """What the next commit stores."""
        return [fact for kept in self for fact in kept.facts()]

    def stored(self) -> None:
        """The last ``facts`` have reached the store."""
        for kept in self:
            kept.stored()

    def unstored(self) -> set[str]:
        """The hosts and domains of which something is not in the store yet."""
        return {name for kept in self for name in kept.unstored()}

    def forget(self, mine: Callable[[str], bool]) -> None:
        """Drop what is in memory of hosts that other workers decide about now."""
        for kept in self:
            kept.forget(mine)
