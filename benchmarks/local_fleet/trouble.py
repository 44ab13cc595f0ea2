"""What chance does to a fleet while it crawls, and whether anything came of it."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.local_fleet.worlds import TroubledWeb
from crawlerproject.reports.warc_check import check_file
from tests.crawls.fleet.local_fleets import LocalFleetRun, local_fleet
from tests.web.judge import Verdict, show

_SMALL_FILE_BYTES = 20_000  # beyond it writes of a worker fail as on a full disk
_SHOWN = 3000  # characters of a log


class Trouble(NamedTuple):
    """How much of it."""

    workers: int
    events: int
    longest: float  # seconds for which something is stopped, at most


def trouble(fleet: LocalFleetRun, chance: random.Random, given: Trouble) -> list[str]:
    """What chance does to a fleet until it has done enough, or the crawl is over."""
    done: list[str] = []
    kinds = ("kill worker", "kill supervisor", "stop worker", "stop supervisor", "full disk", "kill all")
    while len(done) < given.events and fleet.supervisor.poll() is None:
        time.sleep(chance.uniform(1.0, 4.0))
        kind, name = chance.choice(kinds), chance.choice(fleet.names)
        with contextlib.suppress(AssertionError, ProcessLookupError, OSError):  # the crawl was over
            happen(fleet, kind, name, chance.uniform(0.5, given.longest))
            done.append(f"{kind} ({name})" if "worker" in kind or "disk" in kind else kind)
    return done


def happen(fleet: LocalFleetRun, kind: str, name: str, seconds: float) -> None:
    """One thing that goes wrong: to the worker ``name``, to the supervisor, or to all; what is only stopped goes on."""
    if kind == "kill worker":
        fleet.kill(name)
    elif kind == "stop supervisor":
        fleet.supervisor.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        fleet.supervisor.send_signal(signal.SIGCONT)
    elif kind == "stop worker":
        pid = fleet.pid(name)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
    elif kind == "full disk":
        pid = fleet.pid(name)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (_SMALL_FILE_BYTES, resource.RLIM_INFINITY))
        time.sleep(seconds)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        pids = [fleet.pid(each) for each in fleet.names]
        fleet.kill_supervisor()
        for pid in pids if kind == "kill all" else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        fleet.start()


def judged(world: TroubledWeb, fleet: LocalFleetRun) -> Verdict:
    """All that must hold afterwards."""
    folders = [fleet.folder / name for name in fleet.names]
    verdict = world.judge(folders)
    for path in (path for folder in folders for path in (folder / "warc").iterdir()):
        verdict.faults += [f"{path.name}: {flaw}" for flaw in check_file(path).flaws]
    for command in (["audit", str(fleet.folder)], ["verify", str(fleet.folder)]):
        asked = subprocess.run([sys.executable, "-m", "scrapy", *command], capture_output=True, text=True, check=False)
        if asked.returncode:
            verdict.faults.append(f"scrapy {command[0]}: {(asked.stdout + asked.stderr)[-500:]}")
    for said in (fleet.said(), *(fleet.output(name) for name in fleet.names)):
        if "Traceback" in said:
            verdict.faults.append(f"in a log: {said[said.index('Traceback') :][:_SHOWN]}")
        verdict.faults += ["the guard had to refuse a request"] * ("guard_refused" in said)
    return verdict


def one_round(folder: Path, world: TroubledWeb, given: Trouble, chance: random.Random) -> int:
    """One crawl under trouble; how many faults it has."""
    began = time.monotonic()
    with local_fleet(world.web, folder / "crawl", given.workers, world.settings, world.scope) as fleet:
        for name in fleet.names:
            fleet.until_archiving(name)
        happened = trouble(fleet, chance, given)
        status = fleet.wait(900.0)
        verdict = judged(world, fleet)
        if status:
            verdict.faults = [f"{name}: {fleet.output(name)[-_SHOWN:]}" for name in fleet.names] + verdict.faults
    print(f"status {status} after {time.monotonic() - began:.0f} s and: {', '.join(happened)}")
    show(verdict)
    return len(verdict.faults) + (status != 0)
