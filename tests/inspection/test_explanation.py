"""The reason behind every state: a table over all of them, on a real store looked at from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.frontier.hosts.host import Host, HostState
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.inspection.explanation import Via, Why
from crawlerproject.inspection.url_state import State, sentences
from crawlerproject.reasons import Reason
from crawlerproject.rules.robots.policy import RobotsRecord
from crawlerproject.rules.traps.budgets import DomainHosts
from crawlerproject.rules.url.refused_urls import AddressRules
from crawlerproject.rules.url.scope import Scope
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.operator_files.watched_lists import NeverCrawlFile
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore

NOW = 1_000_000.0
ANSWERED = {*list(Reason)[: list(Reason).index(Reason.INVALID_URL)]} - {Reason.LOST}
FAILED = {Reason.LOST, *list(Reason)[list(Reason).index(Reason.DNS_NOT_FOUND) :]}
ROBOTS = b"User-agent: *\nDisallow: /private/\nAllow: /private/open\n"


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Why]:
    """Asks about a store that holds these changes."""

    def build(changes: Changes, *, scope: str = "any", leases: dict[str, Any] | None = None) -> Why:
        store = RocksStore(tmp_path / "frontier")
        store.apply(changes)
        store.close()
        never = tmp_path / "never.txt"
        never.write_text("# ours\nbad.test  # asked by their webmaster\n")
        filters = UrlFilters(
            Scope(scope, ["a.test"], max_depth=3, max_url_length=60),
            NeverCrawlFile(never), AddressRules(), max_urls_per_host=5, skip_extensions=["zip"],
        )  # fmt: skip
        return Why(FrontierView(tmp_path / "frontier"), filters, "TestBed", NOW, leases)

    return build


def queued(url: str, arrival: int = 1, **more: Any) -> QueuedPage:
    """A row of the URL's host."""
    address = parse(url)
    return QueuedPage(address.host, address.key, address.url, 1, arrival, 1, "L", "http://via.test/", **more)


def host(name: str = "a.test", **state: Any) -> tuple[str, bytes]:
    """A packed host."""
    made = Host(name, 5.0)
    for field, value in state.items():
        setattr(made, field, value)
    return name, made.pack()


@pytest.mark.parametrize("reason", list(Reason))
def test_every_recorded_reason_is_told(ask: Callable[..., Why], reason: Reason) -> None:
    """A decided page of each reason: that reason, the state it belongs to, and a rule for every refusal."""
    address = parse("http://a.test/page")
    record = PageRecord(address.url, reason, 200 if reason in ANSWERED else 0, NOW - 60)

    answer = ask(Changes(pages=[(address.key, record)])).url("http://a.test/page")

    assert answer.reason == reason
    failed = reason in FAILED or reason is Reason.LOST
    expected = State.DONE if reason in ANSWERED else State.FAILED if failed else State.REFUSED
    assert answer.state == expected
    assert (
        bool(answer.facts.get("rule"))
        or expected is not State.REFUSED
        or reason in (Reason.INVALID_URL, Reason.SCHEME, Reason.NOFOLLOW)
    )
    assert answer.facts["time"].endswith("UTC")
    assert "\n".join(sentences(answer)).startswith(f"http://a.test/page\n  {expected} ({reason})")


@pytest.mark.parametrize(
    ("url", "reason", "rule"),
    [
        ("http://[broken/", Reason.INVALID_URL, "not an absolute URL"),
        ("gopher://a.test/", Reason.SCHEME, "neither http nor https"),
        ("http://sub.bad.test/x", Reason.NEVERCRAWL, "asked by their webmaster"),
        ("http://a.test/film.zip", Reason.EXTENSION, ".zip is one of SKIP_EXTENSIONS"),
        ("http://a.test/private/x", Reason.ROBOTS, "Disallow: /private/ "),
        ("http://a.test/" + "x" * 60, Reason.URL_LENGTH, "SCOPE_MAX_URL_LENGTH=60"),
        ("http://full.test/new", Reason.BUDGET, "SCOPE_MAX_URLS_PER_HOST=5"),
        ("http://full.test:8080/new", Reason.BUDGET, "SCOPE_MAX_URLS_PER_HOST=5"),
        ("http://a.test:25/", Reason.BAD_PORT, "Fetch standard"),
        ("http://ports.test:9000/", Reason.TOO_MANY_PORTS, "has 8 other ports already"),
        ("http://new.farm.example.com/", Reason.TOO_MANY_HOSTS, "example.com has 1,010 hosts"),
        ("http://a.test/x/x/x/x/", Reason.TRAP, "repeats its segments"),
        ("http://192.168.0.1/", Reason.PRIVATE_ADDRESS, "FETCH_ALLOW_NETWORKS"),
    ],
)
def test_what_was_never_queued_names_its_gate(ask: Callable[..., Why], url: str, reason: Reason, rule: str) -> None:
    """Links are refused without a trace in the store: the same filters say which one it was, and by which line."""
    record = RobotsRecord(200, ROBOTS, NOW - 10, NOW + 1000, "fetched").pack()
    ports = host("ports.test", known=1, other_ports=tuple(range(8001, 8009)))
    farm = [("domains/example.com", DomainHosts(1010, pages=100).pack())]
    why = ask(Changes(hosts=[host("full.test", known=5), ports], robots=[("http://a.test", record)], facts=farm))

    answer = why.url(url)

    assert (answer.state, answer.reason) == (State.REFUSED, reason)
    assert rule in answer.facts["rule"]


def test_the_way_to_a_url_decides(ask: Callable[..., Why]) -> None:
    """Scope, depth and nofollow depend on the page that links: told with it, and never-seen without."""
    why = ask(Changes(), scope="host")

    assert why.url("http://a.test/new").state is State.NEVER_SEEN
    assert why.url("http://b.test/").reason is Reason.SCOPE
    deep = why.url("http://a.test/new", Via("http://a.test/", 3, nofollow=False))
    assert (deep.reason, deep.facts["rule"]) == (Reason.DEPTH, "4 links from a seed; SCOPE_MAX_DEPTH=3")
    assert why.url("http://a.test/new", Via("http://a.test/", 1, nofollow=True)).reason is Reason.NOFOLLOW
    assert why.url("http://a.test/private/open").state is State.NEVER_SEEN


def test_a_host_waits_for_the_other_ports_of_its_name(ask: Callable[..., Why]) -> None:
    """The moment is that of the name's clock; known ports, hosts of a full domain included, are asked."""
    changes = Changes(
        queued=[queued("http://a.test/1", 1)],
        hosts=[
            host(next_free=NOW - 9, rows=1, known=1, other_ports=(8080,)),
            host("a.test:8080", next_free=NOW + 30, name_free=NOW + 30, delay_seconds=5.0, known=3),
        ],
    )
    why = ask(changes)

    assert why.url("http://a.test/1").facts["free_in_seconds"] == 30.0
    assert why.host("a.test")["ports"] == "default, 8080"
    assert why.url("http://a.test:8080/new").state is State.NEVER_SEEN


def test_a_waiting_url_knows_its_place_and_moment(ask: Callable[..., Why]) -> None:
    """Second in its queue, its host free in seven seconds, at a pace that robots.txt asked for."""
    rows = [queued("http://a.test/1", 1), queued("http://a.test/2", 2)]
    why = ask(Changes(queued=rows, hosts=[host(next_free=NOW + 7, rows=2, floor_seconds=10.0, delay_seconds=10.0)]))

    answer = why.url("http://a.test/2")

    assert (answer.state, answer.reason) == (State.WAITING, "")
    assert (answer.facts["place"], answer.facts["free_in_seconds"]) == (2, 7.0)
    assert answer.facts["pace_from"] == "robots.txt asks for 10 s"
    assert answer.facts["via"] == "http://via.test/"


@pytest.mark.parametrize(
    ("state", "tries", "expected", "reason"),
    [
        ({}, 1, State.RETRY, ""),
        ({"rest_until": NOW + 60}, 0, State.WAITING, Reason.RATE_LIMITED),
        ({"rest_until": NOW + 60}, 1, State.RETRY, Reason.RATE_LIMITED),
        ({"state": HostState.PARKED}, 0, State.WAITING, Reason.HOST_PARKED),
        ({"robots_until_http": -(NOW + 60)}, 0, State.WAITING, Reason.ROBOTS_UNREACHABLE),
    ],
)
def test_a_url_waits_for_what_its_host_waits_for(
    ask: Callable[..., Why], state: dict[str, Any], tries: int, expected: State, reason: str
) -> None:
    """Rest, parking, an unreachable robots.txt, a failed try: each has its word."""
    changes = Changes(queued=[queued("http://a.test/1", tries=tries)], hosts=[host(rows=1, **state)])

    answer = ask(changes).url("http://a.test/1")

    assert (answer.state, answer.reason) == (expected, reason)


def test_a_queued_url_that_will_be_refused_says_so_already(ask: Callable[..., Why]) -> None:
    """Excluded or forbidden after it was queued: it waits only to be refused."""
    rows = [queued("http://bad.test/1"), queued("http://a.test/private/1")]
    record = RobotsRecord(200, ROBOTS, NOW - 10, NOW + 1000, "fetched").pack()
    why = ask(Changes(queued=rows, robots=[("http://a.test", record)]))

    assert why.url("http://bad.test/1").reason is Reason.NEVERCRAWL
    assert why.url("http://a.test/private/1").reason is Reason.ROBOTS


def test_a_leased_url_is_told_by_the_running_crawl(ask: Callable[..., Why]) -> None:
    """Of two queued URLs of a host only the one on its way is leased."""
    rows = [queued("http://a.test/1", 1), queued("http://a.test/2", 2)]
    lease = {"url": "http://a.test/1", "host": "a.test", "address": "192.0.2.1", "since": NOW - 1}
    why = ask(Changes(queued=rows, hosts=[host(rows=2)]), leases={"a.test": lease})

    assert why.url("http://a.test/1").state is State.LEASED
    assert why.url("http://a.test/2").state is State.WAITING
    assert why.host("a.test")["state"] == "in-flight"


def test_a_host_s_answer_has_its_numbers(ask: Callable[..., Why]) -> None:
    """Pace and its source, rests, failures, budget, robots.txt, exclusion."""
    record = RobotsRecord(200, b"User-agent: *\nCrawl-delay: 3\n", NOW - 10, NOW + 1000, "fetched").pack()
    state: dict[str, Any] = {
        "samples": (0.5, 1.5),
        "delay_seconds": 10.0,
        "rest_until": NOW + 30,
        "rows": 1,
        "known": 4,
        "failures": 2,
    }
    why = ask(Changes(queued=[queued("http://a.test/1")], hosts=[host(**state)], robots=[("http://a.test", record)]))

    facts = why.host("a.test")

    assert (facts["state"], facts["failures"], facts["next"]) == ("resting", 2, "http://a.test/1")
    assert "1000 ms of the last 2 answers" in facts["pace_from"]
    assert facts["budget"].startswith("4 of ")
    assert facts["robots_http"].endswith("Crawl-delay: 3")
    assert why.host("sub.bad.test") == {
        "host": "sub.bad.test",
        "state": "never-seen",
        "excluded": facts.get("excluded") or why.host("bad.test")["excluded"],
    }
