"""The progress line: what it says and leaves out; and what all workers of a crawl say together."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.inspection.crawl_progress import (
    _SUMS_LATER,
    Progress,
    WorkerLook,
    render_lines,
    together,
    workers_below,
)
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock, write_facts

OF_ONE = Progress(
    pages=1204,
    bytes=18_200_000,
    errors=3,
    hosts_in_flight=12,
    hosts_ready=0,
    hosts_waiting=40,
    hosts_resting=0,
    hosts_on_disk=0,
    queued_urls=1930,
    next_free_seconds=0.4,
    eta_seconds=130.0,
    paused="",
)


def render_line(progress: Progress, previous: Progress | None, elapsed_seconds: float) -> str:
    """The log's line."""
    return " · ".join(render_lines(progress, previous, elapsed_seconds))


def test_the_line_says_everything() -> None:
    """Pages, rate, bytes, hosts, next free, errors, queue and ETA, in this order."""
    line = render_line(OF_ONE, OF_ONE._replace(pages=1000), 4.0)

    assert line == (
        "1,204 pages · 51.0 pages/s · 18.2 MB · hosts 12 active, 40 waiting · next free in 0.4 s"
        " · 3 errors · 1,930 queued · ETA 2 min 10 s"
    )


def test_ready_and_resting_hosts_are_named_when_there_are_any() -> None:
    """Hosts that rest or lack a free lease are told apart from those that only wait."""
    line = render_line(OF_ONE._replace(hosts_ready=5, hosts_resting=2), None, 1.0)

    assert "hosts 12 active, 5 ready, 40 waiting, 2 resting" in line


def test_what_is_unknown_is_a_dash() -> None:
    """No waiting host and no estimate give no invented number."""
    line = render_line(OF_ONE._replace(next_free_seconds=None, eta_seconds=None), None, 1.0)

    assert "next free in –" in line
    assert line.endswith("ETA –")


def test_a_pause_comes_first() -> None:
    """A crawl that asks nothing says so before anything else."""
    assert render_line(OF_ONE._replace(paused="disk full"), None, 1.0).startswith("PAUSED: disk full · ")


def test_hosts_in_line_and_with_the_dns_are_named() -> None:
    """Hosts that wait for their address, or for the DNS, are neither ready nor waiting for themselves."""
    line = render_line(OF_ONE._replace(hosts_in_line=39, hosts_looked_up=2), None, 1.0)

    assert "hosts 12 active, 2 looked up, 39 in line, 40 waiting" in line


def test_why_nothing_moves_stands_below() -> None:
    """A seed that does not resolve: the reason and the next moment, not only a count and an ETA."""
    still = OF_ONE._replace(errors=1, eta_seconds=None, standing=("example.org: dns-not-found, again in 59 min 0 s",))

    assert render_lines(still, None, 1.0)[2:] == [
        "next free in 0.4 s · 1 error · 1,930 queued · ETA –",
        "example.org: dns-not-found, again in 59 min 0 s",
    ]
    assert render_line(still, None, 1.0).endswith("ETA – · example.org: dns-not-found, again in 59 min 0 s")


def test_no_time_gives_no_rate() -> None:
    """The first look divides by nothing."""
    assert " 0.0 pages/s" in render_line(OF_ONE, None, 0.0)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1.79e308, 1e18, 2.6e11])
def test_no_number_breaks_the_line(value: float) -> None:
    """Any float can be shown."""
    assert render_line(OF_ONE._replace(eta_seconds=value, next_free_seconds=value), None, 1.0)


PROGRESS = dict.fromkeys(("pages", "bytes", "errors", "hosts_in_flight", "hosts_ready", "hosts_waiting"), 2)


def status(**changes: Any) -> dict[str, Any]:
    """What a worker says of itself."""
    said: dict[str, Any] = {
        "progress": {**PROGRESS, "hosts_resting": 1, "queued_urls": 10, "paused": ""},
        "totals": {"pages": 5, "bytes": 50, "errors": 1, "since": 100.0},
        "pages_per_second": 1.5, "bytes_per_second": 10.0, "cpu_share": 0.25, "lag_seconds": 0.1,
        "max_in_flight": 8, "leases": [{"host": "a.test"}], "ended": None,
    }  # fmt: skip
    return said | changes


def look(said: dict[str, Any], *, running: bool = True) -> WorkerLook:
    """A worker that says so."""
    return WorkerLook(CrawlDir("/crawl/w"), {}, said, running)


def test_folders_with_a_start_in_them_are_workers(tmp_path: Path) -> None:
    """By name; one runs while it holds its folder's lock."""
    for name in ("two", "one"):
        folder = CrawlDir(tmp_path / name)
        folder.mkdir()
        write_facts(folder.run, {"started": 1.0})
        write_facts(folder.status, {"pid": os.getpid()})
    (tmp_path / "log").mkdir()
    lock = take_lock(tmp_path / "two")
    found = workers_below(CrawlDir(tmp_path))
    os.close(lock)
    assert [(each.folder.name, each.run, each.running) for each in found] == [
        ("one", {"started": 1.0}, False),
        ("two", {"started": 1.0}, True),
    ]


def test_what_was_done_is_summed_of_all_and_loads_of_those_at_work() -> None:
    """The heaviest load counts; the first start is the crawl's."""
    busy = status(cpu_share=0.75, totals={"pages": 1, "bytes": 1, "errors": 1, "since": 50.0})
    found = together([look(status()), look(busy), look(status(ended=9.0), running=False)])
    assert found["progress"]["pages"] == 6
    assert found["progress"]["hosts_ready"] == 4
    assert found["progress"]["queued_urls"] == 20
    assert found["totals"] == {"pages": 11, "bytes": 101, "errors": 3, "since": 50.0}
    assert (found["pages_per_second"], found["cpu_share"], found["max_in_flight"]) == (3.0, 0.75, 16)
    assert len(found["leases"]) == 2
    assert found["ended"] is None


def test_a_crawl_has_ended_when_all_have() -> None:
    """At the last one's end, for its reason."""
    ends = [look(status(ended=at, finish_reason=why), running=False) for at, why in ((5.0, "first"), (9.0, "last"))]
    found = together(ends)
    assert (found["ended"], found["finish_reason"]) == (9.0, "last")
    assert (found["pages_per_second"], found["cpu_share"], found["leases"]) == (0, 0.0, [])


def test_a_pause_of_one_is_shown() -> None:
    """The first that says why."""
    paused = status()
    paused["progress"] = {**paused["progress"], "paused": "the disk is full"}
    assert together([look(status()), look(paused)])["progress"]["paused"] == "the disk is full"


def test_a_worker_of_an_earlier_version_says_less() -> None:
    """What it leaves out is summed up of the others."""
    older = status()
    older["progress"] = {name: value for name, value in older["progress"].items() if name not in _SUMS_LATER}

    both, one = together([look(status()), look(older)]), together([look(status())])

    assert {name: both["progress"][name] for name in _SUMS_LATER} == {
        name: one["progress"][name] for name in _SUMS_LATER
    }
    assert both["progress"]["pages"] == 2 * one["progress"]["pages"]


def test_workers_that_said_nothing_yet() -> None:
    """Nothing is known together either."""
    assert together([]) == together([look({})]) == {}
