"""How each kind of row is treated."""

import pytest

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
    ROW_KINDS,
    Budget,
    Content,
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
