"""Links that need not be sent twice, and those that look alike and must be."""

from __future__ import annotations

from crawlerproject.fleet.mail.sent_lately import SentLately
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_SEED
from crawlerproject.rules.url.urls import parse


def link(url: str, via: str = "http://a.example/1", flags: int = FLAG_EXTERNAL) -> DiscoveredUrl:
    """A link."""
    return DiscoveredUrl(parse(url), 1, "L", via, 10, flags)


def test_what_was_sent_is_spared() -> None:
    """From other pages of the same domain too; counted."""
    lately, one = SentLately(), link("http://b.example/1")
    assert lately.unsent([one], 0.0) == [one]
    assert lately.unsent([one], 0.0) == [one]  # not sent yet
    lately.sent([one], 0.0)
    again = [link("http://b.example/1", via="http://a.example/2"), link("http://b.example/2")]
    assert lately.unsent(again, 0.0) == again[1:]
    assert lately.spared == 1


def test_what_its_worker_may_judge_otherwise_is_sent() -> None:
    """Another domain has a budget of its own; a seed passes where a link does not."""
    lately = SentLately()
    lately.sent([link("http://b.example/1")], 0.0)
    others = [link("http://b.example/1", via="http://c.example/"), link("http://b.example/1", flags=FLAG_SEED)]
    assert lately.unsent(others, 0.0) == others


def test_it_forgets_by_number() -> None:
    """Two generations: what was sent before these is unknown."""
    lately, found = SentLately(most=2), [link(f"http://b.example/{number}") for number in range(7)]
    for item in found:
        lately.sent([item], 0.0)
    assert lately.unsent(found, 0.0) == found[:3]


def test_it_forgets_by_time() -> None:
    """After two of its times at most: what a worker refused may be allowed by then."""
    lately, one, two = SentLately(seconds=100.0), link("http://b.example/1"), link("http://b.example/2")
    lately.sent([one], 1000.0)
    assert lately.unsent([one], 1099.0) == []
    assert lately.unsent([one], 1101.0) == []
    lately.sent([two], 1150.0)
    assert lately.unsent([one, two], 1205.0) == [one]
    assert lately.unsent([one, two], 1310.0) == [one, two]
