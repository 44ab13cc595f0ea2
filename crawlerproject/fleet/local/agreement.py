"""When a local fleet has nothing left to do: what its workers report, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class WorkerReport(NamedTuple):
    """What a worker says about once a second."""

    quiet: bool  # it has nothing to do, and has read nothing since the report before
    activity: int  # grows with every report that is not quiet
    unread: Sequence[str]  # workers that have not acknowledged all that it sent them


class Agreement:
    """Judges that all work is done.

    All workers were quiet in a round of reports, all again in the next, and none of them has done anything in between
    (its activity is the same). So at the moment between the two rounds every worker had nothing to do, and nothing on
    its way to another: no work can come from anywhere any more.
    """

    def __init__(self, workers: Sequence[str]) -> None:
        self._workers = frozenset(workers)
        self._ended: set[str] = set()  # stopped for good before the end: what they have is left for another start
        self._before: dict[str, int] = {}  # activity by worker, in the round before; empty: there was none
        self._round: dict[str, int] = {}
        self.done = False

    def report(self, worker: str, said: WorkerReport) -> bool:
        """Whether the crawl is done."""
        if self.done:
            return True
        if not said.quiet or not self._ended.issuperset(said.unread):
            self._begin()
            return False
        self._round[worker] = said.activity
        if self._round.keys() >= self._workers - self._ended:
            self.done = bool(self._before) and self._before == self._round
            self._before, self._round = self._round, {}
        return self.done

    def gone(self, worker: str, *, ended: bool = False) -> None:
        """The worker's process is not there now; ``ended``: it is not started again."""
        if ended:
            self._ended.add(worker)
        self._begin()

    def back(self, worker: str) -> None:
        """A process of the worker has begun."""
        self._ended.discard(worker)
        self._begin()

    def _begin(self) -> None:
        self._before, self._round = {}, {}
