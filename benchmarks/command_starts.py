"""``python -m benchmarks.command_starts [FOLDER]``: CPU of each command's start, in Scrapy's way and in ours.

Without a crawl's FOLDER each command ends at the sentence that there is none: that is its start alone. The floor of the
first column is ``scrapy version``. Each is run once before, so that its bytecode lies in a file, and the least of five
runs counts.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile

COMMANDS = (
    *(
        "status",
        "hosts",
        "why http://a.example/",
        "requests a.example",
        "traps",
        "report",
        "audit",
        "forecast http://a.example/",
    ),
    *("lookup http://a.example/", "search word", "verify", "index", "load", "export", "rank", "wacz", "process"),
)
_RUNS = 5


def cpu_seconds(module: str, words: list[str], environment: dict[str, str]) -> float:
    """The least of some runs, user and system."""
    least = float("inf")
    for _ in range(_RUNS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", module, *words], env=environment, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


def main() -> None:
    """A row a command."""
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = bytecode
        folder = ["-s", f"CRAWL_DIR={sys.argv[1] if len(sys.argv) > 1 else bytecode + '/none'}"]
        floor = cpu_seconds("scrapy", ["version"], environment)
        print(f"{'command':<12} {'scrapy':>8} {'polite-crawler':>15} {'share':>6}   CPU s; scrapy version: {floor:.2f}")
        for words in COMMANDS:
            typed = words.split() + folder
            theirs, ours = (cpu_seconds(module, typed, environment) for module in ("scrapy", "crawlerproject"))
            print(f"{typed[0]:<12} {theirs:>8.2f} {ours:>15.2f} {ours / theirs:>6.0%}", flush=True)


if __name__ == "__main__":
    main()
