"""Decides how often a page changes, as far as visits can tell, and what a visit now would be worth.

A page changes as a Poisson process whose rate we do not know. Our belief about the rate is a weight for each of
``RATES``; it begins as what the host's other pages have shown, and each visit sharpens it by Bayes' rule. A visit only
shows whether something changed since the last one, not how often (Cho and Garcia-Molina, "Estimating Frequency of
Change", 2003), so the likelihood is exp(-rate t) or 1 - exp(-rate t). A gamma distribution, whose two numbers would be
smaller to keep, cannot express "always changed, so at least so fast": in ``benchmarks/freshness`` it won a fifth
to a half of what these weights win over fixed intervals.

What a visit is worth is the time of freshness that it buys: with visits every t days a page is fresh a share
(1 - exp(-rate t)) / (rate t) of the time, and one more visit a day adds (1 - (1 + rate t) exp(-rate t)) / rate (Cho and
Garcia-Molina, "Effective Page Refresh Policies for Web Crawlers", 2003). Visits where this is highest are the best
use of a budget; pages that change faster than any visits can follow come out low, which is right. ``worth`` is that
formula averaged over our belief.

A belief is an array whose last axis is that of ``RATES``: one page or many at a time. Days throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlerproject.rules.revisits.history import RATE_COUNT, TIERS

Numbers = float | NDArray[np.float64]
Belief = NDArray[np.float64]

RATES: NDArray[np.float64] = np.geomspace(1 / 1000, 4, RATE_COUNT)
"""Changes a day: from once in three years to every six hours, each 2.1 times the one before: finer steps
than visits can distinguish are of no use (ours)."""
WEB: Belief = np.full(len(RATES), 1 / len(RATES))
"""Of a page of which nothing is known: any order of magnitude alike."""
HOST_CREDIT_PAGES = 5.0
"""A host's own pages outweigh the web's after as many were visited twice (ours)."""
FORGETTING = 0.01
"""Share of a belief that each visit returns to doubt, since habits change too (ours)."""
HUB_LINKS = 5.0
"""New links a visit that double a page's worth: what they lead to is found sooner (ours)."""
MAX_HUB_FACTOR = 4.0
BOOSTED_FACTOR = 1e6
"""A page that a sitemap, a feed or a push says has changed comes before all that are only likely to have."""


def prior(together: Belief, pages: Numbers, begin: Belief = WEB) -> Belief:
    """The belief about a new page of a host whose watched ``pages`` have beliefs that add up to ``together``.

    ``begin`` is that of a page of an unknown host: the crawl's other hosts, seen the same way.
    """
    counted = np.asarray(pages, dtype=float)[..., None]
    belief: Belief = (together + HOST_CREDIT_PAGES * begin) / (counted + HOST_CREDIT_PAGES)
    return belief


def visited(belief: Belief, waited_days: Numbers, changed: Numbers) -> Belief:
    """The belief after a visit; ``changed`` is 0, 1 or ``scale.NEAR_WEIGHT``."""
    still = np.exp(-np.asarray(waited_days)[..., None] * RATES)
    moved = np.asarray(changed)[..., None]
    seen = belief * (moved * (1 - still) + (1 - moved) * still)
    seen /= np.maximum(seen.sum(axis=-1, keepdims=True), 1e-300)
    doubting: Belief = (1 - FORGETTING) * seen + FORGETTING * WEB
    return doubting


def worth(belief: Belief, waited_days: Numbers) -> Numbers:
    """Days of freshness that a visit now buys, averaged over the belief."""
    expected = np.asarray(waited_days)[..., None] * RATES
    bought: Numbers = (belief * ((1 - (1 + expected) * np.exp(-expected)) / RATES)).sum(axis=-1)
    return bought


def freshness(rate: Numbers, interval_days: Numbers) -> Numbers:
    """Share of the time that a page of this rate, visited at this interval, is as we have it."""
    expected = np.maximum(rate * interval_days, 1e-12)
    share: Numbers = -np.expm1(-expected) / expected
    return share


class Circumstances(NamedTuple):
    """What raises or lowers the worth of a visit, beside the page's rate of change."""

    importance: Numbers = 1.0  # relative: 1 on average
    longest_days: Numbers = TIERS[-1][1]  # that the page may wait
    new_links: Numbers = 0.0  # that a visit has found lately
    boosted: Numbers = 0.0  # 1 when a sitemap, a feed or a push announced that it changed
    cost: Numbers = 1.0  # relative: 1 for a body, less where a 304 is likely


def score(belief: Belief, waited_days: Numbers, of: Circumstances) -> Numbers:
    """How much a visit now deserves to be made: the highest first.

    A page that waits beyond its tier grows in score for as long as it waits, so that none is left for ever.
    """
    overdue = np.maximum(1.0, np.asarray(waited_days) / of.longest_days)
    hub = np.minimum(MAX_HUB_FACTOR, 1 + np.asarray(of.new_links) / HUB_LINKS)
    boost = 1 + np.asarray(of.boosted) * (BOOSTED_FACTOR - 1)
    total: Numbers = of.importance * worth(belief, waited_days) * hub * overdue * boost / of.cost
    return total


def packed(belief: Belief) -> bytes:
    """The belief in as many bytes as there are rates: what a store keeps of a page."""
    return bytes(np.maximum(1, np.rint(belief / belief.max() * 255)).astype(np.uint8))


def unpacked(kept: bytes) -> Belief:
    """The belief, to within two percent."""
    weights = np.frombuffer(kept, dtype=np.uint8).astype(np.float64)
    whole: Belief = weights / weights.sum()
    return whole
