"""A host's robots.txt: asked for first, and what each answer to that means."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.other_workers import RobotsWanted
from crawlerproject.frontier.robots_cache import RobotsCache
from crawlerproject.reasons import Reason
from crawlerproject.rules.consent.terms import TDMREP
from crawlerproject.rules.consent.verdict import Source
from crawlerproject.rules.robots.policy import MOST_ASKED
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

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


def test_rules_that_allow_more_are_news(bench: Bench) -> None:
    """A day later, of the host itself; the first rules are none, nor are stricter ones or those that stay."""
    news: set[float] = set()
    for number, body in enumerate((b"/a", b"/a", b"/b", b"/b\nDisallow: /c", b"/c")):
        bench.seed(f"{A}{number}")
        bench.through_robots(b"User-agent: *\nDisallow: " + body)
        news |= {bench.frontier.revisits.of("a.example").loosened_at} - {0.0}
        assert len(news) == (0, 0, 1, 1, 2)[number]
        bench.now += 100_000.0


@pytest.mark.parametrize(("status", "body"), [(200, b"User-agent: *\nCrawl-delay: 400"), (404, b""), (None, b"")])
def test_its_answer_is_one_change_of_the_host(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, status: int | None, body: bytes
) -> None:
    """Before the next commit, and with all that came of it: the pause that it asks for and the clock that begins.

    None where it asks for no longer pause: that host waits for the commit as after any page.
    """
    bench.seed(A)
    lease = bench.next()
    assert lease is not None
    stored: list[tuple[str, bytes]] = []
    apply = bench.store.apply

    def noted(changes: Changes) -> None:
        stored.extend(changes.hosts)
        apply(changes)

    monkeypatch.setattr(bench.store, "apply", noted)
    bench.answer(lease, status, body=body)

    assert [name for name, _ in stored] == ([] if status == 404 else [lease.host.name])
    if not stored:
        return
    kept = Host.unpack(lease.host.name, stored[0][1])
    assert (kept.floor_seconds, kept.delay_seconds) == (lease.host.floor_seconds, lease.host.delay_seconds)
    assert (kept.next_free, kept.rest_until) == (lease.host.next_free, lease.host.rest_until)


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
    assert again.row.kind.is_robots


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
    assert (target.row.url, target.row.kind.is_robots) == (B + "robots-of-a", True)
    bench.answer(target, body=b"User-agent: *\nDisallow: /no")
    bench.now += 30
    assert bench.next() is None
    assert bench.frontier.state.refused.counts[Reason.ROBOTS] == 1


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


@pytest.mark.parametrize("said", [b"Crawl-delay: inf", b"Crawl-delay: 1.79e308", b"Request-rate: 1/365d"])
def test_a_host_that_wants_to_be_left_alone_is(bench: Bench, said: bytes) -> None:
    """Its URLs are refused at once, and asked for no more; the crawl does not wait a month for its end."""
    bench.add(A, A + "x")
    bench.through_robots(b"User-agent: *\n" + said)

    assert bench.now < 1100
    assert bench.next() is None
    bench.commit()

    assert bench.frontier.state.refused.counts[Reason.ROBOTS] == 2
    assert bench.add(A + "y") == 0
    record = bench.store.page(parse(A).key)
    assert record is not None
    assert record.reason == Reason.ROBOTS


def test_left_alone_by_one_scheme_is_left_alone_by_both(bench: Bench) -> None:
    """http and https are one host with one clock."""
    bench.add(A, "https://a.example/")
    bench.through_robots(b"User-agent: *\nCrawl-delay: inf")
    while (lease := bench.next()) is not None:
        assert lease.row.kind.is_robots
        bench.answer(lease, 404)
        bench.commit()
        bench.now = lease.host.next_free
    assert bench.frontier.state.refused.counts[Reason.ROBOTS] == 2


def redirect(bench: Bench, location: str) -> None:
    """Answer the robots.txt that is due with a redirect."""
    lease = bench.next()
    assert lease is not None
    assert lease.row.kind.is_robots
    bench.answer(lease, 302, location=location)
    bench.commit()


def asked(bench: Bench, seconds: float) -> list[str]:
    """What is asked within so many seconds; robots.txt files but a.example's say no to /no."""
    urls = []
    end = bench.now + seconds
    while bench.now < end:
        lease = bench.next()
        if lease is None:
            bench.now += 1
        else:
            urls.append(lease.row.url)
            bench.answer(lease, 200, b"User-agent: *\nDisallow: /no")
        bench.commit()
    return urls


def test_a_third_sites_rules_judge_what_it_is_asked_for(bench: Bench) -> None:
    """What they forbid is refused; the origin waits as for any robots.txt that cannot be reached."""
    bench.add(A + "page")
    redirect(bench, B + "no/delete?id=7")
    origin = bench.frontier.workbench.hosts["a.example"]
    assert asked(bench, 15) == [B + "robots.txt"]
    assert bench.frontier.state.refused.counts == {Reason.ROBOTS: 1}
    assert origin.robots_until("http") < 0
    assert origin.rests_until(bench.now)


@pytest.mark.parametrize(
    ("location", "refusal"),
    [
        ("http://b.example/film.zip", Reason.EXTENSION),
        ("http://b.example/" + "x" * 2000, Reason.URL_LENGTH),
        ("http://127.0.0.1/robots.txt", Reason.PRIVATE_ADDRESS),
        ("http://[::1]/robots.txt", Reason.PRIVATE_ADDRESS),
        ("http://never.example/robots.txt", Reason.NEVERCRAWL),
    ],
)
def test_where_nothing_may_be_asked_no_robots_is_asked(bench: Bench, location: str, refusal: Reason) -> None:
    """By the filters that need no rules; counted, and the origin waits."""
    bench.never.list = bench.never.list.parse(["never.example"])[0]
    bench.add(A)
    redirect(bench, location)
    assert bench.frontier.state.refused.counts == {refusal: 1}
    assert bench.next() is None
    assert bench.frontier.workbench.hosts["a.example"].robots_until("http") < 0


def test_the_robots_txt_of_another_host_needs_no_leave(bench: Bench) -> None:
    """Its own, and only that; and any place of the host itself."""
    bench.add(A + "page")
    redirect(bench, B + "robots.txt")
    assert asked(bench, 30) == [B + "robots.txt", A + "page"]


def test_a_host_may_keep_its_robots_elsewhere_on_itself(bench: Bench) -> None:
    """No robots.txt of its own is there to ask."""
    bench.add(A + "page")
    redirect(bench, A + "no/rules.txt")
    assert asked(bench, 30) == [A + "no/rules.txt", A + "page"]


def test_a_target_is_asked_once_in_the_time_that_rules_hold(bench: Bench, again: Callable[..., Bench]) -> None:
    """And five of them at most, whatever the origin says next; a restart forgets none. After that time they may be."""
    bench.politeness.breaker = bench.politeness.breaker._replace(max_failures=1000)
    targets = [f"{B}{number}" for number in (1, 1, 2, 3, 4, 5, 6, 7)]
    bench.add(A + "page")
    urls = sent(bench, targets)
    assert urls == [f"{B}{number}" for number in (1, 2, 3, 4, 5)]
    assert bench.frontier.state.refused.counts[Reason.ROBOTS_REDIRECT] == 3

    later = again(bench.store, now=bench.now)
    later.politeness.breaker = bench.politeness.breaker
    later.add(A + "again")
    assert sent(later, [f"{B}8"]) == []
    later.now += 2 * 86_400
    assert sent(later, [f"{B}9"]) == [f"{B}9"]


def test_an_answer_that_an_earlier_run_asked_for_is_waited_for(bench: Bench, again: Callable[..., Bench]) -> None:
    """The origin says the same redirect after a restart: that is no failure, and its target is asked once."""
    bench.add(A + "page")
    redirect(bench, B + "rules")
    later = again(bench.store, now=bench.now)
    urls = []
    while later.now < bench.now + 60:
        lease = later.next()
        if lease is None:
            later.now += 1
        elif lease.row.url == A + "robots.txt":
            urls.append(lease.row.url)
            later.answer(lease, 302, location=B + "rules")
            assert later.frontier.workbench.hosts["a.example"].failures == 0
        else:
            urls.append(lease.row.url)
            later.answer(lease, 200, b"")
        later.commit()

    assert sorted(urls) == [A + "page", A + "robots.txt", B + "robots.txt", B + "rules"]


def sent(bench: Bench, targets: list[str]) -> list[str]:
    """What is asked of b.example when a.example's robots.txt is redirected to these, one each time, and they fail."""
    urls, left = [], list(targets)
    idle = 0
    while left or idle < 400:
        lease = bench.next()
        idle += 1
        if lease is None:
            bench.now += 40
        elif lease.row.url == A + "robots.txt":
            idle = 0
            bench.answer(lease, 302, location=left.pop(0)) if left else bench.answer(lease, 500)
        elif lease.row.url == B + "robots.txt":
            bench.answer(lease, 404)
        else:
            urls.append(lease.row.url)
            bench.answer(lease, 404 if not left and lease.row.url == targets[-1] else 500)
        bench.commit()
        if not left and lease is not None and lease.row.url in targets:
            break
    return urls


def test_two_hosts_that_send_us_to_each_other_both_wait(bench: Bench) -> None:
    """Neither's rules can be had before the other's."""
    bench.add(A + "page", B + "page")
    for _ in range(300):
        lease = bench.next()
        if lease is None:
            bench.now = max(bench.now + 1, bench.frontier.workbench.wake_at() or 0.0)
        else:
            assert lease.row.url in (A + "robots.txt", B + "robots.txt")
            there = B if lease.host.name == "a.example" else A
            bench.answer(lease, 302, location=there + "rules")
        bench.commit()
    assert bench.frontier.hosts.waiting_urls == 0  # both given up


def test_what_another_worker_wants_is_judged_here(bench: Bench) -> None:
    """By the filters, and by a count for each domain that sends; the origin is answered."""
    for number in range(MOST_ASKED + 3):
        origin = f"http://h{number}.evil.org"
        bench.frontier.read(RobotsWanted(origin, f"{B}{number}", "PR", f"{origin}/robots.txt"), bench.now)
    bench.frontier.read(RobotsWanted("http://o.org", B + "x.zip", "PR", "http://o.org/robots.txt"), bench.now)

    assert bench.frontier.state.refused.counts == {Reason.ROBOTS_REDIRECT: 3, Reason.EXTENSION: 1}
    assert bench.frontier.workbench.hosts["o.org"].robots_until("http") < 0
    assert bench.frontier.workbench.hosts["b.example"].waiting_urls == MOST_ASKED


def obeying(store: MemoryStore, now: float = 1000.0) -> Bench:
    """A frontier that asks for tdmrep.json and licences, and obeys them for ai-train."""
    cache = RobotsCache(store, "TestBed", 86_400.0, obeyed_for="ai-train", asks=tuple(Source))
    return Bench(store, now=now, robots=cache)


def next_url(bench: Bench, status: int | None = 200, body: bytes = b"", **more: str) -> str:
    """What is asked for when its host is free; it is answered so, and committed."""
    while (lease := bench.next()) is None:
        bench.commit()
        bench.now += 1.0
    bench.answer(lease, status, body=body, **more)
    bench.commit()
    return lease.row.url


def test_documents_beside_robots_txt_have_turns_of_their_host() -> None:
    """At its pace, before its pages; one that is not answered is asked for again, and a later start goes on with it."""
    store = MemoryStore()
    bench = obeying(store)
    bench.seed(A)
    moments = []
    for status, body, url in (
        (200, b"License: /l.xml", "robots.txt"),
        (503, b"", TDMREP[1:]),
        (200, b'[{"location": "/x", "tdm-reservation": 1}]', TDMREP[1:]),
    ):
        assert next_url(bench, status, body) == A + url
        moments.append(bench.now)
    assert all(later - before >= 5.0 for before, later in pairwise(moments))

    bench = obeying(store, bench.now)
    rsl = b'<rsl><content url="/y"><license><payment type="crawl"/></license></content></rsl>'
    assert next_url(bench, 200, rsl) == A + "l.xml"
    bench.seed(A + "x", A + "y")
    assert next_url(bench) == A
    bench.now += 100.0
    assert bench.next() is None
    counts = bench.frontier.state.refused.counts
    assert (counts[Reason.RESERVED_TDMREP], counts[Reason.PAYMENT_REQUIRED]) == (1, 1)


def test_a_document_is_followed_to_another_host() -> None:
    """As a robots.txt is; where that may not be asked there is no tdmrep.json."""
    bench = obeying(MemoryStore())
    bench.seed(A)
    assert next_url(bench) == A + "robots.txt"
    assert next_url(bench, 301, location=B + "tdm", reason=Reason.REDIRECT) == A + TDMREP[1:]
    assert next_url(bench, 200, b"User-agent: *\nAllow: /") == B + "robots.txt"
    assert next_url(bench, 200, b'[{"location": "/", "tdm-reservation": 1}]') == B + "tdm"
    bench.now += 100.0
    assert bench.next() is None
    assert bench.frontier.state.refused.counts[Reason.RESERVED_TDMREP] == 1


ELSEWHERE = b"License: http://b.example/l.xml\n"
PAID = b'<rsl><content url="/"><license><payment type="crawl"/></license></content></rsl>'


def test_a_licence_of_another_host_is_asked_for_there() -> None:
    """As its robots.txt lets us, at its pace, once for all who name it; the words are about those."""
    bench = obeying(MemoryStore())
    bench.seed(A, "http://c.example/", B)
    urls = dict[str, list[float]]()
    while len(urls) < 8 and bench.now < 2000.0:
        lease = bench.next()
        if lease is None:
            bench.now += 1.0
            continue
        urls.setdefault(lease.row.url, []).append(bench.now)
        robots = lease.row.url.endswith("/robots.txt")
        found = (ELSEWHERE if lease.host.name != "b.example" else b"") if robots else PAID
        bench.answer(lease, 404 if lease.row.url.endswith(TDMREP) else 200, body=found)
        bench.commit()
    bench.now += 100.0

    assert bench.next() is None
    hosts = [A, B, "http://c.example/"]
    assert sorted(urls) == sorted(
        [B, B + "l.xml", *(host + path for host in hosts for path in ("robots.txt", TDMREP[1:]))]
    )
    assert {len(moments) for moments in urls.values()} == {1}
    assert bench.frontier.state.refused.counts[Reason.PAYMENT_REQUIRED] == 2
    of_b = sorted(urls[url][0] for url in urls if url.startswith(B))
    assert all(later - before >= 5.0 for before, later in pairwise(of_b))


def test_a_page_is_asked_for_again_behind_the_licence_that_it_names() -> None:
    """Once: then its words are known, of this page and others that name it; too many licences are not asked for."""
    bench = obeying(MemoryStore())
    robots = bench.frontier.state.robots
    bench.seed(A, A + "2")
    assert [next_url(bench), next_url(bench, 404, reason=Reason.HTTP_ERROR)][0] == A + "robots.txt"
    assert next_url(bench, license_named=A + "l.xml") == A
    assert robots.license_words(A, A + "l.xml") is None
    assert next_url(bench, 200, PAID) == A + "l.xml"
    assert robots.license_words(A, A + "l.xml") == [("ai-use-license", "payment: crawl")]
    assert robots.words(A) == []
    assert {next_url(bench), next_url(bench, license_named=A + "l.xml")} == {A, A + "2"}
    bench.seed(*(f"{A}page/{number}" for number in range(4)))
    asked = [next_url(bench, 404, license_named="" if number % 2 else f"{B}{number}.xml") for number in range(7)]
    assert [url for url in asked if url.endswith(".xml")] == [f"{B}0.xml", f"{B}4.xml"], asked


def test_two_hosts_that_have_each_others_licence_both_go_on() -> None:
    """Neither waits for the other's documents, only for its robots.txt; a licence is not about itself."""
    bench = obeying(MemoryStore())
    bench.seed(A, B)
    asked = []
    while bench.now < 1500.0:
        lease = bench.next()
        if lease is None:
            bench.commit()
            bench.now += 1.0
            continue
        asked.append(lease.row.url)
        there = "b" if lease.host.name == "a.example" else "a"
        words = f"License: http://{there}.example/l.xml\nUser-agent: *\nContent-Usage: train-ai=n\n".encode()
        robots = lease.row.url.endswith("/robots.txt")
        bench.answer(lease, 404 if lease.row.url.endswith(TDMREP) else 200, body=words if robots else PAID)
        bench.commit()

    assert sorted(asked) == sorted(host + path for host in (A, B) for path in ("robots.txt", TDMREP[1:], "l.xml"))


def test_a_licence_that_cannot_be_had_elsewhere_is_doubt() -> None:
    """Which reserves where words are obeyed; where they are recorded the pages come."""
    for purpose in ("ai-train", ""):
        store = MemoryStore()
        asks = (Source.LICENSE,)
        bench = Bench(store, now=1000.0, robots=RobotsCache(store, "TestBed", 86_400.0, obeyed_for=purpose, asks=asks))
        bench.seed(A)
        assert next_url(bench, 200, ELSEWHERE) == A + "robots.txt"
        assert next_url(bench, 200, b"User-agent: *\nDisallow: /l") == B + "robots.txt"
        if purpose:
            bench.now += 100.0
            assert bench.next() is None
            assert bench.frontier.state.refused.counts[Reason.RESERVED_LICENSE] == 1
        else:
            assert next_url(bench) == A


def test_a_document_that_may_not_be_asked_for_elsewhere_is_none() -> None:
    """The pages come."""
    bench = obeying(MemoryStore())
    bench.seed(A)
    assert next_url(bench) == A + "robots.txt"
    assert next_url(bench, 301, location=B + "tdm.zip", reason=Reason.REDIRECT) == A + TDMREP[1:]
    assert next_url(bench) == A


def test_a_reservation_that_appears_later_is_seen() -> None:
    """With the next robots.txt, a day later; the page that is known is not asked for again."""
    bench = obeying(MemoryStore())
    bench.seed(A)
    assert [next_url(bench), next_url(bench, 404, reason=Reason.HTTP_ERROR), next_url(bench)][2] == A
    bench.now += 100_000.0
    bench.seed(A + "later")
    assert next_url(bench) == A + "robots.txt"
    assert next_url(bench, 200, b'[{"location": "/", "tdm-reservation": 1}]') == A + TDMREP[1:]
    bench.now += 100.0
    assert bench.next() is None
    assert bench.frontier.state.refused.counts[Reason.RESERVED_TDMREP] == 1
