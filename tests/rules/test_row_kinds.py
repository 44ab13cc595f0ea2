"""How each kind of row is treated, and how soon it has its turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.row_kinds import (
    FLAG_EXTERNAL,
    FLAG_FRAME,
    FLAG_HUB,
    FLAG_LISTED,
    FLAG_RECRAWL,
    FLAG_RENDER,
    FLAG_REQUISITE,
    FLAG_ROBOTS,
    FLAG_SEED,
    FLAG_SITEMAP,
    FLAG_SUBREQUEST,
    LAST,
    ROBOTS,
    ROW_KINDS,
    SEED,
    Budget,
    Content,
    after_duplicate,
    by_rank,
    of_external,
    of_later_list,
    priority,
)

KEY = bytes(range(24))


@pytest.mark.parametrize(
    ("flags", "budget"),
    [
        (0, Budget.NONE),
        (FLAG_LISTED, Budget.NONE),
        (FLAG_EXTERNAL, Budget.EXTERNAL),
        (FLAG_SITEMAP, Budget.LISTS),
        (FLAG_SITEMAP | FLAG_EXTERNAL, Budget.EXTERNAL),
        (FLAG_REQUISITE, Budget.REQUISITES),
        (FLAG_REQUISITE | FLAG_EXTERNAL | FLAG_FRAME, Budget.REQUISITES),
        (FLAG_SITEMAP | FLAG_SEED, Budget.NONE),
        (FLAG_REQUISITE | FLAG_RECRAWL, Budget.NONE),
    ],
)
def test_whose_budget_a_new_row_needs_room_in(flags: int, budget: Budget) -> None:
    """What the operator or a recrawl chose needs none."""
    assert ROW_KINDS[flags].budget is budget


@pytest.mark.parametrize(
    ("flags", "content"),
    [
        (0, Content.PAGE),
        (FLAG_SEED, Content.PAGE),
        (FLAG_RENDER, Content.RENDERED),
        (FLAG_SITEMAP, Content.LIST),
        (FLAG_SITEMAP | FLAG_RENDER, Content.RENDERED),
        (FLAG_REQUISITE, Content.REQUISITE),
        (FLAG_REQUISITE | FLAG_FRAME, Content.FRAME),
        (FLAG_ROBOTS, Content.NOTHING),
        (FLAG_HUB, Content.NOTHING),
        (FLAG_SUBREQUEST, Content.NOTHING),
    ],
)
def test_what_a_body_is_read_as(flags: int, content: Content) -> None:
    """Only what may lead on is read, and a page from the browser as HTML alone."""
    assert ROW_KINDS[flags].content is content


@pytest.mark.parametrize("flags", [0, FLAG_EXTERNAL, FLAG_REQUISITE, FLAG_REQUISITE | FLAG_EXTERNAL])
def test_the_key_in_the_queue_leads_back_to_the_page(flags: int) -> None:
    """A row outside its host's budget waits under another key, of the same host's."""
    kind = ROW_KINDS[flags]
    swapped = kind.swapped(KEY)
    assert (swapped == KEY) is kind.in_page_budget
    assert swapped[:8] == KEY[:8]
    assert kind.swapped(swapped) == KEY


def test_pages_are_counted_apart_from_what_they_need() -> None:
    """Neither a robots.txt nor a file of a page counts as one."""
    counted = {flags for flags in (0, FLAG_ROBOTS, FLAG_REQUISITE, FLAG_SUBREQUEST) if ROW_KINDS[flags].is_page}
    assert counted == {0}
    assert [ROW_KINDS[flags].stat for flags in (0, FLAG_REQUISITE, FLAG_SUBREQUEST)] == [
        "pages",
        "requisites",
        "embeds",
    ]


def test_each_combination_is_worked_out_once() -> None:
    """The answer for a row is one look-up."""
    assert ROW_KINDS[FLAG_SEED] is ROW_KINDS[FLAG_SEED]


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
