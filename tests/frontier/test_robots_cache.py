"""robots.txt in the frontier: kept within bounds, stale copies, redirects, scheme and port, judged twice."""

from __future__ import annotations

import pytest

from crawlerproject.frontier import robots_cache as robots_cache
from crawlerproject.frontier.robots_cache import RobotsCache
from crawlerproject.reasons import Reason
from crawlerproject.rules.consent.terms import TDMREP
from crawlerproject.rules.consent.verdict import Source
from crawlerproject.rules.robots.policy import STALE_SECONDS, RobotsRecord, parse_robots
from crawlerproject.stores.protocols import Changes
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

DAY = 86400.0
A, B = "http://a.example/", "http://b.example/"
NO = b"User-agent: *\nDisallow: /no\n"


def kept(store: MemoryStore, origin: str, body: bytes, at: float = 0.0) -> None:
    """Store a robots.txt as fetched at a time."""
    record = RobotsRecord(200, body, at, at + DAY, "fetched")
    store.apply(Changes(robots=[(origin, record.pack())]))


def test_parsed_rules_are_kept_for_a_bounded_number_of_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of all others come from the store again, and are the same; the ones used last stay."""
    monkeypatch.setattr(robots_cache, "_PARSED_KEPT", 10)
    store = MemoryStore()
    for number in range(100):
        kept(store, f"http://h{number}.example", b"User-agent: *\nDisallow: /no%d\n" % number)
    cache = RobotsCache(store, "TestBed", DAY)
    for _ in range(2):
        for number in range(100):
            host = f"h{number}.example"
            assert not cache.rules(f"http://{host}").allowed(f"http://{host}/no{number}")
            assert cache.rules(f"http://{host}").allowed(f"http://{host}/yes")
            assert len(cache._parsed._table) <= 10
    assert list(cache._parsed._table) == [f"http://h{number}.example" for number in range(90, 100)]


def test_doubt_means_no() -> None:
    """A host whose rules nobody knows allows nothing."""
    assert not RobotsCache(MemoryStore(), "TestBed", DAY).rules("http://a.example").allowed(A)


@pytest.mark.parametrize("status", [None, 429, 500, 503])
def test_a_stale_copy_serves_for_thirty_days(status: int | None) -> None:
    """RFC 9309 2.3.1.4; the real one is asked for every hour meanwhile, and then the host waits."""
    store = MemoryStore()
    kept(store, "http://a.example", NO)
    cache = RobotsCache(store, "TestBed", DAY)

    stale = cache.answered("http://a.example", status, b"", Reason.HTTP_ERROR, STALE_SECONDS)
    too_old = cache.answered("http://a.example", status, b"", Reason.HTTP_ERROR, STALE_SECONDS + 1)

    assert (stale.usable, stale.good_until) == (True, STALE_SECONDS + 3600)
    assert not cache.rules("http://a.example").allowed(A + "no")
    assert not too_old.usable


def test_schemes_and_ports_have_rules_of_their_own(bench: Bench) -> None:
    """RFC 9309 2.3: the key is scheme, host and port."""
    bench.add(A + "no")
    bench.through_robots(NO)
    for url in ("https://a.example/no", "http://a.example:8080/no"):
        assert bench.add(url) == 1
        lease = bench.next()
        assert lease is not None
        assert lease.row.url == url.replace("/no", "/robots.txt")
        bench.answer(lease)
        bench.commit()
        bench.now = lease.host.next_free
        page = bench.next()
        assert page is not None
        assert page.row.url == url
        bench.answer(page)
        bench.now = page.host.next_free


def test_rules_are_consulted_before_queueing_and_again_before_fetching(bench: Bench) -> None:
    """Known ones keep a link out of the queue; those that changed meanwhile keep a queued page from being asked for."""
    bench.add(A, A + "later")
    bench.through_robots(NO)
    assert bench.add(A + "no") == 0
    assert bench.frontier.state.refused.counts[Reason.ROBOTS] == 1
    first = bench.next()
    assert first is not None
    bench.answer(first)
    bench.commit()

    bench.now += DAY
    again = bench.next()
    assert again is not None
    assert again.row.kind.is_robots
    bench.answer(again, body=b"User-agent: *\nDisallow: /\n")
    bench.commit()
    bench.now = again.host.next_free

    assert bench.next() is None
    assert bench.frontier.state.refused.counts[Reason.ROBOTS] == 2


@pytest.mark.parametrize(("redirects", "obeyed"), [(5, True), (6, False)])
def test_five_redirects_are_followed(bench: Bench, redirects: int, obeyed: bool) -> None:
    """RFC 9309 2.3.1.2: at the pace of each host on the way; after more, there are no rules."""
    bench.add(A + "no")
    asked = []
    lease = bench.next()
    for number in range(redirects):
        assert lease is not None
        assert lease.row.kind.is_robots
        asked.append(lease.row.url)
        bench.answer(lease, 301, location=f"http://hop{number}.example/robots.txt")
        bench.commit()
        if number < 5:
            bench.now = max(bench.now, lease.host.next_free if lease.host.name != "a.example" else bench.now)
            lease = bench.next()
    assert len(asked) == len(set(asked)) == redirects
    if obeyed:
        assert lease is not None
        bench.answer(lease, body=NO)
        bench.commit()
    bench.now += 200
    page = bench.next()
    assert (page is None) is obeyed
    assert bench.frontier.state.refused.counts[Reason.ROBOTS] == obeyed


def test_a_redirect_to_an_excluded_host_means_no_page(bench: Bench) -> None:
    """We may not ask there: doubt means no."""
    bench.never.list = bench.never.list.parse(["b.example"])[0]
    bench.add(A)
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, 302, location=B + "robots.txt")
    bench.commit()
    bench.now += 20
    assert bench.next() is None
    assert lease.host.robots_until("http") < 0


def test_large_rules_are_kept_for_few_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What parsed rules take is bounded by their size as well as by their number."""
    monkeypatch.setattr(robots_cache, "_PARSED_CHARACTERS", 50_000)
    store = MemoryStore()
    for number in range(20):
        rules = b"".join(b"Disallow: /%d-%d\n" % (number, line) for line in range(1_000))
        kept(store, f"http://h{number}.example", b"User-agent: *\n" + rules)
    cache = RobotsCache(store, "TestBed", DAY)
    for number in range(20):
        assert not cache.rules(f"http://h{number}.example").allowed(f"http://h{number}.example/{number}-999")
    assert 1 <= len(cache._parsed._table) <= 3
    cache.forget(lambda name: False)
    assert not cache._parsed._table


def test_rules_that_left_memory_are_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of far more hosts than have parsed rules at hand the same is found without their files; another worker's not."""
    monkeypatch.setattr(robots_cache, "_PARSED_CHARACTERS", 100)
    store = MemoryStore()
    cache = RobotsCache(store, "TestBed", DAY)
    bodies = {
        f"http://h{number}.example": b"User-agent: *\nDisallow: /%d\nDisallow: /*.pdf$\nAllow: /%d/a$\n"
        b"Visit-time: 0400-0845\nCrawl-delay: %d\nContent-Signal: search=yes\nSitemap: /s.xml\nLicense: /l.xml\n"
        % (number, number, number)
        for number in range(50)
    }
    for origin, body in bodies.items():
        kept(store, origin, body)
        cache.rules(origin)
    assert len(cache._parsed._table) < 5
    monkeypatch.setattr(store, "robots", lambda origin: None)
    for number, (origin, body) in enumerate(bodies.items()):
        found, parsed = cache.rules(origin), parse_robots(body, "TestBed")
        for path in (f"/{number}", f"/{number}/a", "/x.pdf", "/x.pdfs", "/"):
            assert found.verdict(path) is parsed.verdict(path)
        for name in set(parsed.__slots__) - {"_matcher"}:
            assert getattr(found, name) == getattr(parsed, name)
        assert cache.floor_seconds(origin) == number
    assert cache.rules("http://h1.example")._matcher is not cache.rules("http://h2.example")._matcher
    cache.forget(lambda name: name == "h7.example")
    assert cache.rules("http://h7.example").allowed("http://h7.example/")
    assert not cache.rules("http://h8.example").allowed("http://h8.example/")


def test_equal_rules_share_one_matcher_when_they_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when they are parsed: a million hosts have the same few files."""
    monkeypatch.setattr(robots_cache, "_PARSED_KEPT", 1)
    store = MemoryStore()
    cache = RobotsCache(store, "TestBed", DAY)
    origins = [f"http://h{number}.example" for number in range(9)]
    for origin in origins:
        kept(store, origin, NO)
    assert len({id(cache.rules(origin)._matcher) for origin in origins + origins}) <= 2


def test_what_is_stored_of_a_long_file_reads_the_same() -> None:
    """Beyond what is read nothing is stored."""
    body = b"User-agent: *\n" + b"Disallow: /a\n" * 200_000
    cache = RobotsCache(MemoryStore(), "TestBed", DAY)

    outcome = cache.answered("http://a.example", 200, body, Reason.FETCHED, 0.0)

    assert outcome.record is not None
    stored = RobotsRecord.unpack(outcome.record).body
    assert len(stored) < len(body) / 2
    assert not parse_robots(stored, "TestBed").allowed("/a")


def test_what_robots_txt_reserves_is_refused_where_that_is_obeyed() -> None:
    """By the longest path that matches; Disallow comes first. The words are recorded in any case."""
    body = (
        b"User-agent: *\nDisallow: /no\nContent-Usage: train-ai=n\nContent-Usage: /free train-ai=y\n"
        b"Content-Signal: /free/*.pdf ai-train=no\n"
    )
    found = {}
    for purpose in ("ai-train", "ai-input", ""):
        cache = RobotsCache(MemoryStore(), "TestBed", DAY, obeyed_for=purpose)
        cache.answered("http://a.example", 200, body, Reason.FETCHED, 0.0)
        paths = ("/", "/no", "/free/x", "/free/x.pdf")
        found[purpose] = [cache.refusal(f"http://a.example{path}", cache.rules("http://a.example")) for path in paths]

    reserved = Reason.RESERVED_ROBOTS
    assert found["ai-train"] == [reserved, Reason.ROBOTS, None, reserved]
    assert found["ai-input"] == found[""] == [None, Reason.ROBOTS, None, None]
    assert cache.words("http://a.example/free/x") == [("ai-use-robots-txt", "/free train-ai=y")]


@pytest.mark.parametrize(("purpose", "refusal"), [("ai-train", Reason.RESERVED_LICENSE), ("", None)])
def test_ours_a_licence_that_is_not_read_reserves_what_it_is_about(purpose: str, refusal: Reason | None) -> None:
    """License of RSL, in whichever group; its address is recorded."""
    cache = RobotsCache(MemoryStore(), "TestBed", DAY, obeyed_for=purpose)
    cache.answered("http://a.example", 200, b"License: /l.xml\nUser-agent: x\nDisallow: /\n", Reason.FETCHED, 0.0)

    assert cache.refusal("http://a.example/", cache.rules("http://a.example")) is refusal
    assert cache.words("http://a.example/") == [("ai-use-robots-txt", "license: /l.xml")]


def test_words_without_end_count_as_reserved() -> None:
    """A hundred lines are read, each of a thousand bytes."""
    body = b"User-agent: *\n" + b"".join(b"Content-Usage: /%d train-ai=y\n" % n for n in range(200))
    cache = RobotsCache(MemoryStore(), "TestBed", DAY, obeyed_for="ai-train")
    cache.answered("http://a.example", 200, body, Reason.FETCHED, 0.0)

    assert cache.refusal("http://a.example/other", cache.rules("http://a.example")) is Reason.RESERVED_ROBOTS
    assert len(cache.rules("http://a.example").content_signals) == 101


def documents(cache: RobotsCache, now: float = 0.0) -> tuple[int, str]:
    """What the origin is asked for, without the origin."""
    number, url = cache.next_document("http://a.example", now)
    return number, url.removeprefix("http://a.example")


def test_documents_beside_robots_txt_come_before_the_pages() -> None:
    """One after the other, each once; the essence is part of the record, which a later start reads."""
    store = MemoryStore()
    cache = RobotsCache(store, "TestBed", DAY, obeyed_for="ai-train", asks=tuple(Source))
    assert documents(cache) == (0, "/robots.txt")
    first = cache.answered("http://a.example", 200, b"License: /l.xml", Reason.FETCHED, 0.0)
    assert (first.usable, first.good_until) == (True, 0.0)
    assert documents(cache) == (1, TDMREP)
    assert not cache.document_answered("http://a.example", 1, 503, b"", 1.0).usable
    second = cache.document_answered("http://a.example", 1, 404, b"", 2.0)
    assert second.good_until == 0.0
    assert documents(cache, 3.0) == (2, "/l.xml")
    assert cache.document_answered("http://a.example", 1, 200, b"x", 3.0).good_until == 0.0  # it came twice
    assert second.record is not None
    store.apply(Changes(robots=[("http://a.example", second.record)]))
    cache.stored("http://a.example", second.record)

    later = RobotsCache(store, "TestBed", DAY, obeyed_for="ai-train", asks=tuple(Source))
    assert documents(later, 4.0) == (2, "/l.xml")
    assert later.refusal(A, later.rules("http://a.example")) is Reason.RESERVED_LICENSE  # it is not known yet
    rsl = b'<rsl><content url="/"><license><payment type="crawl"/></license></content></rsl>'
    last = later.document_answered("http://a.example", 2, 200, rsl, 5.0)
    assert (last.good_until, documents(later, 6.0)) == (DAY, (0, "/robots.txt"))
    assert later.refusal(A, later.rules("http://a.example")) is Reason.PAYMENT_REQUIRED
    assert later.words(A) == [("ai-use-robots-txt", "license: /l.xml"), ("ai-use-license", "payment: crawl")]


def test_an_older_record_that_is_stored_takes_no_newer_one_away() -> None:
    """A document may be answered while the record before it is on its way to the store."""
    cache = RobotsCache(MemoryStore(), "TestBed", DAY, asks=tuple(Source))
    first = cache.answered("http://a.example", 404, b"", Reason.HTTP_ERROR, 0.0)
    cache.document_answered("http://a.example", 1, 404, b"", 1.0)
    assert first.record is not None
    cache.stored("http://a.example", first.record)

    assert documents(cache, 2.0) == (0, "/robots.txt")  # all are known


def test_by_default_nothing_is_asked_for_beside_robots_txt() -> None:
    """Nor where robots.txt lets us ask for nothing."""
    for asks, body in ((False, b"License: /l.xml"), (True, b"User-agent: *\nDisallow: /")):
        cache = RobotsCache(MemoryStore(), "TestBed", DAY, asks=tuple(Source) if asks else ())
        outcome = cache.answered("http://a.example", 200, body, Reason.FETCHED, 0.0)
        assert (outcome.good_until, documents(cache)) == (DAY, (0, "/robots.txt"))
