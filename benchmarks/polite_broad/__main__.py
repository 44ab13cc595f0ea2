"""``python -m benchmarks.polite_broad [--hosts 2000] [--delay 5]``: requests a second against what pace allows.

Each host may be asked once every delay + response time, so all of them together hosts / (delay + response time)
times a second. What was reached is taken from the server's log, over a minute after every host had its turn twice.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.web.judge import Verdict, Visit, judge_pauses, read_visits, show
from tests.web.running import PROJECT, Spent, crawl_command, finish, many_files, start, synthetic_web

_LEAST_SHARE = 0.95  # of the limit: what the project promises
_RAMP_TURNS = 2  # delays that pass before the minute begins: robots.txt and the front page of every host
_GIVE_UP_SECONDS = 120.0  # for the first request to arrive
_HOLD = re.compile(r"'loop/longest_(hold|work)_seconds': ([\d.]+)")
_TAIL = 2000  # characters of the crawl's output shown when it failed


def settings(delay: float) -> dict[str, str]:
    exact = {f"PACE_{name}_SECONDS": f"{delay:g}" for name in ("MIN", "MAX", "START")}
    return {"PACE_PRESET": "fixed5", **exact, "RENDER": "never"}


def crawl(folder: Path, given: argparse.Namespace) -> tuple[Spent, float]:
    """Crawl for the ramp and the minute, then ask it to stop; what it cost, and when the minute began."""
    web = folder / "web"
    command = crawl_command(web / "seeds.txt", folder / "crawl", web / "hosts", settings(given.delay))
    with (folder / "crawl.log").open("wb") as output:
        began = time.monotonic()
        process = start(command, output, PROJECT)
        first = _first_request(web / "server.jsonl", began)
        window = first + _RAMP_TURNS * given.delay
        while time.time() < window + given.seconds and process.poll() is None:
            time.sleep(0.2)
        if process.returncode is not None:
            print((folder / "crawl.log").read_text()[-_TAIL:])
            sys.exit(f"the crawl ended early with status {process.returncode}")
        process.send_signal(signal.SIGINT)
        return finish(process, began), window


def _first_request(log: Path, began: float) -> float:
    while not log.stat().st_size:
        if time.monotonic() - began > _GIVE_UP_SECONDS:
            sys.exit("the crawl asked for nothing")
        time.sleep(0.05)
    return read_visits(log)[0].start if log.read_bytes().endswith(b"\n") else time.time()


def judge(visits: list[Visit], spent: Spent, window: float, given: argparse.Namespace) -> Verdict:
    """The rate in the minute against the limit, and every pause against the promise."""
    minute = [visit for visit in visits if window <= visit.start < window + given.seconds]
    response = sum(visit.end - visit.start for visit in minute) / max(len(minute), 1)
    limit = given.hosts / (given.delay + response)
    counted, rate = len(minute) / given.seconds, steady_rate(minute)
    cost = spent.cpu_seconds * 1000 / max(len(visits), 1)
    usual = median(pause_list(visits, window))
    verdict = judge_pauses(visits, host_seconds=given.delay, ip_seconds=given.delay)
    verdict.facts += [
        f"{given.hosts} hosts, delay {given.delay:g} s, response {response:.4f} s: limit {limit:.1f} requests/s",
        f"reached {rate:.1f} requests/s: {rate / limit:.1%} of the limit (counted: {counted:.1f} requests/s)",
        f"median pause {usual:.3f} s",
        f"peak memory {spent.peak_bytes >> 20} MiB, CPU {cost:.2f} ms a request",
    ]
    if rate < _LEAST_SHARE * limit:
        verdict.faults.append(f"below {_LEAST_SHARE:.0%} of what politeness allows")
    return verdict


def steady_rate(minute: list[Visit]) -> float:
    """Requests a second of all hosts, each by its own turns: from its first start to its last.

    Counting starts alone would depend on where the waves fall that a crawl of equal hosts makes: three of them in
    a minute look like 20 s each even when they are 21.5 s apart. A host with less than two starts adds nothing.
    """
    first: dict[str, float] = {}
    last: dict[str, tuple[int, float]] = {}
    for visit in minute:
        first.setdefault(visit.host, visit.start)
        last[visit.host] = last.get(visit.host, (-1, 0.0))[0] + 1, visit.start
    return sum(issuer / (end - first[host]) for host, (issuer, end) in last.items() if issuer)


def holds(log: Path) -> list[str]:
    """How long the event loop was held up at worst, from the statistics at the end."""
    found = dict(_HOLD.findall(log.read_text()))
    return (
        [f"longest hold of the event loop {found['hold']} s, of it worked through {found['work']} s"] if found else []
    )


def pause_list(visits: list[Visit], since: float) -> list[float]:
    """The pauses at every host that ended after ``since``, in seconds."""
    last: dict[str, float] = {}
    found = []
    for visit in visits:
        if visit.start >= since and visit.host in last:
            found.append(visit.start - last[visit.host])
        last[visit.host] = visit.end
    return found or [0.0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.polite_broad", description=__doc__)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--delay", type=float, default=5.0, help="seconds between two requests to a host")
    parser.add_argument("--one-domain", action="store_true", help="all hosts are of one registered domain")
    parser.add_argument("--response-seconds", type=float, default=0.05, help="time to first byte")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the measured time")
    parser.add_argument("--keep", type=Path, help="a new folder to work in and leave behind")
    given = parser.parse_args()
    many_files()
    with tempfile.TemporaryDirectory(prefix="polite-broad-") as scratch:
        folder = given.keep or Path(scratch)
        numbers = ["--hosts", str(given.hosts), "--response-seconds", str(given.response_seconds)]
        profile = "broad-domain" if given.one_domain else "broad"
        with synthetic_web(folder / "web", "--profile", profile, *numbers):
            spent, window = crawl(folder, given)
        verdict = judge(read_visits(folder / "web" / "server.jsonl"), spent, window, given)
        verdict.facts += holds(folder / "crawl.log")
        sys.exit(show(verdict))


if __name__ == "__main__":
    main()
