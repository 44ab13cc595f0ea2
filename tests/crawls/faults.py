"""Lets one call that can fail do so, once, in a process of the crawler or in one that it starts.

A place is a call of the system (a file, the frontier's database, the socket to Redis) and the two functions of the
crawler that lead to it. ``environment`` makes a process write down every place that it passes, and lets the call with
number HIT (from 1) at one place fail: ``before`` it has done anything, or ``after`` it has done all, so that only its
answer is lost.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from types import BuiltinFunctionType, FrameType
from typing import Any, NamedTuple

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = str(PROJECT / "crawlerproject") + "/"
BEFORE, AFTER = "before", "after"
#: What changes a disk, opens what is on it, or talks to another machine.
CALLS = {
    "posix": frozenset(
        {"fsync", "fdatasync", "open", "replace", "rename", "link", "unlink", "remove", "ftruncate", "posix_fallocate"}
        | {"mkdir", "rmdir", "write", "pwrite"}
    ),
    "io": frozenset({"open"}),
    **dict.fromkeys(("BufferedWriter", "BufferedRandom", "FileIO"), frozenset({"write", "flush"})),
    "Rdict": frozenset({"write", "put", "flush_wal", "flush"}),
    "Checkpoint": frozenset({"create_checkpoint"}),
    "socket": frozenset({"sendall", "recv", "recv_into"}),
}
# Of the libraries, those that call the system for the crawler.
_THROUGH = tuple(f"/{name}" for name in ("pathlib.py", "shutil.py", "tempfile.py", "gzip.py", "os.py", "socket.py"))
_REDIS = "/redis/"
_DEEPEST = 24
_ASKED = "CRAWL_FAULT"


def place_of(frame: FrameType, called: BuiltinFunctionType) -> str:
    """The place of a call; empty for what is no such call, or not the crawler's."""
    owner = called.__self__
    kind = owner.__name__ if isinstance(owner, type(sys)) else type(owner).__name__
    kind = {"_io": "io"}.get(kind, kind)
    if called.__name__ not in CALLS.get(kind, ()):
        return ""
    ours: list[str] = []
    at: FrameType | None = frame
    redis = False
    for _ in range(_DEEPEST):
        if at is None or len(ours) == 2:
            break
        path = at.f_code.co_filename
        if path.startswith(PACKAGE):
            name = f"{path.removeprefix(PACKAGE)}:{at.f_code.co_qualname}"
            if not ours or name.partition(":")[0] != ours[0].partition(":")[0]:  # who wanted it, not how it is done
                ours.append(name)
        elif not ours:
            redis = redis or _REDIS in path
            if not redis and not path.endswith(_THROUGH):
                return ""
        at = at.f_back
    if not ours or (kind == "socket" and not redis):
        return ""
    return f"{kind}.{called.__name__} {' < '.join(ours)}"


def failure(place: str) -> Exception:
    """What a call at this place raises when it fails."""
    if place.startswith(("Rdict", "Checkpoint")):
        return Exception("IO error: put in by a test")
    if place.startswith("socket"):
        return ConnectionResetError(errno.ECONNRESET, "put in by a test")
    return OSError(errno.ENOSPC, "put in by a test")


class Fault(NamedTuple):
    """One call that fails."""

    place: str
    hit: int  # of the calls there, from 1
    when: str


def environment(folder: Path, fault: Fault | None = None) -> dict[str, str]:
    """What ``python -m tests.crawls.faults crawl web …`` watches: its own process.

    The places are in ``places(folder)`` once it has ended.
    """
    return {_ASKED: json.dumps([str(folder), "", fault])}


def environment_of_all(folder: Path, fault: Fault | None = None, worker: str = "") -> dict[str, str]:
    """What watches any process and its children; ``worker``: only those of a fleet that have this name."""
    (folder / "sitecustomize.py").write_text(f"from {__name__} import watch_process\n\nwatch_process()\n")
    asked = json.dumps([str(folder), worker, fault])
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(PROJECT)]), _ASKED: asked}


def places(folder: Path) -> Counter[str]:
    """The places that processes have passed, with the most calls that one of them made."""
    found = Counter[str]()
    for path in folder.glob("places.*"):
        found |= Counter(json.loads(path.read_text()))
    return found


def failed(folder: Path) -> bool:
    """Whether the call has failed."""
    return (folder / "failed").exists()


def watch_process() -> None:
    """Watch this process, if it is one that was asked for."""
    folder, worker, fault = json.loads(os.environ[_ASKED])
    if worker and not any(f"FLEET_WORKER={worker}" in argument for argument in sys.orig_argv):
        return
    place, hit, when = fault or ("", 0, BEFORE)
    counts, lock, pid = Counter[str](), threading.Lock(), os.getpid()
    event_of_failure = "c_call" if when == BEFORE else "c_return"

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("c_call", "c_return") or not hasattr(argument, "__self__"):
            return
        found = place_of(frame, argument)
        if not found or pid != os.getpid():
            return
        with lock:
            counts[found] += event == "c_call"
            if found != place or event != event_of_failure or counts[found] != hit:
                return
        try:  # one of all processes, once
            os.close(os.open(f"{folder}/failed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        raise failure(found)

    def write() -> None:
        if pid == os.getpid():
            Path(folder, f"places.{pid}").write_text(json.dumps(counts))

    atexit.register(write)
    threading.setprofile(profile)
    sys.setprofile(profile)


if __name__ == "__main__":
    from scrapy.cmdline import execute

    watch_process()
    execute(["scrapy", *sys.argv[1:]])
