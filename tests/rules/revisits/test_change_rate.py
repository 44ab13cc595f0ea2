"""What visits teach about a page's change rate, and which page deserves the next one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.revisits.change_rate import (
    RATES,
    WEB,
    Belief,
    Circumstances,
    Numbers,
    freshness,
    packed,
    prior,
    score,
    unpacked,
    visited,
    worth,
)
from crawlerproject.rules.revisits.history import NEAR_WEIGHT, TIERS, longest_wait_days

beliefs = st.lists(st.floats(0.01, 1), min_size=len(RATES), max_size=len(RATES)).map(lambda w: np.array(w) / sum(w))
days = st.floats(0.01, 400)


def rate(belief: Belief) -> Numbers:
    """Changes a day to be expected, as the middle of the belief on a log scale: a mean would follow its far end."""
    expected: Numbers = np.exp(belief @ np.log(RATES))
    return expected


@given(beliefs, days, st.sampled_from([0.0, NEAR_WEIGHT, 1.0]))
def test_a_belief_stays_one(belief: np.ndarray, waited: float, changed: float) -> None:
    """Weights stay positive and add up to one, whatever happened."""
    after = visited(belief, waited, changed)

    assert np.all(after > 0)
    assert after.sum() == pytest.approx(1)


@given(beliefs, days)
def test_a_change_speaks_for_a_higher_rate_a_near_one_for_less(belief: np.ndarray, waited: float) -> None:
    """Unchanged, near-duplicate, changed: in this order."""
    quiet, near, moved = (rate(visited(belief, waited, changed)) for changed in (0.0, NEAR_WEIGHT, 1.0))

    assert quiet <= near <= moved


@pytest.mark.parametrize("true_rate", [1 / 200, 1 / 30, 1 / 5, 1.0])
def test_the_belief_finds_the_rate(true_rate: float) -> None:
    """60 visits at about the page's own rhythm: the expected rate is within a factor of two of the truth."""
    chance = np.random.default_rng(5)
    found = []
    for _ in range(20):
        belief = WEB
        for _ in range(60):
            waited = chance.exponential(1 / true_rate)
            belief = visited(belief, waited, float(chance.random() < -np.expm1(-true_rate * waited)))
        found.append(float(rate(belief)))

    assert true_rate / 2 < np.median(found) < true_rate * 2


def test_what_the_host_showed_is_where_a_new_page_begins() -> None:
    """Pages of a restless host are expected to be restless; a new host's are as the rest of the crawl."""
    restless = visited(visited(WEB, 1, 1), 1, 1)

    assert rate(prior(10 * restless, 10)) > 5 * rate(prior(0 * WEB, 0))
    assert prior(0 * WEB, 0) == pytest.approx(WEB)
    assert prior(0 * WEB, 0, restless) == pytest.approx(restless)


def test_worth_is_the_derivative_of_freshness() -> None:
    """Cho and Garcia-Molina's condition: what one more visit a day adds to the share of fresh time."""
    for index in (2, 5, 8):
        sure = np.eye(len(RATES))[index]
        for interval in (0.5, 5.0, 50.0):
            visits, step = 1 / interval, 1e-6
            slope = (freshness(RATES[index], 1 / (visits + step)) - freshness(RATES[index], interval)) / step
            assert worth(sure, interval) == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_pages_that_nobody_can_follow_come_after_those_one_can() -> None:
    """A page that changes every six hours is worth less after two weeks than one that changes every two weeks."""
    fast = np.eye(len(RATES))[-1]
    fitting = np.eye(len(RATES))[np.argmin(abs(RATES - 1 / 14))]

    assert worth(fitting, 14.0) > 5 * worth(fast, 14.0)


def test_importance_new_links_boosts_and_lateness_raise_the_score() -> None:
    """Each of them alone; a boosted page beats any that is only likely to have changed."""
    plain = score(WEB, 10.0, Circumstances())

    assert score(WEB, 10.0, Circumstances(importance=3.0)) == pytest.approx(3 * plain)
    assert score(WEB, 10.0, Circumstances(new_links=5.0)) == pytest.approx(2 * plain)
    assert score(WEB, 10.0, Circumstances(cost=0.5)) == pytest.approx(2 * plain)
    assert score(WEB, 10.0, Circumstances(longest_days=2.0)) == pytest.approx(5 * plain)
    assert score(WEB, 10.0, Circumstances(boosted=1.0)) > score(WEB, 300.0, Circumstances(new_links=1e9))


def test_tiers_are_two_to_thirty_days_by_rank() -> None:
    """W: the most important hundredth every two days at the latest, all of them every thirty."""
    assert [longest_wait_days(share) for share in (0.995, 0.95, 0.6, 0.1, 0.0)] == [2, 7, 14, 30, 30]
    assert [days for _, days in TIERS] == sorted(days for _, days in TIERS)


@given(beliefs)
def test_a_packed_belief_is_nearly_the_same(belief: np.ndarray) -> None:
    """A byte a rate; nothing becomes impossible."""
    kept = packed(belief)

    assert len(kept) == len(RATES)
    assert np.all(unpacked(kept) > 0)
    assert np.max(np.abs(unpacked(kept) - belief)) < 0.02
