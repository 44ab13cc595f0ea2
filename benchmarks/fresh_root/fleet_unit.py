"""fleet@NAME under systemd: two workers and their supervisor, stopped, killed one by one and all at once."""

from __future__ import annotations

import os
import signal

from benchmarks.fresh_root.system import System, drop_in, give_crawl, goes_on, judge, main_pid, stop
from tests.crawls.fleet.local_fleets import children_of, command_line
from tests.web.running import RunningWeb, small_settings

_WORKERS = ("worker-1", "worker-2")


def a_fleet(system: System, web: RunningWeb) -> None:
    """fleet@many: started, stopped, a worker killed, then the supervisor, to its end."""
    unit = "fleet@many"
    give_crawl(system, "many", web, {**small_settings(web), "FRONTIER_MAX_REST_SECONDS": "8"})
    arguments = system.root / "etc/polite-crawler/many.env"
    arguments.write_text(f"ARGS=--workers {len(_WORKERS)}\n")
    arguments.chmod(0o600)
    drop_in(system, f"{unit}.service", "[Service]\nRestartSec=1s\n")
    system("systemctl", "enable", "--now", unit)
    goes_on(system, web, unit)
    said = system.alive("many")
    system.note("status --alive says that the fleet is at work", said.endswith("is at work"), said)
    stop(system, unit)
    said = system.alive("many")
    system.note("status --alive says that it is not", said.endswith("is not at work"), said)

    system("systemctl", "start", unit)
    goes_on(system, web, unit)
    system.wait(lambda: _worker(system, unit), "had the worker", unit)
    killed = _worker(system, unit)
    assert killed
    os.kill(killed, signal.SIGKILL)
    system.wait(lambda: _worker(system, unit) not in (None, killed), "started the worker again", unit)
    system.note("a worker that was killed is started again by its supervisor", system.of(unit, "NRestarts") == "0")
    goes_on(system, web, unit)
    # systemd kills the workers of a supervisor that has died (KillMode=mixed).
    system("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)
    system.wait(lambda: system.of(unit, "NRestarts") == "1", "started again", unit)
    system.wait(lambda: system.of(unit, "ActiveState") == "inactive", "done", unit)
    result = system.of(unit, "Result"), system.of(unit, "ExecMainStatus")
    system.note("after kill -9 of all of it, it starts again and comes to its end", result == ("success", "0"), result)
    judge(system, web, "many", _WORKERS)


def _worker(system: System, unit: str) -> int | None:
    """The process of the first worker as it is called here."""
    mark = f"FLEET_WORKER={_WORKERS[0]}"
    return next((pid for pid in children_of(main_pid(system, unit)) if mark in command_line(pid)), None)
