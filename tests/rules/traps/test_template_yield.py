"""Templates of URLs and what their pages yielded: traps are learnt, productive templates are not."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.text_likeness import text_marks
from crawlerproject.rules.traps.template_yield import (
    CUT_COSTS_PAGES,
    EARNED_LISTS,
    FIRST_LISTS,
    FIRST_NAMED_LISTS,
    FIRST_PAGES,
    HOST_FIRST_PAGES,
    LISTS,
    MOST_PAGES,
    HostYields,
    Yield,
    template_of,
)

SITE = "http://a.example"


@pytest.mark.parametrize(
    ("url", "template"),
    [
        ("", "/"),
        ("/", "/"),
        ("/about.html", "/about.html"),
        ("/calendar/2031/04?view=day", "/calendar/{n}/{n}?view=day"),
        ("/calendar/2031-04-05.html", "/calendar/{date}.html"),
        ("/20310405/x", "/{date}/x"),
        ("/2031/x", "/{n}/x"),
        ("/p/3f2504e0-4f89-11d3-9a0c-0305e82c3301/", "/p/{uuid}/"),
        ("/s/9f8a7b6c5d4e3f21/about", "/s/{hex}/about"),
        ("/deadbeef/x", "/deadbeef/x"),
        ("/blog/how-to-cook-rice", "/blog/{slug}"),
        ("/blog/top-10-ways.html", "/blog/{slug}.html"),
        ("/page12", "/page{n}"),
        ("/(S(lit3py55t21z5v55vlm25s55))/x.aspx", "/(S({id}))/x.aspx"),
        ("/page;sid=abcdef0123456789", "/page;sid={hex}"),
        ("/list?b=7&a=x", "/list?a=x&b={n}"),
        ("/list?a=", "/list?a="),
        ("/list?q=http%3A%2F%2Fb.example%2Fx", "/list?q={v}"),
        ("/item12?id4=5", "/item{n}?id{n}={n}"),
    ],
)
def test_what_varies_is_folded(url: str, template: str) -> None:
    """Numbers, dates, hex, identifiers and long titles; names of query parameters stay."""
    assert template_of(SITE + url) == template


@given(st.text(max_size=300))
def test_every_url_has_a_short_template_without_blanks_of_its_own(path: str) -> None:
    """Whatever the path, the template is bounded."""
    assert len(template_of(f"{SITE}/{path}")) <= 200


def pages_until_spent(yields: HostYields, paths: itertools.count[int], new: bool, shape: str = "/c/{}") -> int:
    """How many pages of a template are asked for before it is a trap."""
    for number in paths:
        url = SITE + shape.format(number)
        if yields.spent(url):
            return number
        yields.learn(url, new)
        assert number < 10_000
    raise AssertionError


def test_an_endless_template_costs_its_first_budget() -> None:
    """Not one page more; other templates of the host go on, with less to begin with."""
    yields = HostYields()
    assert pages_until_spent(yields, itertools.count(), False) == FIRST_PAGES
    assert yields.spent(SITE + "/c/77") == "/c/{n}"
    assert not yields.spent(SITE + "/d/1")
    assert pages_until_spent(yields, itertools.count(), False, "/d/{}") == FIRST_PAGES // 2
    assert [trapped.template for trapped in yields.trapped()] == ["/c/{n}", "/d/{n}"]


def test_a_productive_template_goes_on_for_ever() -> None:
    """Ten thousand pages, every tenth of them new."""
    yields = HostYields()
    for number in range(10_000):
        assert not yields.spent(f"{SITE}/article/{number}")
        yields.learn(f"{SITE}/article/{number}", number % 10 == 0)


def test_a_template_that_dries_up_ends() -> None:
    """However productive it was, MOST_PAGES without new text are its end."""
    yields = HostYields()
    for number in range(5000):
        yields.learn(f"{SITE}/article/{number}", True)
    assert pages_until_spent(yields, itertools.count(), False, "/article/{}") == MOST_PAGES


def test_a_calendar_of_twelve_names_ends() -> None:
    """A few texts that come again and again are soon all known."""
    yields = HostYields()
    asked = 0
    for number in itertools.count():
        url = f"{SITE}/calendar/{2000 + number // 12}/{number % 12}"
        if yields.spent(url):
            break
        asked += 1
        yields.learn(url, yields.new_text(text_marks(f"month {'abcdefghijkl'[number % 12]} {number}", b"", url)))
    assert asked == FIRST_PAGES + 2 * 12


def test_an_answer_cut_for_its_slowness_costs_more() -> None:
    """A tarpit takes time."""
    yields = HostYields()
    for _ in range(FIRST_PAGES // CUT_COSTS_PAGES):
        assert not yields.spent(SITE + "/tar")
        yields.learn(SITE + "/tar", False, CUT_COSTS_PAGES)
    assert yields.spent(SITE + "/tar")


def test_a_maze_of_ever_new_shapes_ends_with_the_host() -> None:
    """Addresses that share no template cost no more than the whole host's budget."""
    yields = HostYields()
    words = ["".join(messages) for messages in itertools.product("abcdefghij", repeat=4)]
    asked = 0
    for word in words:
        url = f"{SITE}/{word}/{word[::-1]}"
        if yields.spent(url):
            continue
        asked += 1
        yields.learn(url, False)
    assert 0 < asked <= HOST_FIRST_PAGES


def test_a_whole_host_may_be_a_trap() -> None:
    """Pages spread over as many templates as they may be: the host's own budget ends them."""
    yields = HostYields()
    asked = 0
    for number in itertools.count():
        url = f"{SITE}/{'abcdefgh'[number % 8]}{'abcdefgh'[number // 8 % 8]}"
        if yields.spent(url):
            break
        asked += 1
        yields.learn(url, False)
    assert asked <= HOST_FIRST_PAGES
    assert yields.spent(SITE + "/") == "*"
    assert next(iter(yields.trapped())).template == "*"


def test_what_is_kept_of_a_host_is_bounded() -> None:
    """Thirty thousand addresses, all new, of thirty thousand shapes."""
    yields = HostYields()
    for number, messages in enumerate(itertools.product("abcdefghijklmnopqrstuvwxyzABCDE", repeat=3)):
        word = "".join(messages)
        url = f"{SITE}/{word}" + f"/x{word}" * (number % 20) + "?k" * (number % 2)
        yields.learn(url, yields.new_text([number * 2654435761 % 2**32]))
    assert len(yields.pack()) < 30_000


def test_texts_are_remembered_whatever_their_marks() -> None:
    """Marks that fall on one place, the mark 0, and a table that grows."""
    yields = HostYields()
    marks = [16 * number for number in range(500)]
    assert all(yields.new_text([mark]) for mark in marks)
    assert not any(yields.new_text([mark]) for mark in marks)


def test_a_restart_forgets_nothing() -> None:
    """pack and unpack are inverse."""
    yields = HostYields()
    pages_until_spent(yields, itertools.count(), False)
    yields.new_text([7])
    yields.lists.fetched, yields.lists.new, yields.lists.named = FIRST_LISTS + EARNED_LISTS, 1, 3
    yields.refused(LISTS)
    yields.refused("/c/{n}")
    yields.shapes, yields.example = 3, SITE + "/x/x/x/x"

    again = HostYields.unpack(yields.pack())

    assert again.pack() == yields.pack()
    assert again.spent(SITE + "/c/1") == "/c/{n}"
    assert not again.new_text([7])
    assert [(found.template, found.refused) for found in again.trapped()] == [("/c/{n}", 1), (LISTS, 1)]
    assert again.lists.spent
    with pytest.raises(ValueError, match="version"):
        HostYields.unpack(b"\x09" * 40)


def test_what_the_version_before_kept_is_read() -> None:
    """Without lists: its budgets and texts stand."""
    head = b'[[250,1,1,0],2,"http://a.test/x",[[["/c/{n}",0,40,0,3]],[],[]]]'
    packed = b"\x01" + len(head).to_bytes(4, "little") + head + (7).to_bytes(4, "little") * 1 + bytes(60)

    yields = HostYields.unpack(packed)

    assert yields.spent(SITE + "/c/1") == "/c/{n}"
    assert yields.shapes == 2
    assert not yields.lists.spent
    assert HostYields.unpack(yields.pack()).pack() == yields.pack()


def test_lists_live_on_the_pages_that_they_name() -> None:
    """The first ones on trust; one page with new text in ten files is enough for ever; none is not."""
    lists = HostYields().lists
    for number in range(10_000):
        assert not lists.spent
        lists.fetched += 1
        lists.new += number % EARNED_LISTS == 0
    lists = HostYields().lists
    while not lists.spent:
        lists.fetched += 1
    assert lists.fetched == FIRST_LISTS


def test_lists_that_are_queued_are_bounded() -> None:
    """Those that may be asked for at once come first; the queue holds so many and no more."""
    lists = HostYields().lists
    early = 0
    while not lists.full:
        lists.named += 1
        early += not lists.ahead
    assert early == FIRST_LISTS
    assert lists.named == FIRST_NAMED_LISTS
    lists.new = 1
    assert not lists.full


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=400))
def test_no_template_is_asked_for_more_than_its_texts_allow(pages: list[tuple[int, bool]]) -> None:
    """Law: pages without new text are at most FIRST_PAGES and EARNED_PAGES for each new text."""
    one = Yield(FIRST_PAGES)
    for _, new in pages:
        if one.spent:
            break
        one.take(new, 1, FIRST_PAGES, MOST_PAGES)
    assert one.fetched - one.new <= FIRST_PAGES + 10 * one.new
