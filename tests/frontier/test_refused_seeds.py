"""Seeds that meet a gate are handed to whoever tells the operator; refused links are only counted."""

from __future__ import annotations

from crawlerproject.frontier.frontier_state import _MAX_SEEDS
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.refused_urls import Exclusion
from tests.frontier.conftest import Bench


def test_at_the_schedule_gate(bench: Bench) -> None:
    """An address of this machine's network, an excluded domain; of links the count is all."""
    bench.never.list = Exclusion.parse(["excluded.test"])[0]
    bench.seed("http://10.0.0.1/", "http://excluded.test/", "http://fine.test/")
    bench.add("http://10.0.0.2/")

    assert bench.frontier.state.refused.take_seeds() == [
        ("http://10.0.0.1/", Reason.PRIVATE_ADDRESS),
        ("http://excluded.test/", Reason.NEVERCRAWL),
    ]
    assert bench.frontier.state.refused.take_seeds() == []
    assert bench.frontier.state.refused.counts[Reason.PRIVATE_ADDRESS] == 2


def test_when_its_robots_txt_is_known(bench: Bench) -> None:
    """The rules come with its turn: before they are committed, and for one that comes later."""
    bench.seed("http://a.test/private/1", "http://a.test/open")
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, body=b"User-agent: *\nDisallow: /private/")
    bench.now = lease.host.next_free
    bench.next()
    bench.commit()
    bench.seed("http://a.test/private/2")

    refused = [("http://a.test/private/1", Reason.ROBOTS), ("http://a.test/private/2", Reason.ROBOTS)]
    assert bench.frontier.state.refused.take_seeds() == refused


def test_that_was_excluded_while_it_waited(bench: Bench) -> None:
    """NeverCrawl took it before its turn came."""
    bench.seed("http://a.test/1")
    bench.through_robots()
    bench.never.list = Exclusion.parse(["a.test"])[0]
    bench.next()

    assert bench.frontier.state.refused.take_seeds() == [("http://a.test/1", Reason.NEVERCRAWL)]


def test_of_very_many_the_first_are_kept(bench: Bench) -> None:
    """A file of a million excluded seeds takes no memory to speak of; all are counted."""
    bench.never.list = Exclusion.parse(["excluded.test"])[0]
    many = _MAX_SEEDS + 5
    bench.seed(*(f"http://excluded.test/{number}" for number in range(many)))

    assert len(bench.frontier.state.refused.take_seeds()) == _MAX_SEEDS
    assert bench.frontier.state.refused.counts[Reason.NEVERCRAWL] == many
