"""Renders in the frontier: whether a page gets one, how many run at once, who waits, and what they gained."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from crawlerproject.frontier.hosts.host import Host, Stage
from crawlerproject.frontier.learned.models import Facts, HostModel
from crawlerproject.frontier.passage import Visit
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.rules.rendering.thin_pages import Gain, RenderNeed, pays, template, worth_a_render
from crawlerproject.stores.protocols import Changes, FrontierStore, HostFact

# Hosts whose history is in memory; the others' is in the store. About 1 KB each.
_HOSTS_KEPT = 5_000
# Templates of one host that are counted apart; a site with more has no shapes to learn from.
_TEMPLATES_KEPT = 100
_REST = "(others)"
_GRANTED_FACT = "renders"  # of the whole crawl
# Pages in the browser, as a multiple of those at work: the others wait there for a turn of a host, which costs memory
# (some 100 MB each) and, unless they mean harm, no processor (ours).
_PAGES_A_PLACE = 3
MAX_PER_CRAWL = 100_000
"""Renders of a crawl, so that no script of any site keeps the machine busy for ever (ours)."""
MAX_PER_HOST = 1000
"""Renders of one host in a crawl (RENDER_MAX_PER_HOST); of further pages the plain answer is kept (ours)."""
# A host that waits for a place is looked at again after this even if no render ended: nothing may wait for ever.
LINE_SECONDS = 60.0


@dataclass(slots=True)
class _History:
    """What one host's renders were and gained."""

    granted: int = 0
    gains: dict[str, Gain] = field(default_factory=dict)

    def pack(self) -> bytes:
        gains = {name: (gain.rendered, gain.paid, gain.unpaid_in_a_row) for name, gain in self.gains.items()}
        return orjson.dumps((self.granted, gains))

    @classmethod
    def unpack(cls, packed: bytes) -> _History:
        granted, gains = orjson.loads(packed)
        return cls(granted, {name: Gain(*numbers) for name, numbers in gains.items()})


class RenderLimits(NamedTuple):
    """What the RENDER* settings say."""

    mode: str = "never"  # RENDER
    max_in_flight: int = 2
    max_per_host: int = 1000


class Renders(HostModel[_History]):
    """The budgets of renders, what they gained, and whose turn is next."""

    def __init__(
        self,
        store: FrontierStore,
        workbench: Workbench,
        rng: random.Random,
        limits: RenderLimits = RenderLimits(),  # noqa: B008 - immutable
        *,
        closed: str = "",
    ) -> None:
        """``closed`` says, in words, why nothing can be rendered in this run ("" when it can)."""
        self.mode = limits.mode
        self.closed = closed or ("RENDER=never" if self.mode == "never" else "")
        self.in_flight = 0
        self.waiting = 0  # of these, for a turn of some host
        self.kept = 0  # rows found in this run and left for a later one
        super().__init__(store, HostFact.RENDERS, _History, _HOSTS_KEPT)
        self._workbench = workbench
        self._rng = rng
        self._limits = limits
        self.granted = self.committed = self._storing_granted = int(store.fact(_GRANTED_FACT) or 0)
        self._crawl_has_more: Callable[[], bool] = lambda: self.granted < MAX_PER_CRAWL
        self.line: deque[Host] = deque()  # hosts with nothing but renders to do, until one ends

    # --- which pages ----------------------------------------------------------------------------

    def wanted(self, url: str, host: str, verdict: RenderNeed) -> bool:
        """Whether a page shall be rendered; a yes is taken from the budgets of its host and of the crawl."""
        if self.mode == "never" or (self.mode != "always" and verdict is RenderNeed.PLAIN):
            return False
        history = self.of(host)
        if history.granted >= self._limits.max_per_host or not self._crawl_has_more():
            return False
        if self.mode != "always":
            known = history.gains.get(self._name(history, template(url)), Gain())
            whole = Gain()
            for gain in history.gains.values():
                whole = whole.plus(gain)
            if not worth_a_render(verdict, known, whole, self._rng.random()):
                return False
        self.changed(host).granted += 1
        self.granted += 1
        return True

    def given_up(self, url: str, host: str) -> bool:
        """Whether what was marked to be rendered is not worth it any more: others of its template did not pay."""
        if self.mode == "always":
            return False
        history = self.of(host)
        gain = history.gains.get(self._name(history, template(url)), Gain())
        return not worth_a_render(RenderNeed.RENDER, gain, gain, self._rng.random())

    def learn(self, visit: Visit, rendered: tuple[int, int]) -> None:
        """Take in what a render found that is typical of its template: words and links."""
        history = self.changed(visit.row.host)
        name = self._name(history, template(visit.row.url))
        gain = history.gains.get(name, Gain())
        history.gains[name] = gain.learned(pays=pays(*visit.plain, *rendered))

    def facts(self) -> Facts:
        """What the next commit stores."""
        facts = super().facts()
        self._storing_granted = self.granted
        return [*facts, (_GRANTED_FACT, b"%d" % self.granted)] if facts else facts

    def stored(self, changes: Changes, facts: Facts) -> None:
        """The last ``facts`` have reached the store."""
        super().stored(changes, facts)
        self.committed = self._storing_granted

    def share(self, crawl_has_more: Callable[[], bool]) -> None:
        """The crawl's budget is a fleet's, which is asked whether it has another render for this process."""
        self._crawl_has_more = crawl_has_more

    def _name(self, history: _History, name: str) -> str:
        return name if name in history.gains or len(history.gains) < _TEMPLATES_KEPT else _REST

    # --- whose turn -----------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Whether another render must wait for one to end, or to wait itself."""
        most = self._limits.max_in_flight
        return self.in_flight - self.waiting >= most or self.in_flight >= most * _PAGES_A_PLACE

    def started(self) -> None:
        """A lease to render was handed out."""
        self.in_flight += 1

    def waits(self, now: float) -> None:
        """A page in the browser waits for its turn at some host: another may work meanwhile."""
        self.waiting += 1
        self._let_in(now)

    def goes_on(self) -> None:
        """It has what it waited for."""
        self.waiting -= 1

    def ended(self, now: float) -> None:
        """A place is free."""
        self.in_flight -= 1
        self._let_in(now)

    def _let_in(self, now: float) -> None:
        """The first in the line is looked at at once, if it still waits."""
        while self.line and not self.full:
            host = self.line.popleft()
            if host.stage == Stage.WAITING and host.work:
                self._workbench.wait(host, max(now, host.pace_free, host.rest_until, host.held_until), work=True)
                return
