"""A month of request log: what its Parquet twins cost, and a question about one host with and without them.

``python -m benchmarks.request_log_month [LINES_A_DAY]`` (default 100,000) writes 31 days into a temporary folder.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from pathlib import Path

import orjson

from crawlerproject.stores.logs.log_query import attempts, write_twin
from crawlerproject.stores.logs.request_log import attempt_line, twin_of

DAYS = 31
HOSTS = 2_000
DAY_SECONDS = 86_400.0
BEGIN = 1_793_491_200.0  # 2026-11-01


def main(arguments: list[str]) -> int:
    """Measure and print."""
    per_day = int(arguments[0]) if arguments else 100_000
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder)
        days = [write_day(log, day, per_day) for day in range(DAYS)]
        packed = sum(day.stat().st_size for day in days)
        print(f"{DAYS * per_day:,} lines of {HOSTS:,} hosts, {packed / 1e6:.0f} MB compressed")
        seconds, found = ask(log)
        print(f"one host's {found:,} attempts from the lines: {seconds:.2f} s")
        began = time.perf_counter()
        for day in days:
            write_twin(day)
        spent = time.perf_counter() - began
        size = sum(twin_of(day).stat().st_size for day in days)
        print(f"twins: {size / 1e6:.0f} MB, {spent / DAYS:.2f} s a day")
        seconds, found = ask(log)
        print(f"one host's {found:,} attempts from the twins: {seconds:.2f} s")
    return 0


def write_day(log: Path, day: int, lines: int) -> Path:
    """One closed day."""
    path = log / f"requests-2026-11-{day + 1:02d}.jsonl.gz" if day < 30 else log / "requests-2026-12-01.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for number in range(lines):
            at = BEGIN + day * DAY_SECONDS + number * DAY_SECONDS / lines
            host = f"host{number % HOSTS}.example"
            url = f"https://{host}/section/{day}/{number}.html"
            attempt = attempt_line(
                at, at + 0.3, url, "fetched", status=200, host=host, ip="192.0.2.1", mime="text/html",
                bytes=14_000 + number % 999, ttfb_seconds=0.12, delay_seconds=5.0, warc="crawl.warc.gz",
                offset=number * 5_000, length=4_800, digest=f"{number:032d}", depth=3, hop="LLL",
            )  # fmt: skip
            file.write(orjson.dumps(attempt, option=orjson.OPT_APPEND_NEWLINE))
    return path


def ask(log: Path) -> tuple[float, int]:
    """Seconds, and how many attempts were found."""
    began = time.perf_counter()
    found = attempts(log, host="host7.example")
    return time.perf_counter() - began, len(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
