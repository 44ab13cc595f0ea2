"""The frontier: nothing twice, refusals counted under their word, hosts that rest or are left alone."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from crawlerproject.reasons import Reason
from crawlerproject.rules.url.refused_urls import Exclusion
from tests.frontier.conftest import Bench

A, B = "http://a.example/", "http://b.example/"


def test_a_url_is_queued_once(bench: Bench) -> None:
    """Not twice in a batch, not while queued, not after its fate was decided."""
    assert bench.add(A + "x", A + "x", A + "x?") == 1
    assert bench.add(A + "x") == 0
    bench.through_robots()
    page = bench.next()
    assert page is not None
    bench.answer(page)
    bench.commit()

    assert bench.add(A + "x") == 0
    assert bench.frontier.hosts.waiting_urls == 0


def test_what_is_found_once_pushes_nothing_out_of_memory(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is not asked about a link that pages repeat, however much they name that no other does."""
    bench.frontier.state.recent._most = 4
    for _ in range(2):
        bench.add(A + "menu")
    for start in range(0, 20, 5):
        assert bench.add(*[f"{A}{number}" for number in range(start, start + 5)]) == 5

    known = Mock(return_value=[])
    monkeypatch.setattr(bench.store, "known", known)
    assert bench.add(A + "menu") == 0
    assert not any(call.args[0] for call in known.call_args_list)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (A + "x.zip", Reason.EXTENSION),
        (A + "x" * 2100, Reason.URL_LENGTH),
        (A + "a/b/a/b/a/b/a/b/", Reason.TRAP),
        ("http://127.0.0.1/", Reason.PRIVATE_ADDRESS),
        ("http://[::1]/", Reason.PRIVATE_ADDRESS),
    ],
)
def test_refusals_are_counted(bench: Bench, url: str, reason: Reason) -> None:
    """What may not be queued is counted under its one word."""
    assert bench.add(url) == 0
    assert bench.frontier.state.refused.counts[reason] == 1


def test_too_deep_and_over_budget(bench: Bench) -> None:
    """Depth and the number of URLs a host may have are bounded; seeds count but are never refused."""
    assert bench.add(A + "deep", depth=21) == 0
    assert bench.add(*[f"{A}{number}" for number in range(50)]) == 50
    assert bench.add(A + "one-more") == 0
    assert bench.seed(A + "seed") == 1
    assert bench.frontier.state.refused.counts[Reason.DEPTH] == 1
    assert bench.frontier.state.refused.counts[Reason.BUDGET] == 1


def test_one_page_s_links_do_not_burst_the_budget(bench: Bench) -> None:
    """A host's bound holds within a batch too: what is queued from one page counts at once, for that host alone."""
    bench.add(*[f"{A}{number}" for number in range(45)])

    assert bench.add(*[f"{A}more/{number}" for number in range(10)], "http://b.test/1") == 6
    assert bench.frontier.state.refused.counts[Reason.BUDGET] == 5


def test_known_rules_refuse_before_queueing_and_new_ones_before_fetching(bench: Bench) -> None:
    """robots.txt is consulted when a link is found, and always again when it is leased."""
    bench.add(A + "no/1", A + "yes")
    bench.through_robots(b"User-agent: *\nDisallow: /no")
    assert bench.add(A + "no/2") == 0

    lease = bench.next()

    assert lease is not None
    assert lease.row.url == A + "yes"
    assert bench.frontier.state.refused.counts[Reason.ROBOTS] == 2
    bench.answer(lease)
    bench.commit()
    assert bench.frontier.hosts.waiting_urls == 0


def test_never_crawl_empties_a_queue(bench: Bench) -> None:
    """A domain excluded while its pages wait is not asked again."""
    bench.add(A, A + "x")
    bench.through_robots()
    bench.never.list = Exclusion.parse(["example"])[0]

    assert bench.next() is None
    assert bench.frontier.state.refused.counts[Reason.NEVERCRAWL] == 2
    assert bench.frontier.hosts.waiting_urls == 0


@pytest.mark.parametrize("status", [429, 503])
def test_the_host_rests_not_the_page(bench: Bench, status: int) -> None:
    """Retry-After rests every page of the host; the page goes back to the queue."""
    bench.add(A, A + "x")
    bench.through_robots()
    page = bench.next()
    assert page is not None

    bench.answer(page, status, retry_after_seconds=700.0)
    bench.commit()

    assert page.host.next_free >= bench.now + 700
    assert bench.next() is None
    assert bench.frontier.hosts.waiting_urls == 2


def test_a_host_that_keeps_failing_is_left_alone(bench: Bench) -> None:
    """After the last allowed failure one probe, then nothing more in this run; its pages stay queued."""
    bench.add(A, A + "x")
    asked = 0
    while (lease := bench.next()) is not None:
        asked += 1
        bench.answer(lease, None, reason=Reason.CONNECT_REFUSED)
        bench.commit()
        bench.now = lease.host.next_free

    assert asked == 3
    assert bench.frontier.hosts.parked == 1
    assert bench.frontier.hosts.waiting_urls == 0
    assert len(bench.store.head("a.example", 10)) == 2


def test_only_rests(bench: Bench) -> None:
    """A crawl whose hosts all rest for longer than the operator's patience may end; one with a slow pace may not."""
    bench.add(A)
    bench.through_robots(b"User-agent: *\nCrawl-delay: 5000")
    assert not bench.frontier.only_rests(bench.now - 4000, 600)
    page = bench.next()
    assert page is not None
    bench.answer(page, 503, retry_after_seconds=80000.0)
    bench.now += 1  # its address has rested
    assert bench.next() is None

    assert bench.frontier.only_rests(bench.now, 600)
    assert not bench.frontier.only_rests(bench.now, 90000)
