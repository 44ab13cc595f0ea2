"""What a budget of visits buys: the freshness to be expected of a crawl's pages, before any is visited again."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlerproject.rules.revisits.change_rate import RATES, Belief, freshness, unpacked, worth
from crawlerproject.rules.revisits.history import History, HostHistory
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.protocols import FrontierReader, HostFact

SAMPLE = 20_000
"""Pages that are looked at closely; more change the answer by less than half a percent."""
# Days between two visits that a page may have, from six hours to a year.
_INTERVALS = np.geomspace(0.25, 365, 48)
_STEPS = 60  # of the search for the threshold, each halving it


class Forecast(NamedTuple):
    """Of one budget."""

    visits_a_day: float
    fresh: float  # share of the pages that are as archived, on average, visits where they are worth most
    even: float  # the same with all pages visited equally often


def known_beliefs(store: FrontierReader, rng: random.Random) -> tuple[int, Belief]:
    """How many pages would be visited again, and what is believed of a sample of them."""
    sample: list[Belief] = []
    pages = 0
    for _, record in store.pages():
        history = History.unpack(record.history)
        if not history.visits:
            continue
        pages += 1
        place = len(sample) if len(sample) < SAMPLE else rng.randrange(pages)
        if place >= SAMPLE:
            continue
        if history.belief:
            belief = unpacked(history.belief)
        else:
            belief = HostHistory.unpack(store.fact(HostFact.VISITS + host_key(record.url)) or b"").prior()
        sample[place : place + 1] = [belief]
    return pages, np.array(sample).reshape(-1, len(RATES))


def forecast(beliefs: Belief, pages: int, visits_a_day: float) -> Forecast:
    """The freshness that ``visits_a_day`` buy for ``pages`` pages of which ``beliefs`` are a sample."""
    share = visits_a_day / pages
    bought = np.stack([np.asarray(worth(beliefs, days)) for days in _INTERVALS], axis=1)
    low, high = 0.0, float(bought.max())
    for _ in range(_STEPS):
        threshold = (low + high) / 2
        if _visits(bought, threshold).mean() > share:
            low = threshold
        else:
            high = threshold
    visits = _spent(_visits(bought, high), _visits(bought, low), share)
    even = _fresh(beliefs, np.full(len(beliefs), share))
    return Forecast(visits_a_day, max(_fresh(beliefs, visits), even), even)  # even visits are at hand, too


def _visits(bought: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Visits a day of each page when it is visited as soon as that is worth the threshold; 0 when it never is."""
    enough = bought >= threshold
    visits: NDArray[np.float64] = np.where(enough.any(axis=1), 1 / _INTERVALS[enough.argmax(axis=1)], 0.0)
    return visits


def _spent(fewer: NDArray[np.float64], more: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Visits that spend the whole budget: between those of two thresholds, since intervals come in steps."""
    gap = more.mean() - fewer.mean()
    part = min(1.0, (share - fewer.mean()) / gap) if gap > 0 else 0.0
    between: NDArray[np.float64] = fewer + part * (more - fewer)
    return between


def _fresh(beliefs: Belief, visits: NDArray[np.float64]) -> float:
    # Never visited: as if once in a hundred years, by when only what does not change is fresh.
    days = 1 / np.maximum(visits, 1 / 36_500)
    return float((beliefs * freshness(RATES, days[:, None])).sum(axis=1).mean())
