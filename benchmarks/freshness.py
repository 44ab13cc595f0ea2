"""What a budget of visits buys: ours against fixed intervals and the multiplicative rules, at equal visits a day.

``python -m benchmarks.freshness [--pages 100000] [--budgets 2500,5000,10000,20000] [--out docs/freshness.svg]``

100,000 pages on hosts that share habits, with change intervals spread as Cho and Garcia-Molina found for 720,000
pages ("The Evolution of the Web and Implications for an Incremental Crawler", VLDB 2000), changing as Poisson
processes. Every policy gets the same number of visits each quarter of a day and sees only what a visit shows:
changed since the last one, or not. Freshness is the share of pages that are at this moment as they were archived,
averaged over the days after the warm-up. The policies:

- fixed: every page equally often, the longest unvisited first;
- Nutch: AdaptiveFetchSchedule, from 30 days, x 0.8 when changed, x 1.4 when not, within 60 s and 365 days;
- StormCrawler: AdaptiveScheduler, from 1 day, half itself and half the minimum when changed, x 1.5 when not,
  60 minutes to 14 days;
- ours: ``rules/change_rate`` as the crawl uses it;
- known rates: the same with the true rates, which no crawler has: the best that can be reached.

The two multiplicative rules know no budget: with more due than the budget allows the most overdue go first, with
fewer the next due ones are taken, so that each spends the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.charts import Line, line_chart
from crawlerproject.rules.revisits.change_rate import RATES, WEB, Circumstances, prior, score, visited

Array = NDArray[np.float64]
Picks = NDArray[np.int64]

STEP_DAYS = 0.25
WARM_UP_DAYS = 90
MEASURED_DAYS = 90
PAGES_A_HOST = 100
#: Share of pages, and the bounds of their mean days between changes (within them spread evenly on a log scale).
INTERVALS = ((0.23, 0.25, 1), (0.15, 1, 7), (0.16, 7, 30), (0.16, 30, 120), (0.30, 120, 1000))
#: How far a page follows its host's habit instead of its own (1 wholly): ours, the paper gives none.
HOST_SHARE = 0.5


class World(NamedTuple):
    """Pages, their true changes a day, their hosts and their relative importance (1 on average)."""

    rates: Array
    hosts: NDArray[np.int64]
    importance: Array


def world(pages: int, seed: int = 1) -> World:
    """The pages to be watched; the same seed gives the same."""
    chance = np.random.default_rng(seed)
    hosts = np.arange(pages) // PAGES_A_HOST
    # A rank between the host's and the page's own decides where in the distribution of intervals a page stands.
    mixed = HOST_SHARE * chance.normal(size=hosts[-1] + 1)[hosts] + (1 - HOST_SHARE) * chance.normal(size=pages)
    ranks = np.argsort(np.argsort(mixed)) / pages
    days = np.empty(pages)
    low = 0.0
    for share, shortest, longest in INTERVALS:
        inside = (ranks >= low - 1e-12) & (ranks < low + share)
        position = (ranks[inside] - low) / share
        days[inside] = shortest * (longest / shortest) ** position
        low += share
    importance = chance.pareto(1.1, pages) + 0.1  # in-links and PageRank follow such a law (Broder et al. 2000)
    importance = np.minimum(importance, np.quantile(importance, 0.9999))
    return World(1 / days, hosts, importance / importance.mean())


class Policy(ABC):
    """Chooses ``count`` pages at a time and learns from what their visits show. Days since the start."""

    name = ""

    def __init__(self, web: World) -> None:
        self.web = web
        self.last = np.zeros(len(web.rates))

    @abstractmethod
    def choose(self, now: float, count: int) -> Picks:
        """Which pages to visit now."""

    def learn(self, picks: Picks, waited: Array, changed: Array, now: float) -> None:
        """What the visits showed; ``waited`` is days since the last."""
        self.last[picks] = now


class Fixed(Policy):
    """Round and round."""

    name = "fixed interval"

    def choose(self, now: float, count: int) -> Picks:
        return _lowest(self.last, count)


class Multiplicative(Policy):
    """A due date that moves by factors."""

    start_days = 30.0

    def __init__(self, web: World) -> None:
        super().__init__(web)
        self.interval = np.full(len(web.rates), self.start_days)
        # Not all due in one moment: as after a first crawl that took one interval.
        self.due = np.random.default_rng(2).uniform(0, self.start_days, len(web.rates))

    def choose(self, now: float, count: int) -> Picks:
        return _lowest(self.due, count)

    def learn(self, picks: Picks, waited: Array, changed: Array, now: float) -> None:
        self.interval[picks] = self.moved(self.interval[picks], changed > 0)
        self.due[picks] = now + self.interval[picks]
        super().learn(picks, waited, changed, now)

    @abstractmethod
    def moved(self, interval: Array, changed: NDArray[np.bool_]) -> Array:
        """The pages' next intervals."""


class Nutch(Multiplicative):
    """db.fetch.schedule.adaptive.* with its defaults."""

    name = "Nutch"

    def moved(self, interval: Array, changed: NDArray[np.bool_]) -> Array:
        return np.clip(interval * np.where(changed, 0.8, 1.4), 60 / 86400, 365)


class StormCrawler(Multiplicative):
    """AdaptiveScheduler with its defaults."""

    name = "StormCrawler"
    start_days = 1.0

    def moved(self, interval: Array, changed: NDArray[np.bool_]) -> Array:
        shortest = 1 / 24
        return np.where(changed, 0.5 * interval + 0.5 * shortest, np.minimum(1.5 * interval, 14.0))


class Ours(Policy):
    """``rules/change_rate``: a belief a page, begun as its host's."""

    name = "ours"

    def __init__(self, web: World) -> None:
        super().__init__(web)
        hosts = int(web.hosts[-1]) + 1
        self.together, self.watched = np.zeros((hosts, len(RATES))), np.zeros(hosts)
        self.known = np.zeros(len(web.rates), dtype=bool)
        self.belief = np.tile(WEB, (len(web.rates), 1))

    def _priors(self, hosts: Picks) -> None:
        """Pages never visited twice believe what their hosts have shown so far."""
        touched = np.zeros(len(self.watched), dtype=bool)
        touched[hosts] = True
        everywhere = prior(self.together.sum(axis=0), self.watched.sum())
        begun = prior(self.together, self.watched, everywhere)
        fresh = ~self.known & touched[self.web.hosts]
        self.belief[fresh] = begun[self.web.hosts[fresh]]

    def choose(self, now: float, count: int) -> Picks:
        found = score(self.belief, now - self.last, Circumstances(self.importance()))
        return _lowest(-np.asarray(found), count)

    def importance(self) -> Array | float:
        """All pages count the same."""
        return 1.0

    def learn(self, picks: Picks, waited: Array, changed: Array, now: float) -> None:
        hosts = self.web.hosts[picks]
        old, known = self.belief[picks], self.known[picks]
        new = visited(old, waited, changed)
        np.add.at(self.together, hosts, new - np.where(known[:, None], old, 0.0))
        np.add.at(self.watched, hosts, ~known)
        self.belief[picks], self.known[picks] = new, True
        self._priors(hosts)
        super().learn(picks, waited, changed, now)


class OursWeighted(Ours):
    """Knows which pages matter."""

    name = "ours, by importance"

    def importance(self) -> Array | float:
        return self.web.importance


class KnownRates(Policy):
    """Ours with the truth instead of a belief."""

    name = "known rates"

    def choose(self, now: float, count: int) -> Picks:
        rates, expected = self.web.rates, self.web.rates * (now - self.last)
        return _lowest(-(1 - (1 + expected) * np.exp(-expected)) / rates, count)


def _lowest(keys: Array, count: int) -> Picks:
    return np.argpartition(keys, count)[:count]


class Result(NamedTuple):
    """Freshness, plain and weighted by importance, and the visits a day that it took."""

    fresh: float
    weighted: float
    visits_a_day: float
    course: list[float]  # by day


def simulate(policy: Policy, visits_a_day: int, seed: int = 3) -> Result:
    """Run one policy through warm-up and measurement."""
    web = policy.web
    chance = np.random.default_rng(seed)
    pages = len(web.rates)
    stale = np.zeros(pages, dtype=bool)
    count = round(visits_a_day * STEP_DAYS)
    course: list[float] = []
    plain: list[float] = []
    weighted: list[float] = []
    spent = 0
    for step in range(round((WARM_UP_DAYS + MEASURED_DAYS) / STEP_DAYS)):
        now = (step + 1) * STEP_DAYS
        # Freshness over the step, not at its end: a page that changes within it was fresh for part of it.
        changes = chance.random(pages) < -np.expm1(-web.rates * STEP_DAYS)
        middle = np.where(stale, 0.0, -np.expm1(-web.rates * STEP_DAYS) / (web.rates * STEP_DAYS))
        stale |= changes
        share, heavy = float(middle.mean()), float((middle * web.importance).mean())
        if now > WARM_UP_DAYS:
            plain.append(share)
            weighted.append(heavy)
        if step % round(1 / STEP_DAYS) == 0:
            course.append(share)
        picks = policy.choose(now, count)
        spent += len(picks)
        policy.learn(picks, now - policy.last[picks], stale[picks].astype(float), now)
        stale[picks] = False
    days = WARM_UP_DAYS + MEASURED_DAYS
    return Result(float(np.mean(plain)), float(np.mean(weighted)), spent / days, course)


POLICIES: tuple[Callable[[World], Policy], ...] = (Fixed, Nutch, StormCrawler, Ours, OursWeighted, KnownRates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--budgets", default="2500,5000,10000,20000", help="visits a day, separated by commas")
    parser.add_argument("--out", type=Path, help="write the plot (SVG) here")
    given = parser.parse_args()
    web = world(given.pages)
    budgets = [int(part) for part in given.budgets.split(",")]
    lines: dict[str, list[float]] = {}
    print(
        f"{given.pages:,} pages, {WARM_UP_DAYS} + {MEASURED_DAYS} days; freshness in percent (weighted by importance)"
    )
    for budget in budgets:
        for make in POLICIES:
            began = time.monotonic()
            policy = make(web)
            name = policy.name
            result = simulate(policy, budget)
            lines.setdefault(name, []).append(100 * result.fresh)
            print(
                f"{budget:7,} visits a day  {name:20} {100 * result.fresh:6.2f}  ({100 * result.weighted:6.2f})"
                f"  spent {result.visits_a_day:,.0f} a day  in {time.monotonic() - began:.0f} s"
            )
            sys.stdout.flush()
    if given.out:
        shares = [100 * budget / given.pages for budget in budgets]
        shown = [Line(name, list(zip(shares, values, strict=True))) for name, values in lines.items()]
        given.out.write_text(
            line_chart(shown, title="Freshness by budget", x="visits a day, % of pages", y="fresh pages, %")
        )


if __name__ == "__main__":
    main()
