"""Several workers shown on the page of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from crawlerproject.reports.metrics import metrics
from crawlerproject.rules.politeness.bottleneck import bound_by, load_of
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock, write_facts
from crawlerproject.watch.fleet_summary import Beside, of_all
from crawlerproject.watch.live import hosts_by_state, live_facts

PROGRESS = {
    "pages": 2, "bytes": 20, "errors": 1, "queued_urls": 5, "hosts_in_flight": 1, "hosts_ready": 0, "hosts_waiting": 3,
    "hosts_resting": 0, "hosts_on_disk": 4, "hosts_in_line": 0, "hosts_looked_up": 0, "next_free_seconds": 2.0,
    "eta_seconds": 60.0, "ceiling_per_second": 1.5, "paused": "", "standing": [],
}  # fmt: skip


def status(changed: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """What a worker says; ``changed`` of its progress."""
    classes = {"bounds": [1.0, 2.0], "counts": [1, 0, 2], "sum": 3.5}
    said: dict[str, Any] = {
        "pid": os.getpid(), "time": 1.0, "ended": None, "progress": PROGRESS | (changed or {}),
        "totals": {"pages": 9, "bytes": 90, "errors": 3, "since": 100.0}, "pages_per_second": 1.0,
        "bytes_per_second": 10.0, "max_in_flight": 8, "given_up_hosts": 1, "short_pauses": 0, "cpu_share": 0.25,
        "lag_seconds": 0.0, "stats": {"pages/fetched": 2, "errors/ours": 0}, "statuses": {"200": 2}, "held_hosts": {},
        "first_byte_seconds": classes, "pause_excess_seconds": classes, "leases": [{"host": "a.test"}],
        "machine": {"rss_bytes": 100, "memory_bytes": 999, "disk_bytes": 9, "disk_free_bytes": 8,
                    "disk_min_free_bytes": 1},
        "build": {"version": "1"}, "promised_pause_seconds": 6.0, "least_pause_margin_seconds": 0.5,
        "commit_seconds": classes, "commit_failures": 1, "commit_lag_seconds": 0.25, "uncommitted": 4,
        "stores": {"warc": 10}, "dns": {"questions": 3, "failures": {"dns-failed": 1}, "names": 2},
    }  # fmt: skip
    return said | changes


def test_what_was_done_is_summed_up() -> None:
    """Counts, rates and histograms; of loads and ends the worst; a pause of one is said."""
    place = {"absent": "", "crawl": "web", "held": 2, "partitions": 6}
    other = status(
        {"pages": 5, "eta_seconds": None, "ceiling_per_second": None, "paused": "the disk is full"},
        cpu_share=0.9, fleet=place, statuses={"200": 1, "404": 2},
        totals={"pages": 1, "bytes": 1, "errors": 1, "since": 50.0},
    )  # fmt: skip
    whole = of_all(status(fleet=place), [other])
    assert whole["fleet"] == place | {"held": 4}
    assert (whole["progress"]["pages"], whole["progress"]["hosts_on_disk"]) == (7, 8)
    assert (whole["progress"]["eta_seconds"], whole["progress"]["ceiling_per_second"]) == (60.0, 1.5)
    assert whole["progress"]["paused"] == "the disk is full"
    assert whole["totals"] == {"pages": 10, "bytes": 91, "errors": 4, "since": 50.0}
    assert (whole["pages_per_second"], whole["cpu_share"]) == (2.0, 0.9)
    assert (whole["statuses"], whole["stats"]) == ({"200": 3, "404": 2}, {"pages/fetched": 4, "errors/ours": 0})
    assert whole["first_byte_seconds"] == {"bounds": [1.0, 2.0], "counts": [2, 0, 4], "sum": 7.0}
    assert whole["machine"]["rss_bytes"] == 200
    assert (whole["uncommitted"], whole["commit_failures"], whole["stores"]) == (8, 2, {"warc": 20})
    assert whole["dns"] == {"questions": 6, "failures": {"dns-failed": 2}, "names": 4}
    assert len(whole["leases"]) == 2


def test_the_worst_is_said_of_what_has_no_sum() -> None:
    """Commits that are late, holds of the loop, the pause nearest to its promise."""
    stats = {"loop/longest_hold_seconds": 0.3, "loop/holds": 1}
    whole = of_all(
        status(stats=stats, commit_lag_seconds=9.0),
        [status(stats=stats | {"loop/longest_hold_seconds": 0.7}, least_pause_margin_seconds=-1.0)],
    )
    assert (whole["commit_lag_seconds"], whole["least_pause_margin_seconds"]) == (9.0, -1.0)
    assert whole["stats"] == {"loop/longest_hold_seconds": 0.7, "loop/holds": 2}


def test_a_worker_of_an_earlier_version_says_less() -> None:
    """Its part of what is new is nothing."""
    later = ("commit_seconds", "dns", "stores", "commit_lag_seconds", "uncommitted", "least_pause_margin_seconds",
             "promised_pause_seconds", "commit_failures")  # fmt: skip
    old = {name: value for name, value in status().items() if name not in later}
    whole = of_all(status(), [old])

    assert {name: whole[name] for name in later if name != "dns"} == {
        name: status()[name] for name in later if name != "dns"
    }
    assert whole["dns"]["questions"] == 3
    assert "commit_seconds" not in of_all(old, [old])
    assert b"crawler_pages_total" in metrics(lambda: of_all(old, [old]))()


def test_page_and_metrics_show_it_as_that_of_one() -> None:
    """Every figure that they need is there."""
    whole = of_all(status(), [status(), status()])
    assert live_facts(whole, {}, None, [])["hosts"] == {"in-flight": 2, "waiting": 6, "on-disk": 12, "parked": 3}
    assert hosts_by_state(status(), None) == {"on-disk": 4, "parked": 1}
    text = metrics(lambda: whole)().decode()
    assert "crawler_pages_total 6.0" in text
    assert 'crawler_hosts{state="waiting"} 9.0' in text
    assert bound_by(load_of(whole)).what == bound_by(load_of(status())).what


def test_workers_beside_are_those_that_run(tmp_path: Path) -> None:
    """Looked at once a second; none for a crawl of one process."""
    crawl = CrawlDir(tmp_path)
    locks = []
    for name in ("worker-1", "worker-2", "worker-3"):
        folder = CrawlDir(tmp_path / name)
        locks.append(take_lock(folder))
        write_facts(folder.run, {"started": 1.0})
        write_facts(folder.status, status())
    os.close(locks.pop())
    beside = Beside(crawl, CrawlDir(tmp_path / "worker-1"))
    assert beside.statuses(10.0) == [status()]
    rows = {row["name"]: (row["running"], row["pages"]) for row in beside.rows(10.0, status())}
    assert rows == {"worker-1": (True, 2), "worker-2": (True, 2), "worker-3": (False, 2)}
    os.close(locks.pop())
    assert len(beside.statuses(10.5)) == 1
    assert beside.statuses(11.5) == []
    assert Beside(crawl, crawl).statuses(10.0) == Beside(crawl, crawl).rows(10.0, status()) == []
    os.close(locks.pop())
