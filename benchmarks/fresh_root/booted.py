"""The units of deploy/systemd under a systemd that has booted: start, stop, kill -9, journal, timer, rendering.

``python -m benchmarks.fresh_root.booted --root DIR`` (as root, with debootstrap and systemd-nspawn) makes a Debian in
DIR, boots it, installs the crawler as docs/install.md says, by the very lines of that page, and looks at what becomes
of the units: that a crawl is at work, stops in good order, goes on after kill -9 and when it hangs, that journald has
its lines with their priorities, that the timer starts a recrawl, and that pages are rendered in Chromium's sandbox with
everything that the units forbid, a page that takes too much memory ended; that a fleet and scrapyd with its jobs stop,
are killed and go on as well. The network is that of this machine, the web on its loopback addresses, scrapyd's port the
usual one. DIR keeps the system for another time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.fresh_root.fleet_unit import a_fleet
from benchmarks.fresh_root.scrapyd_unit import a_scrapyd
from benchmarks.fresh_root.system import (
    HOME,
    System,
    booted,
    documented,
    drop_in,
    give_crawl,
    goes_on,
    judge,
    main_pid,
    prepare,
    stop,
)
from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.rendering.confinement import Confinement, renderers
from tests.web.running import RunningWeb, read_pages, small_settings, synthetic_web

_WARNING = 4  # syslog's
# What a machine has that is looked at for a month, and one that is looked at for minutes has not.
_NOW = "[Timer]\nOnCalendar=\nOnCalendar=*:*:0/5\nRandomizedDelaySec=0\n"
_SOON = "[Service]\nWatchdogSec=5s\nTimeoutAbortSec=5s\nRestartSec=1s\n"


def a_crawl(system: System, web: RunningWeb) -> None:
    """crawl@example: started, stopped, killed, to its end."""
    unit = "crawl@example"
    settings = {**small_settings(web), "FRONTIER_MAX_REST_SECONDS": "8", "RECRAWL_RECENT_DAYS": "0"}
    give_crawl(system, "example", web, settings)
    drop_in(system, f"{unit}.service", _SOON)
    *_, enable = documented()
    system.typed(enable)
    goes_on(system, web, unit)
    said = system.alive("example")
    system.note("status --alive says that it is at work", said.endswith("is at work"), said)
    stop(system, unit)
    said = system.alive("example")
    system.note("status --alive says that it is not", said.endswith("is not at work"), said)

    system("systemctl", "start", unit)
    goes_on(system, web, unit)
    system("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)
    system.wait(lambda: system.of(unit, "NRestarts") == "1", "started again", unit)
    goes_on(system, web, unit)
    system("systemctl", "kill", "--kill-whom=main", "--signal=STOP", unit)
    system.wait(lambda: system.of(unit, "NRestarts") == "2", "started again by the watchdog", unit)
    system.wait(lambda: system.of(unit, "ActiveState") == "inactive", "done", unit)
    result = system.of(unit, "Result"), system.of(unit, "ExecMainStatus")
    system.note("after kill -9, and when it hangs, it starts again and comes to its end", result == ("success", "0"),
                result)  # fmt: skip
    judge(system, web, "example")


def the_journal(system: System, unit: str) -> None:
    """Its lines are JSON, and have the priority of their level."""
    text = system("journalctl", "--no-pager", "-o", "json", "-u", unit, "_COMM=polite-crawler")
    entries = [json.loads(line) for line in text.splitlines()]
    said = [(json.loads(entry["MESSAGE"]), int(entry["PRIORITY"])) for entry in entries]
    warned = {priority for line, priority in said if line["level"] == "WARNING"}
    system.note("journald has JSON lines", len(said) > 10, f"{len(said)} lines")
    system.note("warnings have their priority", warned == {_WARNING}, warned)


def a_recrawl(system: System, web: RunningWeb) -> None:
    """recrawl@example.timer, moved to now."""
    unit, log = "recrawl@example", web.folder / "server.jsonl"
    drop_in(system, f"{unit}.timer", _NOW)
    before = read_pages(log)
    system("systemctl", "start", f"{unit}.timer")
    system.wait(lambda: system.of(unit, "ExecMainStartTimestamp"), "started by its timer", unit)
    system("systemctl", "stop", f"{unit}.timer")
    system.wait(lambda: system.of(unit, "ActiveState") == "inactive", "done", unit)
    result, visits = system.of(unit, "Result"), read_pages(log) - before
    system.note("the timer starts a recrawl, which visits pages again", result == "success" and visits > 100,
                f"{result}, {visits} requests")  # fmt: skip


def rendering(system: System, web: RunningWeb) -> None:
    """crawl@apps: pages that scripts build and pages that are a burden, with all that the unit forbids."""
    unit = "crawl@apps"
    bounds = {"RENDER_NAVIGATION_SECONDS": "8", "RENDER_TIMEOUT_SECONDS": "24", "RENDER_PAGE_MEMORY_BYTES": "300000000"}
    settings = {**small_settings(web), "RENDER": "auto", "FRONTIER_MAX_REST_SECONDS": "3", **bounds}
    give_crawl(system, "apps", web, settings)
    system("systemctl", "start", unit)
    main = main_pid(system, unit)
    seen: list[Confinement] = []
    while system.of(unit, "ActiveState") in ("active", "deactivating"):
        seen += renderers(main)
        time.sleep(0.2)
    result = system.of(unit, "Result"), system.of(unit, "ExecMainStatus")
    rows = [row for row in read_log(system.root / HOME / "apps" / "log") if row["rendered"]]
    shown = [row for row in rows if row["reason"] == "rendered"]
    said = system("journalctl", "--no-pager", "-o", "cat", "-u", unit)
    system.note("the crawl that renders comes to its end", result == ("success", "0"), result)
    system.note("pages are rendered", len(shown) >= 10, f"{len(shown)} of {len(rows)}")
    stands = sum(each.stands for each in seen)
    system.note("in Chromium's sandbox", stands and "without Chromium's sandbox" not in said,
                f"seen {len(seen)} times a renderer, {stands} times in it")  # fmt: skip
    system.note("in a network namespace of its own", "gets no network namespace" not in said)
    system.note("a page that takes too much memory is ended", "took too much memory and were ended" in said)


def main() -> int:
    """0 when all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="a Debian, made there by debootstrap")
    parser.add_argument("--packages", type=Path, help="a folder that keeps the pins' wheels for another time")
    options = parser.parse_args()
    work, root = Path(mkdtemp(prefix="fresh-booted-")), options.root.resolve()
    prepare(root, options.packages or work / "packages", work)
    with booted(root) as system:
        *steps, _ = documented()
        system.typed(*steps)
        (work / "small").mkdir()
        with synthetic_web(work / "small") as web:
            a_crawl(system, web)
            the_journal(system, "crawl@example")
            a_recrawl(system, web)
        for name, look in (("many", a_fleet), ("jobs", a_scrapyd)):
            (work / name).mkdir()
            with synthetic_web(work / name) as web:
                look(system, web)
        (work / "apps").mkdir()
        with synthetic_web(work / "apps", "--profile", "apps") as web:
            rendering(system, web)
    shutil.rmtree(work)
    print("\n".join(system.faults) or "all as the docs say")
    return 1 if system.faults else 0


if __name__ == "__main__":
    sys.exit(main())
