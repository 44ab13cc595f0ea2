"""Each lease from its turn to its end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from scrapy import Request

from crawlerproject.crawl.under_way import UnderWay
from crawlerproject.rules.row_kinds import FLAG_RENDER, ROW_KINDS

REQUEST = Request("http://a.test/")


def lease(host: str = "a.test", *, render: bool = False) -> Any:
    """A lease of a host."""
    row = SimpleNamespace(kind=ROW_KINDS[FLAG_RENDER if render else 0])
    return SimpleNamespace(host=SimpleNamespace(name=host), row=row)


def test_a_host_shows_what_is_asked_of_it_until_that_is_over() -> None:
    """Its end is told to whoever keeps its address."""
    under_way, one, rested = UnderWay(), lease(), list[Any]()
    under_way.rest_with(rested.append)
    under_way.sent(one, REQUEST)
    assert under_way.by_host == {"a.test": one}

    under_way.over(one)
    assert under_way.by_host == {}
    assert rested == [one]


def test_a_page_in_the_browser_does_not_hide_what_its_host_is_asked() -> None:
    """Nor does its end."""
    under_way, page, script = UnderWay(), lease(render=True), lease()
    under_way.sent(script, REQUEST)
    under_way.sent(page, REQUEST)
    assert under_way.by_host == {"a.test": script}

    under_way.over(page)
    assert under_way.by_host == {"a.test": script}


def test_a_request_that_nobody_has_any_more_is_found() -> None:
    """Until its Page is here."""
    under_way, one, two = UnderWay(), lease(), lease("b.test")
    under_way.sent(one, REQUEST)
    under_way.sent(two, Request("http://b.test/"))

    assert under_way.unanswered({REQUEST}) == [two]
    under_way.answered(two)
    assert under_way.unanswered({REQUEST}) == []
    assert under_way.unanswered(set()) == [one]
