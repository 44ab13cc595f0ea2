"""What the live page shows: the state in a word, errors without renders, hosts wherever they are, the last hour."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.inspection.host_table import host_row
from crawlerproject.terminal import json_text
from crawlerproject.watch.live import (
    FIRST_ROWS,
    ORDERS,
    SPAN_SECONDS,
    STEP_SECONDS,
    LastHour,
    Levels,
    Sample,
    Survey,
    Surveyed,
    Totals,
    errors_by_reason,
    host_table,
    hosts_by_state,
    live_facts,
    read_last_hour,
)

PROGRESS = {
    "pages": 5, "bytes": 900, "errors": 1, "hosts_in_flight": 0, "hosts_ready": 0, "hosts_waiting": 0,
    "hosts_resting": 0, "hosts_on_disk": 0, "queued_urls": 0, "next_free_seconds": None, "eta_seconds": None,
    "paused": "", "ceiling_per_second": None,
}  # fmt: skip


def status(**progress: Any) -> dict[str, Any]:
    """A status file of a crawl that stands so."""
    return {
        "time": 1.0, "totals": {"pages": 50, "bytes": 9000, "errors": 2, "since": 0.5},
        "progress": PROGRESS | progress, "pages_per_second": 0.0, "bytes_per_second": 0.0,
        "cpu_share": 0.0, "lag_seconds": 0.0, "max_in_flight": 100, "given_up_hosts": 0, "statuses": {"200": 5},
        "short_pauses": 0, "machine": {}, "build": {}, "stats": {"pages/fetched": 5, "pages/dns-not-found": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("progress", "state"),
    [
        ({"paused": "no room"}, "paused"),
        ({"hosts_resting": 3, "queued_urls": 3}, "resting"),
        ({"hosts_waiting": 3, "queued_urls": 3}, "crawling"),
        ({"hosts_in_flight": 1}, "crawling"),
        ({"queued_urls": 9}, "starting"),
        ({}, "idle"),
    ],
)
def test_the_state_is_one_word(progress: dict[str, Any], state: str) -> None:
    """What the page begins with."""
    assert live_facts(status(**progress), {}, None, [])["state"] == state


def test_a_crawl_that_has_not_looked_yet_is_starting() -> None:
    """The first second has no status."""
    assert live_facts({}, {"folder": "crawls/web"}, None, []) == {
        "folder": "crawls/web", "columns": Sample._fields, "rows": [], "state": "starting",
    }  # fmt: skip


def test_errors_are_attempts_without_an_answer() -> None:
    """The commonest first; a page that a browser made is none, nor is a 404."""
    stats = {"pages/rendered": 9, "pages/http-error": 9, "pages/dns-not-found": 1, "pages/disconnected": 2, "x": 9}

    assert errors_by_reason(stats) == [("disconnected", 2), ("dns-not-found", 1)]


def test_hosts_are_counted_wherever_they_are() -> None:
    """In memory, on disk, and given up, which leaves memory."""
    survey = Survey()
    survey.look([Host("a.test", 5.0), Host("b.test", 5.0)], 0.0, ())
    crawl = status(hosts_on_disk=7) | {"given_up_hosts": 3}

    assert hosts_by_state(crawl, survey.result(0.0)) == {"done": 2, "on-disk": 7, "parked": 3}
    assert hosts_by_state(status(), None) == {}


def test_a_table_is_json_whatever_a_host_is_called() -> None:
    """Rows have names for programs; nothing in a name ends a string."""
    host = Host('"</script>\u202e.test', 5.0)
    host.rows = 1
    survey = Survey()
    survey.look([host], 0.0, ())

    found = host_table(survey.result(0.0), "left", 50)

    assert found["of"] == 1
    assert found["hosts"] == [host_row(host, 0.0)._asdict()]
    assert "\u202e" not in json_text(found)


NOW = 1_800_000_000.0
LEVELS = Levels(4.5, 10, 2, 100_000_000)


def filled(rows: int) -> LastHour:
    """A row each step: 10 pages, 1,000 bytes, one error; the last one at NOW."""
    hour = LastHour()
    for number in range(rows + 1):
        hour.add(NOW + (number - rows) * STEP_SECONDS, Totals(10 * number, 1000 * number, number), LEVELS)
    return hour


def test_rates_are_means_since_the_row_before() -> None:
    """The first look only begins to count."""
    hour = filled(2)

    rows = hour.since(0.0, NOW)
    assert [row.at for row in rows] == [NOW - STEP_SECONDS, NOW]
    assert [(row.pages, row.bytes, row.errors) for row in rows] == [(2.0, 200.0, 0.2)] * 2
    assert rows[-1][5:] == LEVELS


def test_a_timer_that_rings_again_at_once_adds_nothing() -> None:
    """Nor does it take the time from the next row."""
    hour = filled(1)
    hour.add(NOW + 0.001, Totals(10, 1000, 1), LEVELS)
    hour.add(NOW + STEP_SECONDS, Totals(20, 2000, 2), LEVELS)

    assert [row.pages for row in hour.since(0.0, NOW + STEP_SECONDS)] == [2.0, 2.0]


def test_it_holds_one_hour() -> None:
    """However long a crawl is."""
    hour = filled(2000)

    rows = hour.since(0.0, NOW)
    assert len(rows) == SPAN_SECONDS / STEP_SECONDS
    assert rows[0].at > NOW - SPAN_SECONDS
    assert hour.since(NOW - 12.0, NOW) == rows[-3:]


def test_counts_that_begin_anew_are_no_negative_rate() -> None:
    """A worker of a fleet may join again."""
    hour = filled(1)
    hour.add(NOW + 5, Totals(0, 0, 0), LEVELS)

    assert hour.since(NOW, NOW + 5)[0].pages == 0.0


def test_a_later_process_has_what_an_earlier_one_kept() -> None:
    """Through a file; without what is older than an hour or of a time to come."""
    kept = json.loads(json.dumps(filled(720).as_dict(NOW)))

    assert read_last_hour(kept, NOW).since(0.0, NOW) == filled(720).since(0.0, NOW)
    assert len(read_last_hour(kept, NOW + 1800).since(0.0, NOW + 1800)) == 360
    assert read_last_hour(kept, NOW - 7200).since(0.0, NOW) == []


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"format": 2, "columns": list(Sample._fields), "rows": [[1] * 9]},
        {"format": 1, "columns": ["at"], "rows": [[1]]},
        {"format": 1, "columns": list(Sample._fields), "rows": None},
        {"format": 1, "columns": list(Sample._fields), "rows": [["x"] * 9, [NOW], 7, [NOW, 5, None, 0, 0, 0, 0, 0, 0]]},
    ],
)
def test_a_file_that_is_none_of_ours_is_no_hour(facts: dict[str, Any]) -> None:
    """Of another version, torn, or made by somebody."""
    assert read_last_hour(facts, NOW).since(0.0, NOW) == []


def host(name: str, rows: int = 1, pace: float = 5.0, fetched: int = 0, failures: int = 0) -> Host:
    """One that may be asked now."""
    made = Host(name, pace)
    made.rows, made.fetched, made.failures = rows, fetched, failures
    return made


def surveyed(hosts: list[Host], slice_hosts: int = 7, leased: tuple[str, ...] = ()) -> Surveyed:
    """A whole look, some at a time."""
    survey = Survey()
    for at in range(0, len(hosts), slice_hosts):
        survey.look(hosts[at : at + slice_hosts], NOW, leased)
    return survey.result(NOW)


def test_it_counts_states() -> None:
    """Those of ``scrapy hosts``."""
    resting, waiting, done = host("rests"), host("waits"), host("done", rows=0)
    resting.rest_until, waiting.next_free = NOW + 60, NOW + 5

    found = surveyed([resting, waiting, done, host("asked"), host("free")], leased=("asked",))

    assert found.hosts == {"resting": 1, "waiting": 1, "done": 1, "in-flight": 1, "free": 1}


@pytest.mark.parametrize("order", ORDERS)
def test_the_first_of_each_order_are_those_of_all(order: str) -> None:
    """However the hosts lie in the slices, and never more of them than a page shows."""
    rng = random.Random(order)
    hosts = [
        host(f"h{n}", rng.randrange(90), rng.uniform(1, 60), rng.randrange(5000), rng.randrange(4)) for n in range(400)
    ]

    found, whole = surveyed(hosts), surveyed(hosts, slice_hosts=1000)

    key = ORDERS[order]
    assert list(map(key, found.first[order])) == list(map(key, whole.first[order]))
    assert list(map(key, found.first[order])) == sorted(map(key, whole.first[order]), reverse=True)
    assert 0 < len(found.first[order]) <= FIRST_ROWS


def test_what_has_nothing_of_it_is_in_no_order() -> None:
    """A host without failures is not among the failing."""
    found = surveyed([host("good"), host("bad", failures=2)])

    assert [row.host for row in found.first["failing"]] == ["bad"]
    assert found.first["done"] == []
