"""What a budget buys: more with more visits, more than even visits, and what is known of sure rates."""

import random

import numpy as np
import pytest

from crawlerproject.batch.recrawl_forecast import forecast, known_beliefs
from crawlerproject.rules.revisits.change_rate import RATES, WEB, freshness
from crawlerproject.rules.revisits.history import History
from crawlerproject.stores.protocols import Changes, PageRecord
from tests.stores.memory_store import MemoryStore


def test_more_visits_buy_more_and_the_best_visits_more_than_even_ones() -> None:
    """Pages that never change and pages that nobody can follow need none: the others get them."""
    beliefs = np.eye(len(RATES)).repeat(10, axis=0)
    made = [forecast(beliefs, 120, budget) for budget in (1, 5, 20, 100)]

    assert [row.fresh for row in made] == sorted(row.fresh for row in made)
    assert all(row.fresh > row.even for row in made)
    assert made[1].fresh > made[1].even + 0.03


def test_pages_of_one_sure_rate_are_visited_evenly() -> None:
    """Then the forecast is the formula: (1 - exp(-rt)) / rt, though intervals come in steps."""
    beliefs = np.tile(np.eye(len(RATES))[6], (50, 1))

    made = forecast(beliefs, 5000, 500)

    assert made.even == pytest.approx(float(freshness(RATES[6], 10.0)))
    assert made.fresh == pytest.approx(made.even)


@pytest.mark.parametrize("budget", [4, 10, 20, 41, 102])
def test_the_best_visits_are_no_worse_than_even_ones(budget: int) -> None:
    """After one visit, when all pages are believed to be as the web is: the whole budget is spent."""
    made = forecast(np.tile(WEB, (203, 1)), 203, budget)

    assert made.fresh >= made.even - 1e-9


def test_pages_that_were_read_are_counted() -> None:
    """Refused and failed ones are not; a page seen once is believed to be as the web is."""
    store = MemoryStore()
    read = PageRecord("http://a.test/1", "fetched", 200, 1.0, history=History(visits=1, seen_at=1.0).pack())
    store.apply(Changes(pages=[(b"1" * 24, read), (b"2" * 24, PageRecord("http://a.test/2", "robots", 0, 1.0))]))

    pages, beliefs = known_beliefs(store, random.Random(1))

    assert pages == 1
    assert beliefs[0] == pytest.approx(WEB)
