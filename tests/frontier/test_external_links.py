"""URLs that only other domains name: kept apart, asked last, the host's own once it names them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.learned.models import TrapModel
from crawlerproject.frontier.other_workers import Links, pack_message, unpack_message
from crawlerproject.frontier.passage import DiscoveredUrl, Lease, Visit, caused_externally, linking_domain
from crawlerproject.frontier.politeness import HostPoliteness
from crawlerproject.parse.links import followed, navigated, redirected
from crawlerproject.reasons import Reason
from crawlerproject.rules.page.page import PageFacts
from crawlerproject.rules.politeness.address_turns import LONG_APART, LONG_SECONDS
from crawlerproject.rules.politeness.pauses import PRESETS, RestLimits
from crawlerproject.rules.row_kinds import (
    FLAG_EXTERNAL,
    FLAG_HUB,
    FLAG_LISTED,
    FLAG_RENDER,
    FLAG_ROBOTS,
    FLAG_SEED,
    FLAG_SITEMAP,
    external_key,
)
from crawlerproject.rules.traps.budgets import FIRST_NAMED
from crawlerproject.rules.traps.template_yield import FIRST_PAGES
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import QueuedPage
from tests.frontier.conftest import Bench, next_of, visit_of
from tests.stores.memory_store import MemoryStore

SITE = "http://a.org"
EVIL = "http://www.evil.org/page"


@pytest.fixture
def bench() -> Bench:
    """A frontier that learns."""
    store = MemoryStore()
    return Bench(store, traps=TrapModel(store))


def strange(bench: Bench, *paths: str, via: str = EVIL, priority: int = 10) -> int:
    """Queue links of a page of another domain."""
    found = [DiscoveredUrl(parse(SITE + path), 1, "L", via, priority, FLAG_EXTERNAL) for path in paths]
    return bench.frontier.add(found, bench.now)


def own(bench: Bench, *paths: str, priority: int = 10) -> int:
    """Queue links of the host's own page."""
    return bench.frontier.add(
        [DiscoveredUrl(parse(SITE + path), 9, "L", SITE + "/", priority) for path in paths], bench.now
    )


def crawl(bench: Bench, status: int = 200) -> list[str]:
    """Answer all that is leased; the paths, robots.txt left out."""
    paths = []
    while bench.frontier.hosts.waiting_urls:
        lease = bench.next()
        if lease is None:
            wake = bench.frontier.workbench.wake_at()
            bench.now = max(bench.now + 0.1, wake or 0.0)
        else:
            if not lease.row.kind.is_robots:
                paths.append(lease.row.url.removeprefix(SITE))
            bench.answer(lease, 200 if lease.row.kind.is_robots else status)
        bench.commit()
    return paths


def test_what_the_host_names_comes_first(bench: Bench) -> None:
    """However deep, and whenever it was found."""
    strange(bench, "/evil", priority=1)
    own(bench, "/deep", priority=190)
    assert crawl(bench) == ["/deep", "/evil"]


def test_the_front_page_does_not_wait(bench: Bench) -> None:
    """What the host names begins there: with a query, or below it, a stranger may have made it up."""
    strange(bench, "/?q=1", "/evil", "/", priority=10)
    own(bench, "/deep", priority=190)
    assert crawl(bench) == ["/", "/deep", "/?q=1", "/evil"]


def test_a_url_is_queued_once_by_strangers(bench: Bench) -> None:
    """And not at all when the host has named it."""
    assert strange(bench, "/1", "/2", "/1") == 2
    assert strange(bench, "/1", via="http://other.org/") == 0
    own(bench, "/3")
    assert strange(bench, "/3") == 0


def test_what_the_host_names_later_is_its_own(bench: Bench) -> None:
    """Counted to the host, asked for once, and in its own turn."""
    strange(bench, "/1", "/2")
    assert own(bench, "/2", "/4") == 2
    host = bench.frontier.workbench.hosts["a.org"]
    assert host.known == 2
    assert crawl(bench) == ["/2", "/4", "/1"]
    assert not bench.frontier.state.refused.counts


def test_both_in_one_batch(bench: Bench) -> None:
    """In a fleet links of many pages come together: the host's own word counts, whichever comes first."""
    address = parse(SITE + "/1")
    both = [DiscoveredUrl(address, 1, "L", EVIL, 10, FLAG_EXTERNAL), DiscoveredUrl(address, 1, "L", SITE + "/", 10)]
    bench.frontier.add(both, bench.now)
    assert bench.frontier.workbench.hosts["a.org"].known == 1
    assert crawl(bench) == ["/1"]


def test_what_was_fetched_for_a_stranger_is_known(bench: Bench, again: Callable[..., Bench]) -> None:
    """Under its own key: neither the host's word nor another stranger's has it fetched again, also after a restart."""
    strange(bench, "/1")
    assert crawl(bench) == ["/1"]
    assert bench.store.page(parse(SITE + "/1").key) is not None
    later = again(bench.store, now=bench.now)
    assert own(later, "/1") == 0
    assert strange(later, "/1", via="http://other.org/") == 0


def test_strangers_do_not_use_up_a_hosts_budget(bench: Bench) -> None:
    """The bench's hosts may have 50 URLs; strangers of one domain name as many as they may, together 50 as well."""
    assert strange(bench, *(f"/evil/{number}" for number in range(FIRST_NAMED))) == 50
    assert own(bench, *(f"/own/{number}" for number in range(60))) == 50
    assert bench.frontier.state.refused.counts == {Reason.EXTERNAL_BUDGET: FIRST_NAMED - 50, Reason.BUDGET: 10}


def test_a_refused_url_may_still_be_named_by_its_host(bench: Bench) -> None:
    """The stranger's budget is spent when its turn comes: that is no word about the page."""
    model: Any = bench.frontier.leasing._filters._traps
    strange(bench, "/1")
    for number in range(FIRST_PAGES):
        model.learn(visit(f"/{number}", Reason.HTTP_ERROR, 404), 0.0)
    assert crawl(bench) == []
    assert bench.frontier.state.refused.counts == {Reason.EXTERNAL_BUDGET: 1}
    assert strange(bench, "/1") == 0
    assert own(bench, "/1") == 1
    assert crawl(bench) == ["/1"]


def test_a_failed_page_of_a_strangers_is_tried_again_as_such(bench: Bench) -> None:
    """With its linking_domain, and after what the host names."""
    strange(bench, "/1")
    bench.through_robots()
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, 500, reason=Reason.HTTP_ERROR)
    bench.commit()
    own(bench, "/2")
    assert crawl(bench) == ["/2", "/1"]


def visit(path: str, reason: Reason, status: int | None, flags: int = FLAG_EXTERNAL, **more: Any) -> Visit:
    """A visit to a page that a stranger named."""
    address = parse(SITE + path)
    row = QueuedPage(address.host, external_key(address.key), address.url, 0, 1, 1, "L", EVIL, 0, flags)
    return Visit(row, reason, status, **more)


def test_errors_teach_nothing_about_the_host() -> None:
    """A thousand dead links, hanging ones and ones that repeat: the template of the host stands."""
    model = TrapModel(MemoryStore())
    for number in range(1000):
        model.learn(visit(f"/article/{number}", Reason.HTTP_ERROR, 404), 0.0)
        model.learn(visit(f"/article/{number}", Reason.FIRST_BYTE_TIMEOUT, None), 0.0)
        model.learn(visit(f"/article/{number}", Reason.FETCHED, 200, marks=(5,)), 0.0)
    assert not model.refuses("a.org", SITE + "/article/7", 0.0)
    assert model.refuses_external("a.org", "evil.org", 0.0)


def test_a_hanging_page_costs_who_named_it() -> None:
    """A host that cannot be reached does not."""
    model = TrapModel(MemoryStore())
    for number in range(FIRST_PAGES):
        model.learn(visit(f"/{number}", Reason.CONNECT_REFUSED, None), 0.0)
    assert not model.refuses_external("a.org", "evil.org", 0.0)
    for number in range(FIRST_PAGES):
        model.learn(visit(f"/{number}", Reason.DISCONNECTED, None), 0.0)
    assert model.refuses_external("a.org", "evil.org", 0.0)


def test_a_text_that_a_stranger_had_shown_is_new_when_the_host_shows_it() -> None:
    """A stranger names every article at another address first: the articles themselves are no repeats."""
    model = TrapModel(MemoryStore())
    for number in range(1, 301):
        shown = visit(f"/article/{number}?x=1", Reason.FETCHED, 200, marks=(number,))
        model.learn(shown, 0.0)
        variant = Duplicate("exact", f"{SITE}/article/{number}?x=1")
        model.learn(visit(f"/article/{number}", Reason.FETCHED, 200, 0, marks=(number,), duplicate=variant), 0.0)
    assert not model.refuses("a.org", SITE + "/article/7", 0.0)
    assert not model.refuses_external("a.org", "evil.org", 0.0)


# --- the door -------------------------------------------------------------------------------------

SLOW = 700.0  # seconds to the first byte
OUTCOMES = [
    {"status": 200}, {"status": 200, "ttfb_seconds": SLOW}, {"status": 404}, {"status": 200, "cut": True},
    {"status": 429, "reason": Reason.RATE_LIMITED}, {"status": 429, "retry_after_seconds": 5_000.0},
    {"status": 503}, {"status": 503, "retry_after_seconds": 40.0}, {"status": 500, "reason": Reason.HTTP_ERROR},
    {"status": 403, "reason": Reason.CHALLENGE},
    *({"reason": reason} for reason in (Reason.FIRST_BYTE_TIMEOUT, Reason.DISCONNECTED, Reason.CONNECT_REFUSED)),
    *({"reason": reason} for reason in (Reason.DNS_NOT_FOUND, Reason.BAD_RESPONSE, Reason.OUR_LIMIT)),
]  # fmt: skip


def troubled() -> Host:
    """A host that has some troubles of its own."""
    host = Host("a.org", 5.0)
    host.failures, host.breaker_opened, host.escalation, host.last_trouble = 3, 1, 2, 900.0
    host.samples, host.rest_until = (0.2, 0.3), 950.0
    return host


@given(st.lists(st.tuples(st.sampled_from(OUTCOMES), st.floats(0.0, 90_000.0), st.booleans())), st.randoms())
def test_no_trouble_of_strangers_is_the_hosts(played: list[tuple[dict[str, Any], float, bool]], rng: Any) -> None:
    """Whatever they meet: pace, escalation and breaker stay, and it rests once until it has answered its own."""
    politeness = HostPoliteness(PRESETS["default"], RestLimits(60.0, 86_400.0, 86_400.0), max_failures=2)
    host, now, rested = troubled(), 1_000.0, 0
    for more, passed, robots in played:
        now += passed
        before, until = host.rest_until, host.door.until
        outcome = visit_of(**{"reason": Reason.FETCHED, "robots": robots, "external": True, **more})
        consequence = politeness.after(host, outcome, now, rng)
        rested += host.rest_until > before
        known = (host.failures, host.breaker_opened, host.escalation, host.last_trouble, host.samples)
        assert known == (3, 1, 2, 900.0, (0.2, 0.3))
        assert not (consequence.park or consequence.opened)
        assert host.door.until >= until
        asked = more.get("retry_after_seconds", 0.0)
        assert not asked or host.door.until >= now + asked
        assert host.rest_until == before or host.rest_until >= now + asked
    assert rested <= 1
    assert host.door.rested == bool(rested)
    politeness.after(host, visit_of(Reason.HTTP_ERROR, 404), now, rng)
    assert not host.door.rested
    assert Host.unpack("a.org", host.pack()).door == host.door


def test_the_door_closes_for_twice_as_long_each_time(bench: Bench) -> None:
    """Half an hour without trouble opens it for good; a slow answer closes it for its own pause alone."""
    host, politeness, rng = troubled(), bench.politeness, random.Random(1)
    waits, now = [], 1_000.0
    for _ in range(3):
        politeness.after(host, visit_of(Reason.RATE_LIMITED, 429, external=True), now, rng)
        waits.append(host.door.until - now)
        now = host.door.until
    assert [wait == pytest.approx(60 * 2**time, rel=0.11) for time, wait in enumerate(waits)] == [True] * 3
    now += 2_000
    politeness.after(host, visit_of(Reason.HTTP_ERROR, 500, external=True), now, rng)
    assert host.door.until - now == pytest.approx(60, rel=0.11)
    now = host.door.until + 1
    politeness.after(host, visit_of(Reason.FETCHED, 200, 3.0, external=True), now, rng)
    assert (host.door.until - now, host.door.escalation) == (30.0, 1)


@pytest.mark.parametrize("seconds", [0.5, 3.0])
def test_a_long_answer_to_a_stranger_leaves_the_host_to_its_own(bench: Bench, seconds: float) -> None:
    """Where a page of the host's own waits, or comes soon after, the next stranger's waits many times as long."""
    strange(bench, "/slow", "/other")
    bench.through_robots()
    lease = next_of(bench)
    bench.now += seconds
    bench.answer(lease)
    host, ended = bench.frontier.workbench.hosts["a.org"], bench.now
    assert host.door.until < ended, "nothing else waits"
    own(bench, "/own", "/own2")
    for path in ("/own", "/own2"):
        bench.now = host.next_free
        lease = next_of(bench)
        assert lease.row.url == SITE + path
        bench.answer(lease)
    assert host.door.until == pytest.approx(ended + LONG_APART * seconds if seconds > LONG_SECONDS else 0.0, abs=1.0)
    assert sorted(crawl(bench)) == ["/other"]


def test_a_closed_door_lets_the_hosts_own_through(bench: Bench, again: Callable[..., Bench]) -> None:
    """A stranger's row waits for its moment, over a restart as well; what the host names meanwhile does not wait."""
    strange(bench, "/limited", "/other")
    bench.through_robots()
    bench.answer(next_of(bench), 429, reason=Reason.RATE_LIMITED)
    bench.commit()
    host, closed_at = bench.frontier.workbench.hosts["a.org"], bench.now
    bench.now = host.next_free
    bench.answer(next_of(bench), 500, reason=Reason.HTTP_ERROR)  # the host rested once, and the door opened as well
    bench.commit()
    assert host.rest_until < host.door.until
    bench.now = host.next_free
    assert bench.next() is None
    assert host.at_door
    assert host.rests_until(bench.now) == host.door.until > closed_at + 120

    later = again(bench.store, now=bench.now)
    host = later.frontier.workbench.hosts["a.org"]
    later.now += 20
    assert later.next() is None
    assert host.at_door
    own(later, "/own")
    lease = later.next()
    assert lease is not None
    assert lease.row.url == SITE + "/own"
    later.answer(lease)
    later.commit()
    assert sorted(crawl(later)) == ["/limited", "/other"]
    assert not later.frontier.state.refused.counts


def test_an_own_row_does_not_wait_for_a_commit(bench: Bench) -> None:
    """What failed for a stranger comes back with the next commit: until then, too, a row of the host's own goes on."""
    strange(bench, "/broken", "/other")
    bench.through_robots()
    bench.answer(next_of(bench), 500, reason=Reason.HTTP_ERROR)
    bench.now = bench.frontier.workbench.hosts["a.org"].next_free
    assert bench.next() is None
    own(bench, "/own")
    lease = bench.next()
    assert lease is not None
    assert lease.row.url == SITE + "/own"


def test_an_own_row_calls_a_host_from_disk(again: Callable[..., Bench]) -> None:
    """It waits there for its door: a row of its own gives it the place that its pace has."""
    store = MemoryStore()
    bench = Bench(store, traps=TrapModel(store), max_hosts_in_memory=1)
    strange(bench, "/limited")
    bench.through_robots()
    bench.answer(next_of(bench), 503, retry_after_seconds=9_000.0)
    bench.commit()
    bench.now = bench.frontier.workbench.hosts["a.org"].next_free
    bench.answer(next_of(bench), 503, retry_after_seconds=9_000.0)
    bench.commit()
    bench.now += 10
    assert bench.next() is None
    bench.add("http://x.org/1", "http://y.org/1")
    for _ in range(40):
        if (lease := bench.next()) is not None:
            bench.answer(lease)
        bench.commit()
        bench.now += 1
    assert "a.org" not in bench.frontier.workbench.hosts
    assert Host.unpack("a.org", store.host("a.org") or b"").at_door
    own(bench, "/own")
    bench.now += 10
    assert next_of(bench).row.url == SITE + "/own"
    assert bench.now < 2_000 + 9_100


@pytest.mark.parametrize(
    ("flags", "url", "note", "via", "whose"),
    [
        (FLAG_EXTERNAL, SITE + "/x", "", EVIL, True),
        (FLAG_EXTERNAL, SITE + "/", "", EVIL, False),  # as an earlier version queued it
        (FLAG_ROBOTS, SITE + "/robots.txt", "http://evil.org", EVIL, False),
        (FLAG_ROBOTS, SITE + "/limited", "http://evil.org", EVIL, True),
        (FLAG_ROBOTS, SITE + "/limited", "http://m.a.org", SITE, False),
        (FLAG_HUB, SITE + "/hub", "", EVIL, True),
        (FLAG_HUB, SITE + "/hub", "", SITE + "/feed", False),
        (FLAG_SEED, SITE + "/x", "", EVIL, False),
    ],
)
def test_who_led_to_a_request(flags: int, url: str, note: str, via: str, whose: bool) -> None:
    """Front page and robots.txt are the host's own; a hub is the feed's, a redirected robots.txt its origin's."""
    assert caused_externally(row(url, flags, note, via)) is whose


# --- who named it ---------------------------------------------------------------------------------


def row(url: str, flags: int = 0, note: str = "", via: str = EVIL) -> QueuedPage:
    """A queued URL."""
    address = parse(url)
    return QueuedPage(address.host, address.key, url, 7, 1, 1, "L", via, 0, flags, note)


def named_by(found: DiscoveredUrl) -> str:
    """The domain that is charged."""
    return linking_domain(found.address.host, found.via, found.flags, found.note)


def test_links_to_other_domains_are_strangers() -> None:
    """Other hosts of the same domain are not; people under one provider are (private suffixes)."""
    urls = ["http://a.org/x", "http://www.a.org/x", "http://b.org/x"]
    facts = PageFacts(links=[parse(url) for url in urls])
    assert [named_by(found) for found in followed(row("http://m.a.org/"), facts.links)] == ["", "", "a.org"]
    people = PageFacts(links=[parse(f"http://{name}.github.io/") for name in ("one", "two")])
    assert [named_by(found) for found in followed(row("http://one.github.io/"), people.links)] == ["", "one.github.io"]


def test_a_redirect_is_the_redirecting_sites() -> None:
    """Into another domain; within its own it stays the stranger's who had it asked for; a seed's is the operator's."""
    target = parse("http://b.org/x")
    assert named_by(redirected(row(SITE + "/"), target)) == "a.org"
    within = redirected(row(SITE + "/", FLAG_EXTERNAL), parse("https://www.a.org/"))
    assert named_by(within) == "evil.org"
    further = redirected(row(within.address.url, within.flags, within.note, within.via), parse(SITE + "/y"))
    assert named_by(further) == "evil.org"
    out = redirected(row(further.address.url, further.flags, further.note, further.via), target)
    assert named_by(out) == "a.org"
    assert named_by(redirected(row(SITE + "/", FLAG_SEED), target)) == ""
    assert redirected(row(SITE + "/", FLAG_LISTED), parse(SITE + "/y")).flags == FLAG_LISTED


def test_where_scripts_wanted_to_go() -> None:
    """As redirects; a rendered page's note is no domain."""
    rendered = row(SITE + "/", FLAG_EXTERNAL | FLAG_RENDER, "x.warc.gz 1 2 3 4")
    found = navigated(rendered, ["http://b.org/", "/y"])
    assert [named_by(item) for item in found] == ["a.org", "evil.org"]


def test_a_moved_sitemap_keeps_whom_it_speaks_for() -> None:
    """And is charged to that one's domain when it leads to another's."""
    moved = redirected(row(SITE + "/map.xml", FLAG_SITEMAP, SITE), parse("http://victim.org/big.xml"))
    assert (moved.note, named_by(moved)) == (SITE, "a.org")


def test_it_travels_in_letters() -> None:
    """And letters of versions that knew of no strangers are read."""
    found = [DiscoveredUrl(parse(SITE + "/1"), 1, "L", EVIL, 9, FLAG_EXTERNAL, "evil.org")]
    assert unpack_message(pack_message(Links(found))) == Links(found)
    old = b'["links",[["http://a.org/1",1,"L","http://b.org/",9,0,""]]]'
    assert unpack_message(old) == Links([DiscoveredUrl(parse(SITE + "/1"), 1, "L", "http://b.org/", 9)])


def test_the_lease_of_a_strangers_page_names_the_page(bench: Bench) -> None:
    """Its key is the page's own for all who remember what came of it."""
    strange(bench, "/1")
    bench.through_robots()
    lease = bench.next()
    assert isinstance(lease, Lease)
    assert lease.row.page_key == parse(SITE + "/1").key != lease.row.key


def named(*urls: str, via: str = EVIL) -> list[DiscoveredUrl]:
    """Links of a page, of another domain unless ``via`` says otherwise."""
    return [DiscoveredUrl(parse(url), 1, "L", via, 9, 0 if "evil" not in via else FLAG_EXTERNAL) for url in urls]


def test_strangers_share_half_of_a_names_ports(bench: Bench) -> None:
    """One domain has half of what is left of that half; what never takes a connection is free for others than it."""
    frontier, other = bench.frontier, "http://evil.net/"
    ports = [f"{SITE}:{9000 + number}/" for number in range(8)]
    assert frontier.add(named(*ports), bench.now) == 2
    assert frontier.add(named(f"{SITE}:8008/x", f"{SITE}:8008/y", via=other), bench.now) == 2
    assert frontier.add(named(f"{SITE}:8009/", via=other), bench.now) == 0
    assert frontier.add(named(f"{SITE}:8010/", via=SITE), bench.now) == 1
    assert frontier.state.refused.counts == {Reason.TOO_MANY_PORTS: 7}
    while (lease := next_of(bench)).host.name not in ("a.org:9000", "a.org:9001"):
        bench.answer(lease)
        bench.commit()
    bench.answer(lease, None, reason=Reason.CONNECT_REFUSED)
    bench.commit()
    assert Host.unpack(lease.host.name, bench.store.host(lease.host.name) or b"").absent
    assert frontier.add(named(f"{SITE}:8011/"), bench.now) == 0
    assert frontier.add(named(f"{SITE}:8012/", via="http://evil.info/"), bench.now) == 1


def test_strangers_share_half_of_a_domains_hosts(bench: Bench) -> None:
    """No host twice, however many of its URLs are named; names that do not resolve are free for other domains."""
    bench.frontier.domains._max_hosts = 16
    urls = [f"http://h{number}.b.org/{path}" for number in range(20) for path in ("", "x")]
    assert bench.frontier.add(named(*urls), bench.now) == 8
    assert (
        bench.frontier.add(
            named("http://real1.b.org/", "http://real2.b.org/", "http://real3.b.org/", via="http://evil.net/"),
            bench.now,
        )
        == 2
    )
    assert (
        bench.frontier.add(named(*(f"http://own{n}.b.org/" for n in range(20)), via="http://b.org/"), bench.now) == 10
    )
    dead = 0
    while dead < 4:
        lease = next_of(bench)
        is_dead = lease.host.name.startswith("h")
        bench.answer(lease, None if is_dead else 200, reason=Reason.DNS_NOT_FOUND if is_dead else Reason.FETCHED)
        bench.commit()
        dead = bench.frontier.domains.of("b.org").dead
    known = bench.frontier.domains.of("b.org")
    assert (known.hosts, known.taken, known.named) == (16, 12, {"evil.org": 4, "evil.net": 2})
    assert type(known).unpack(known.pack()).named == known.named
    assert bench.frontier.add(named("http://own30.b.org/", via="http://b.org/"), bench.now) == 1


def test_a_front_page_is_its_hosts_own(bench: Bench) -> None:
    """Though a stranger alone named it, and has spent all that it may have asked for here: it goes first."""
    model: Any = bench.frontier.leasing._filters._traps
    strange(bench, *(f"/dead/{number}" for number in range(30)))
    for number in range(FIRST_PAGES):
        model.learn(visit(f"/{number}", Reason.HTTP_ERROR, 404), 0.0)
    assert strange(bench, "/", "/late") == 1
    assert bench.frontier.workbench.hosts["a.org"].known == 1
    assert crawl(bench) == ["/"]
    assert bench.frontier.state.refused.counts == {Reason.EXTERNAL_BUDGET: 31}


def test_sub_requests_are_charged_as_links_are(bench: Bench) -> None:
    """Each answer is one of the page's domain's; a file that is new earns more."""
    model: Any = bench.frontier.leasing._filters._traps
    for number in range(FIRST_PAGES + 10):
        model.learn_subrequest(visit(f"/{number}.json", Reason.RATE_LIMITED, 429), "www.evil.org")
        assert model.refuses_external("a.org", "evil.org", 0.0) == (number >= FIRST_PAGES - 1)
    for number in range(100):
        file = visit(f"/{number}.js", Reason.FETCHED, 200, digest=number.to_bytes(4, "big"))
        model.learn_subrequest(file, "app.good.org")
    assert not model.refuses_external("a.org", "good.org", 0.0)
    assert not model.refuses("a.org", SITE + "/7.json", 0.0)
