"""What a start says of the crawl that it continues, and what an end says that had nothing to do."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from crawlerproject.config.arguments import Arguments
from crawlerproject.crawl.start.resumption import Resumed
from crawlerproject.errors import NOTHING_FETCHED
from crawlerproject.inspection.crawl_progress import Progress
from crawlerproject.rules.url.scope import Patterns

NOTHING = Progress(0, 0, 0, 0, 0, 0, 0, 0, None, None, "")
FOLDER = Path("crawls/web")


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """All INFO lines."""
    caplog.set_level(logging.INFO)
    return caplog


def resumed(*, continued: bool = True, new_seeds: int = 0, recrawl: bool = False) -> Resumed:
    """A start with one seed."""
    return Resumed("any", ["a.test"], Patterns(), Arguments(), continued, new_seeds, recrawl)


def test_what_waits_from_before_is_counted(said: pytest.LogCaptureFixture) -> None:
    """URLs and hosts, when all of them are taken up."""
    resumed().say_queued(1930, 54, 214)

    resumed().say_queued(1, 1, 0)

    assert said.messages == [
        "From before: 214 pages done, 1,930 URLs of 54 hosts queued",
        "From before: 1 URL of 1 host queued",
    ]


def test_a_crawl_that_has_ended_says_so_at_its_start(said: pytest.LogCaptureFixture) -> None:
    """With what to do; not where new seeds are on their way, nor where known pages are visited again."""
    resumed().say_queued(0, 0, 214)
    resumed(new_seeds=1).say_queued(0, 0, 214)
    resumed(recrawl=True).say_queued(0, 0, 214)
    resumed(continued=False).say_queued(0, 0, 214)

    assert len(said.messages) == 1
    assert said.messages[0].startswith("From before: 214 pages done, nothing queued: this crawl has ended.")
    assert "-a mode=recrawl" in said.messages[0]


def test_a_start_without_a_page_says_at_its_end_what_to_do(said: pytest.LogCaptureFixture) -> None:
    """Also when hosts that had failed were tried once more; not after Ctrl-C, nor when pages came."""
    resumed().say_end(FOLDER, "finished", NOTHING._replace(errors=4))
    resumed().say_end(FOLDER, "shutdown", NOTHING)
    resumed().say_end(FOLDER, "finished", NOTHING._replace(pages=1))
    resumed(continued=False).say_end(FOLDER, "finished", NOTHING)

    assert len(said.messages) == 1
    assert said.messages[0].startswith("Nothing was left to fetch (4 attempts failed): the crawl in crawls/web")


@pytest.mark.parametrize(
    ("start", "good", "nothing"),
    [
        (resumed(continued=False), 0, True),
        (resumed(new_seeds=2), 0, True),
        (resumed(continued=False), 1, False),
        (resumed(), 0, False),  # the same command again: it has ended before
        (resumed(recrawl=True), 0, False),  # none is due
    ],
)
def test_a_start_with_seeds_to_begin_with_fetches_something(start: Resumed, good: int, nothing: bool) -> None:
    """Or its end has a status of its own."""
    assert start.fetched_nothing(good) == nothing


def test_an_end_without_a_good_answer_is_said(said: pytest.LogCaptureFixture) -> None:
    """With where to look."""
    resumed(continued=False).say_end(FOLDER, NOTHING_FETCHED, NOTHING._replace(errors=3))

    assert len(said.messages) == 1
    assert said.messages[0].startswith("Nothing was fetched: no seed had a good answer, 3 attempts failed.")


def test_what_rests_for_too_long_is_left(said: pytest.LogCaptureFixture) -> None:
    """The crawl is over for this start, and it is said that there is more."""
    resumed(continued=False).say_end(FOLDER, "finished", NOTHING._replace(pages=9, queued_urls=12))

    assert said.messages == [
        "Left for another start: 12 URLs of hosts that rest for longer than FRONTIER_MAX_REST_SECONDS"
    ]
