"""What the page shows of one moment: the state in a word, errors without renders, hosts wherever they are."""

from __future__ import annotations

from typing import Any

import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.inspection.host_table import host_row
from crawlerproject.terminal import json_text
from crawlerproject.watch.last_hour import Sample
from crawlerproject.watch.live import errors_by_reason, host_table, hosts_by_state, live_facts
from crawlerproject.watch.survey import Survey

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
