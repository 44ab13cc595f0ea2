"""A host's robots.txt: asked for first, and what each answer to that means."""

from __future__ import annotations

import pytest

from crawlerproject.reasons import Reason
from tests.frontier.conftest import Bench

A, B = "http://a.example/", "http://b.example/"


def test_robots_is_the_first_page_of_a_host(bench: Bench) -> None:
    """The first lease is robots.txt, under the host's pace; the page follows after the delay."""
    bench.seed(A)

    first = bench.next()
    assert first is not None
    assert first.row.url == "http://a.example/robots.txt"
    bench.answer(first, body=b"")
    assert bench.next() is None

    bench.now = first.host.next_free
    second = bench.next()
    assert second is not None
    assert second.row.url == A
    assert bench.now >= 1005.0


def test_http_and_https_have_a_robots_each(bench: Bench) -> None:
    """The key is scheme and host; the clock is the host's alone."""
    bench.seed(A, "https://a.example/")
    bench.through_robots()
    page = bench.next()
    assert page is not None
    bench.answer(page)
    bench.now = page.host.next_free

    other = bench.next()

    assert other is not None
    assert other.row.url == "https://a.example/robots.txt"


def test_crawl_delay_is_a_floor(bench: Bench) -> None:
    """However long: it lengthens the pause and is never cut."""
    bench.add(A, A + "x")
    bench.through_robots(b"User-agent: *\nCrawl-delay: 400")

    page = bench.next()

    assert page is not None
    assert page.delay_seconds == 400
    assert bench.now >= 1400


@pytest.mark.parametrize("status", [500, 502, 503, 429, None])
def test_unreachable_robots_means_no_page(bench: Bench, status: int | None) -> None:
    """RFC 9309 2.3.1.4: the host waits, then robots.txt is asked for again."""
    bench.add(A)
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, status)
    bench.commit()
    assert lease.host.next_free >= bench.now + 50

    bench.now = lease.host.next_free
    again = bench.next()

    assert again is not None
    assert again.is_robots


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_missing_robots_means_no_rules(bench: Bench, status: int) -> None:
    """RFC 9309 2.3.1.3: a 4xx allows everything, whatever its body says."""
    bench.add(A)
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, status, b"User-agent: *\nDisallow: /")
    bench.now = lease.host.next_free

    page = bench.next()

    assert page is not None
    assert page.row.url == A


def test_a_redirected_robots_is_followed_at_the_other_host(bench: Bench) -> None:
    """Its target takes its turn there; the first host waits for the answer and obeys it."""
    bench.add(A + "no")
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, 301, location=B + "robots-of-a")
    bench.commit()
    bench.through_robots()

    target = bench.next()

    assert target is not None
    assert (target.row.url, target.is_robots) == (B + "robots-of-a", True)
    bench.answer(target, body=b"User-agent: *\nDisallow: /no")
    bench.now += 30
    assert bench.next() is None
    assert bench.frontier.refused[Reason.ROBOTS] == 1


def test_a_broken_https_leaves_http_alone(bench: Bench) -> None:
    """A scheme that cannot be reached does not stop the other one of its host."""
    bench.add(A)
    bench.through_robots()
    page = bench.next()
    assert page is not None
    bench.answer(page)
    bench.now = page.host.next_free
    bench.add("https://a.example/s", A + "x", priority=5)
    robots = bench.next()
    assert robots is not None
    assert robots.row.url == "https://a.example/robots.txt"
    bench.answer(robots, None, reason=Reason.TLS_FAILED)
    bench.commit()
    bench.now = robots.host.next_free

    assert bench.now < 1100
    other = bench.next()
    assert other is not None
    assert other.row.url == A + "x"
