"""The workers of one crawl on this machine, and what all of them say together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from crawlerproject.inspection.worker_folders import _SUMS_LATER, WorkerLook, together, workers_below
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock, write_facts

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
