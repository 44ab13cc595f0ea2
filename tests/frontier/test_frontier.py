"""The frontier: nothing lost, nothing twice, robots.txt first, rests that survive."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.reasons import Reason
from crawlerproject.rules.exclusion import Exclusion
from crawlerproject.stores.protocols import Changes
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
    assert bench.frontier.waiting_urls == 0


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
    assert bench.frontier.refused[reason] == 1


def test_too_deep_and_over_budget(bench: Bench) -> None:
    """Depth and the number of URLs a host may have are bounded; seeds count but are never refused."""
    assert bench.add(A + "deep", depth=21) == 0
    assert bench.add(*[f"{A}{number}" for number in range(50)]) == 50
    assert bench.add(A + "one-more") == 0
    assert bench.seed(A + "seed") == 1
    assert bench.frontier.refused[Reason.DEPTH] == 1
    assert bench.frontier.refused[Reason.BUDGET] == 1


def test_one_page_s_links_do_not_burst_the_budget(bench: Bench) -> None:
    """A host's bound holds within a batch too: what is queued from one page counts at once, for that host alone."""
    bench.add(*[f"{A}{number}" for number in range(45)])

    assert bench.add(*[f"{A}more/{number}" for number in range(10)], "http://b.test/1") == 6
    assert bench.frontier.refused[Reason.BUDGET] == 5


def test_known_rules_refuse_before_queueing_and_new_ones_before_fetching(bench: Bench) -> None:
    """robots.txt is consulted when a link is found, and always again when it is leased."""
    bench.add(A + "no/1", A + "yes")
    bench.through_robots(b"User-agent: *\nDisallow: /no")
    assert bench.add(A + "no/2") == 0

    lease = bench.next()

    assert lease is not None
    assert lease.row.url == A + "yes"
    assert bench.frontier.refused[Reason.ROBOTS] == 2
    bench.answer(lease)
    bench.commit()
    assert bench.frontier.waiting_urls == 0


def test_never_crawl_empties_a_queue(bench: Bench) -> None:
    """A domain excluded while its pages wait is not asked again."""
    bench.add(A, A + "x")
    bench.through_robots()
    bench.never.list = Exclusion.parse(["example"])[0]

    assert bench.next() is None
    assert bench.frontier.refused[Reason.NEVERCRAWL] == 2
    assert bench.frontier.waiting_urls == 0


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

    target = bench.next()

    assert target is not None
    assert (target.row.url, target.is_robots) == (B + "robots-of-a", True)
    bench.answer(target, body=b"User-agent: *\nDisallow: /no")
    bench.now += 30
    assert bench.next() is None
    assert bench.frontier.refused[Reason.ROBOTS] == 1


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
    assert bench.frontier.waiting_urls == 2


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
    assert bench.frontier.given_up_hosts == 1
    assert bench.frontier.waiting_urls == 0
    assert len(bench.store.head("a.example", 10)) == 2


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


def test_a_crash_returns_the_lease(bench: Bench, again: Callable[..., Bench]) -> None:
    """What was leased but not committed is leased again, after the host's whole delay."""
    bench.add(A, A + "x")
    bench.through_robots()
    page = bench.next()
    assert page is not None
    bench.answer(page)  # no commit

    other = again(bench.store, now=bench.now + 1, clean=False)

    assert other.frontier.waiting_urls == 2
    assert other.next() is None
    other.now += 6
    leased = other.next()
    assert leased is not None
    assert leased.row.url == A


def test_a_rest_survives_a_crash(bench: Bench, again: Callable[..., Bench]) -> None:
    """Retry-After holds across a restart even when the crash came before the commit."""
    bench.add(A)
    bench.through_robots()
    page = bench.next()
    assert page is not None
    bench.answer(page, 429, retry_after_seconds=900.0)
    until = page.host.rest_until

    other = again(bench.store, now=bench.now + 1, clean=False)

    assert other.next() is None
    assert other.frontier.workbench.hosts["a.example"].next_free >= until


def test_robots_whose_record_was_not_committed_is_asked_for_again(bench: Bench, again: Callable[..., Bench]) -> None:
    """Its capture was cut from the archive, so its answer never was."""
    bench.add(A)
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, body=b"User-agent: *\nCrawl-delay: 30")

    other = again(bench.store, now=bench.now + 31, clean=False)
    other.now += 31
    first = other.next()

    assert first is not None
    assert first.is_robots
    assert first.delay_seconds == 30  # yet the pause it asked for was kept


def test_counts_stay_true_over_a_failed_commit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room nothing changes; the same commit goes through later."""
    bench.add(A, A + "x")
    bench.through_robots()
    page = bench.next()
    assert page is not None
    bench.answer(page, 429, retry_after_seconds=1.0)
    good = bench.store.apply

    def full(changes: Changes) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(bench.store, "apply", full)
    with pytest.raises(StorageError):
        bench.commit()
    monkeypatch.setattr(bench.store, "apply", good)
    bench.commit()

    assert bench.frontier.waiting_urls == 2
    assert page.host.rows == 2
    assert page.host.taken == set()


def test_links_found_without_room_are_queued_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was discovered is lost to a full disk."""
    good = bench.store.apply

    def full(changes: Changes) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(bench.store, "apply", full)
    with pytest.raises(StorageError):
        bench.add(A)
    monkeypatch.setattr(bench.store, "apply", good)

    bench.frontier.add_again(bench.now)

    assert bench.frontier.waiting_urls == 1
    assert bench.next() is not None


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


def test_a_page_that_ended_during_a_commit_is_not_taken_again(bench: Bench) -> None:
    """Its host has no more work and leaves the workbench before the next commit; a new link brings it back."""
    bench.seed("http://a.test/")
    bench.through_robots()
    lease = bench.next()
    assert lease is not None
    changes = bench.frontier.take_changes()  # a commit begins
    bench.answer(lease)  # while its archive bytes are written
    bench.frontier.apply(changes, [])
    bench.now += 60
    assert bench.next() is None  # the host's clock is free: it is forgotten
    bench.add("http://a.test/next")

    again = bench.next()

    assert again is not None
    assert again.row.url == "http://a.test/next"
