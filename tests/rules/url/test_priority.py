"""Priorities: robots.txt, seeds, then level by level."""

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.url.priority import (
    LAST,
    ROBOTS,
    SEED,
    after_duplicate,
    by_rank,
    of_external,
    of_later_list,
    priority,
)


def test_order() -> None:
    """robots.txt first, then seeds, then nearer before farther."""
    assert priority(0, "P") == ROBOTS < priority(0, "") == SEED < priority(1, "L") < priority(2, "L") < priority(3, "E")


def test_hops_within_a_level() -> None:
    """What a page needs, what it links to, what a sitemap lists; all before the next level."""
    assert priority(2, "E") < priority(2, "L") < priority(2, "M") < priority(3, "E")


def test_what_a_host_names_itself_comes_first() -> None:
    """Before sitemaps that it has not earned, and those before what only strangers name, the nearer of it first."""
    deepest = after_duplicate(priority(20, "M"))
    assert deepest < of_later_list(SEED + 1) < of_external(SEED) <= of_external(priority(1, "L"))
    assert of_external(priority(1, "L")) < of_external(priority(9, "L")) < LAST
    assert of_external(of_external(priority(9, "L"))) == of_external(priority(9, "L"))


def test_a_rank_moves_the_best_to_the_front() -> None:
    """The first hundredth before all links, the first tenth two links nearer, the others as they were."""
    deep = priority(5, "L")
    assert by_rank(deep, 0.995) == priority(1, "E") > SEED
    assert by_rank(deep, 0.95) == priority(3, "L")
    assert by_rank(deep, 0.89) == deep
    assert by_rank(priority(1, "L"), 0.95) > SEED
    assert by_rank(SEED, 0.999) == SEED


def test_a_redirect_ends_what_its_origin_began() -> None:
    """Its target comes before its origin's equals, and before nothing else; a stranger's stays a stranger's."""
    assert priority(3, "M") < priority(5, "R", parent=priority(4, "L")) < priority(4, "L")
    assert priority(0, "R", parent=ROBOTS) == SEED
    assert of_external(priority(1, "R", parent=of_external(SEED))) == of_external(SEED)


@given(st.integers(-5, 10_000), st.sampled_from(["", "L", "R", "P", "E", "M", "I", "X"]), st.integers(0, 255))
def test_bounds(depth: int, hop: str, parent: int) -> None:
    """One octet, always."""
    assert 0 <= priority(depth, hop, parent) <= LAST


def test_links_of_a_duplicate_wait_behind_deeper_ones() -> None:
    """As if found four links deeper; never beyond the last place."""
    assert priority(3, "L") < after_duplicate(priority(1, "L")) < after_duplicate(priority(2, "L"))
    assert after_duplicate(LAST) == LAST
