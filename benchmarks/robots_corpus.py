"""Parse robots.txt files, a folder of real ones and the worst that can be made: how long, how much memory.

    python benchmarks/robots_corpus.py [FOLDER [TOKEN]]

FOLDER holds robots.txt files, one a file, named by their host. Prints the median, 99th percentile and worst
parse time, the time of a verdict, and the memory of all parsed rules together. Then the same of each file of
tests/robots_files.py, made to cost as much as it can within 500 KiB: parsing, the first verdict (which may build an
index) and a verdict for each kind of path. CPU time, the best of several runs.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from crawlerproject.rules.robots import policy as robots
from crawlerproject.rules.robots.policy import ALLOW_ALL, RobotsRules, parse_robots
from tests.robots_files import WORST_FILES, worst_file, worst_paths

_RUNS = 5
_PATHS = ("/", "/index.html", "/search?q=x&lang=en", "/a/b/c/d.php?id=1", "/wp-admin/x", "/caf%C3%A9/")


def main(folder: Path, token: str) -> int:
    """Measure and print; the exit code is 1 when a file broke the parser or took over a second."""
    bodies = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    parsing: list[tuple[float, str]] = []
    asking: list[tuple[float, str]] = []
    kept: dict[str, RobotsRules] = {}
    tracemalloc.start()
    for name, body in bodies.items():
        kept[name] = parse_robots(body, token)
    memory_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    _forget()
    for name, body in bodies.items():
        started = time.process_time()
        rules = parse_robots(body, token)
        parsing.append((time.process_time() - started, name))
        started = time.process_time()
        for path in _PATHS:
            rules.allowed(f"http://{name}{path}")
        asking.append(((time.process_time() - started) / len(_PATHS), name))
    print(f"files {len(bodies)}  empty of rules {sum(rules is ALLOW_ALL for rules in kept.values())}")
    print(f"memory of all parsed rules {memory_bytes / 1e6:.1f} MB, {memory_bytes / len(bodies):.0f} bytes a file")
    _show("parse", parsing, 1e3, "ms")
    _show("verdict", asking, 1e6, "us")
    return int(max(parsing)[0] > 1)


def worst(token: str) -> None:
    """A line for each hostile file."""
    kinds = worst_paths()
    print(f"\n{'us a verdict':36} {'parse ms':>9} {'first ms':>9}  " + "  ".join(kinds))
    for name in WORST_FILES:
        body = worst_file(name)
        parsed = _best(partial(_parsed_anew, body, token))
        rules = parse_robots(body, token)
        first = _once(partial(rules.allowed, kinds["2,000 characters"]))
        verdicts = [f"{_best(partial(_asked_often, rules, path)) * 1e4:{len(kind)}.1f}" for kind, path in kinds.items()]
        print(f"{name:36} {parsed * 1e3:9.1f} {first * 1e3:9.1f}  " + "  ".join(verdicts))


def _parsed_anew(body: bytes, token: str) -> None:
    _forget()
    parse_robots(body, token)


def _asked_often(rules: RobotsRules, path: str) -> None:
    for _ in range(100):
        rules.allowed(path)


def _once(work: Callable[[], object]) -> float:
    """CPU seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _best(work: Callable[[], object]) -> float:
    """CPU seconds of the quickest of some runs."""
    return min(_once(work) for _ in range(_RUNS))


def _forget() -> None:
    """Parse anew, as for another host."""
    robots._parsed.cache_clear()
    robots._shared_matcher.cache_clear()


def _show(what: str, times: list[tuple[float, str]], scale: float, unit: str) -> None:
    """One line of percentiles."""
    seconds = sorted(second for second, _ in times)
    worst, name = max(times)
    p99 = seconds[int(len(seconds) * 0.99)]
    print(
        f"{what:8} median {statistics.median(seconds) * scale:.3f} {unit}  p99 {p99 * scale:.3f} {unit}"
        f"  worst {worst * scale:.1f} {unit} ({name})"
    )


if __name__ == "__main__":
    wanted = sys.argv[2] if len(sys.argv) > 2 else "PoliteCrawler"
    status = main(Path(sys.argv[1]), wanted) if len(sys.argv) > 1 else 0
    worst(wanted)
    sys.exit(status)
