"""scrapyd.service under systemd: jobs scheduled over HTTP, cancelled, stopped and killed with it, and continued."""

from __future__ import annotations

import signal

from benchmarks.fresh_root.system import (
    HOME,
    System,
    documented,
    drop_in,
    give_crawl,
    goes_on,
    judge,
    stop,
)
from tests.scrapyd.scrapyds import JOB, Scrapyd
from tests.web.running import RunningWeb, small_settings

_PORT = 6800  # scrapyd's own
_UNIT = "scrapyd"


def a_scrapyd(system: System, web: RunningWeb) -> None:
    """One crawl by four jobs: cancelled, stopped with its scrapyd, killed with it, and to its end."""
    scrapyd = Scrapyd(_PORT, system.root / HOME / "scrapyd/scrapyd.conf")
    give_crawl(system, "jobs", web, {**small_settings(web), "FRONTIER_MAX_REST_SECONDS": "8"})
    drop_in(system, f"{_UNIT}.service", "[Service]\nRestartSec=1s\n")
    system.typed(*documented("### scrapyd"))
    first = _scheduled(system, scrapyd)
    goes_on(system, web, _UNIT)
    said = system.alive("jobs")
    system.note("a job is at work", (scrapyd.state(first), said[-10:]) == ("running", "is at work"), said)
    scrapyd.ask("cancel", project=JOB["project"], job=first)
    system.wait(lambda: scrapyd.state(first) == "finished", "cancelled", _UNIT)
    system.note("cancel.json ends a job in good order", not _open_files(system))

    _scheduled(system, scrapyd)
    goes_on(system, web, _UNIT)
    stop(system, _UNIT, signal.SIGTERM)  # by which Twisted ends itself, when all is done
    system.note("and its job", not _open_files(system) and system.alive("jobs").endswith("is not at work"))

    system("systemctl", "start", _UNIT)
    _scheduled(system, scrapyd)
    goes_on(system, web, _UNIT)
    system("systemctl", "kill", "--kill-whom=all", "--signal=KILL", _UNIT)
    system.wait(lambda: system.of(_UNIT, "NRestarts") == "1", "started again", _UNIT)
    last = _scheduled(system, scrapyd)
    system.wait(lambda: scrapyd.state(last) == "finished", "done", _UNIT)
    said = (system.root / HOME / f"scrapyd/logs/{JOB['project']}/{JOB['spider']}/{last}.log").read_text()
    system.note("after kill -9 of all of it, the next job comes to its end", "'finish_reason': 'finished'" in said)
    system.note("jobs run the wheel, with its native reader", "Page reader: native" in said)
    judge(system, web, "jobs")
    system("systemctl", "disable", "--now", _UNIT)


def _scheduled(system: System, scrapyd: Scrapyd) -> str:
    """A job in the crawl's folder, whose crawl.toml says all else, once scrapyd listens; its id."""
    system.wait(scrapyd.answers, "listened", _UNIT)
    return str(scrapyd.ask("schedule", **JOB, setting=f"CRAWL_DIR=/{HOME}/jobs")["jobid"])


def _open_files(system: System) -> list[str]:
    """What a crawl that has ended in good order does not leave."""
    return [path.name for path in (system.root / HOME / "jobs/warc").glob("*.open")]
