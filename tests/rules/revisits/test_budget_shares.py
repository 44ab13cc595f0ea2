"""A budget that is divided by counts alone buys what it would buy of one list of all pages."""

from __future__ import annotations

import random

import pytest

from crawlerproject.rules.revisits.budget_shares import counted, cut, score_class, visits_of

# Of scores of one class.
_WIDTH = 1.03


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_all_parts_are_visited(seed: int) -> None:
    """Every page that is left out scores less than any that is visited, to within the width of a class."""
    rng = random.Random(seed)
    parts = {number: [rng.lognormvariate(0, 4) for _ in range(rng.randrange(60))] for number in range(rng.randrange(9))}
    every = sum(map(len, parts.values()))
    budget = rng.randrange(every + 20)
    visits = visits_of({number: counted(scores) for number, scores in parts.items()}, budget)
    ordered = {number: sorted(scores, reverse=True) for number, scores in parts.items()}
    visited = [score for number, scores in ordered.items() for score in scores[: visits[number]]]
    left = [score for number, scores in ordered.items() for score in scores[visits[number] :]]

    assert visits.keys() == parts.keys()
    assert len(visited) == min(budget, every)
    assert max(left, default=0.0) < min(visited, default=float("inf")) * _WIDTH


@pytest.mark.parametrize("seed", range(20))
def test_a_budget_reaches_the_best_without_a_list_of_all(seed: int) -> None:
    """As many as it buys, each better than what is left out, to within the width of a class; in their order."""
    rng = random.Random(seed)
    scores = [rng.lognormvariate(0, 4) for _ in range(rng.randrange(300))]
    budget = rng.randrange(len(scores) + 20)

    reached = list(cut(counted(scores), budget).within(scores, lambda score: score))

    assert len(reached) == min(budget, len(scores))
    left = set(scores) - set(reached)
    assert reached == [score for score in scores if score not in left]
    assert max(left, default=0.0) < min(reached, default=float("inf")) * _WIDTH


def test_classes_are_in_the_order_of_scores() -> None:
    """From the least number to the greatest."""
    scores = [5e-324, 1e-9, 0.5, 0.99, 1.0, 1.5, 7.0, 1e300]

    assert [score_class(score) for score in scores] == sorted({score_class(score) for score in scores})
