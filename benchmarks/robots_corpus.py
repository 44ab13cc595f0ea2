"""Parse a folder of real robots.txt files: how long, how much memory, what differs from raw Protego.

    python benchmarks/robots_corpus.py FOLDER [TOKEN]

FOLDER holds robots.txt files, one a file, named by their host. Prints the median, 99th percentile and worst
parse time, the time of a verdict, and the memory of all parsed rules together.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from pathlib import Path

from crawlerproject.rules.robots import ALLOW_ALL, RobotsRules, parse_robots

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
    for name, body in bodies.items():
        started = time.perf_counter()
        rules = parse_robots(body, token)
        parsing.append((time.perf_counter() - started, name))
        started = time.perf_counter()
        for path in _PATHS:
            rules.allowed(f"http://{name}{path}")
        asking.append(((time.perf_counter() - started) / len(_PATHS), name))
    print(f"files {len(bodies)}  empty of rules {sum(rules is ALLOW_ALL for rules in kept.values())}")
    print(f"memory of all parsed rules {memory_bytes / 1e6:.1f} MB, {memory_bytes / len(bodies):.0f} bytes a file")
    _show("parse", parsing, 1e3, "ms")
    _show("verdict", asking, 1e6, "us")
    return int(max(parsing)[0] > 1)


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
    if len(sys.argv) < 2:
        sys.exit("usage: python benchmarks/robots_corpus.py FOLDER [TOKEN]")
    sys.exit(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "PoliteCrawler"))
