"""``python -m benchmarks.broken_fleet [ROW …] [--folder DIR]``: a fleet of three machines, disturbed in every way.

As root, on Linux with iptables, a C compiler and redis-server. Each row crawls a web of its own with a Redis of its own
in a network namespace, and is judged by that web's log: no page missing, no pause at a host or an address cut short,
no two requests at once, and of pages that were asked for twice none that a worker had committed (its archive would
have it twice). Exit status 1 when anything else was seen.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from benchmarks.broken_fleet.machines import Power, PoweredRedis, built_shim, own_network
from benchmarks.broken_fleet.rows import REDIS_OPTIONS, ROWS
from benchmarks.broken_fleet.trial import HOSTS, PAGES_A_SECOND, Found, Trial
from tests.web.running import synthetic_web

_HEAD = "row", "requests", "missing", "short", "overlaps", "twice", "archive", "seconds", "what was seen"
_SHOWN = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.broken_fleet", description=__doc__)
    parser.add_argument("rows", nargs="*", choices=[[], *ROWS], help="default: all")
    parser.add_argument("--folder", type=Path, default=Path("crawls/broken-fleet"), help="made anew, row by row")
    parser.add_argument("--size", type=float, default=1.0, help="pages, as a multiple of the usual")
    parser.add_argument("--seed", type=int, default=1, help="of chance")
    given = parser.parse_args()
    own_network()
    bad = 0
    print(_line(_HEAD), _line(["---"] * len(_HEAD)), sep="\n")
    for name in given.rows or ROWS:
        found, notes = run(name, given.folder.absolute() / name, given.size, given.seed)
        line = [name, *(("failed",) if found is None else (*found[:5], len(found.archive), round(found.seconds)))]
        print(_line([*line, "; ".join(notes)]), flush=True)
        bad += found is None or bool(found.faults)
        for fault in (found.faults if found else [])[:_SHOWN]:
            print(f"  FAULT {fault}", flush=True)
        with (given.folder / "table.jsonl").open("a") as lines:
            lines.write(json.dumps({"row": name, "notes": notes, "found": found and found._asdict()}) + "\n")
    return 1 if bad else 0


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def run(name: str, folder: Path, size: float, seed: int) -> tuple[Found | None, list[str]]:
    """One row; None when it did not come to its end."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    act, seconds = ROWS[name]
    pages = round(seconds * size * PAGES_A_SECOND / HOSTS)
    print(f"{name}: {act.__doc__ or ''} {pages * HOSTS} pages", flush=True)
    shim = built_shim(folder)
    redis = PoweredRedis(folder / "redis", Power(folder / "redis-power", shim), *REDIS_OPTIONS.get(name, ()))
    with synthetic_web(folder / "web", "--profile", "shared", "--hosts", str(HOSTS), "--pages", str(pages)) as web:
        redis.start()
        trial = Trial(folder, web, redis, shim, seed)
        try:
            act(trial)
            return trial.judge(), trial.notes
        except (RuntimeError, OSError, AssertionError):
            traceback.print_exc()
            return None, trial.notes
        finally:
            for machine in trial.machines.values():
                machine.close()
            redis.stop(kill=True)


if __name__ == "__main__":
    sys.exit(main())
