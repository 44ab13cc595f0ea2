"""``python -m benchmarks.torn_tails [--rounds 100]``: a real crawl that is killed, torn and started again.

Each round the crawl runs for a random moment and is killed; every other time its open WARC file is then cut at a
random byte of the last 64 KB (a third of these are filled up with zeros, as some file systems leave them), committed
bytes or not. While the next start runs, ``scrapy verify`` must find nothing. At the end every page of the web is
archived once, and every page that was committed at a kill is among them.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from crawlerproject.inspection.verification import Verification
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from crawlerproject.stores.rocks.rocks_store import FrontierView
from tests.web.judge import Verdict, judge_captures, read_captures, show
from tests.web.running import RunningWeb, crawl_command, finish, start, synthetic_web
from tests.web.zygote import Process

_TAIL_BYTES = 64 * 1024
_START_SECONDS = 60.0  # for a crawl to open its folder, however busy the machine
_OUTPUT = 2000  # characters shown of what failed
_DEPTH = 8  # links from a seed: 511 pages a host, since each page of the broad web links to two more


class Rounds:
    """One crawl folder and its many short lives."""

    def __init__(self, web: RunningWeb, folder: Path, given: argparse.Namespace) -> None:
        self.web, self.folder, self.given = web, folder, given
        seeds = (web.folder / "seeds.txt").read_text().split()
        self.expected = {*seeds, *(f"{seed}p/{n}" for seed in seeds for n in range(1, 2 ** (_DEPTH + 1) - 1))}
        self.allowed = folder.with_name("allowed.txt")  # its pages differ in little: the crawler would learn a trap
        self.allowed.write_text("".join(f"{seed.split('/')[2]}\n" for seed in seeds))
        self.chance = random.Random(given.seed)
        self.committed: set[str] = set()
        self.verdict = Verdict()
        self.cuts = self.zeros = self.lost = 0

    def command(self) -> list[str]:
        pace = f"{self.given.pace:g}"
        names = ("PACE_MIN_SECONDS", "PACE_START_SECONDS", "PACE_IP_SECONDS")
        settings = {
            "PACE_PRESET": "mirror",
            **dict.fromkeys(names, pace),
            "SCOPE_MAX_DEPTH": str(_DEPTH),
            "TRAP_ALLOW_FILE": str(self.allowed),
            "WARC_MAX_BYTES": "400000",
            "RENDER": "never",
        }
        return crawl_command(self.web.folder / "seeds.txt", self.folder, self.web.folder / "hosts", settings)

    def round(self, number: int) -> bool:
        """One life, verified while it runs, killed and perhaps cut; False when the crawl had ended before."""
        log = self.folder.with_name(f"{number}.log")
        began = time.monotonic()
        with log.open("wb") as output:
            process = start(self.command(), output)
            alive = self._opened(process, log)
            self._verify(number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.chance.uniform(0.0, self.given.longest))
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
            spent = finish(process, began) if process.returncode is None else None
        self.lost += log.read_text().count("wait in the frontier again")
        if not alive or spent is None or spent.status != -signal.SIGKILL:
            return False
        self._note_committed()
        self._cut()
        return True

    def _opened(self, process: Process, log: Path) -> bool:
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until and process.poll() is None:
            if read_facts(CrawlDir(self.folder).status).get("pid") == process.pid:  # its first beat
                return True
            time.sleep(0.02)
        if process.poll() not in (None, 0):
            self.verdict.faults.append(log.read_text()[-_OUTPUT:])
        return False

    def _verify(self, number: int) -> None:
        """What ``scrapy verify`` finds, without the second that it takes to start."""
        problems = Verification(CrawlDir(self.folder), lambda done: None).run().problems
        self.verdict.faults += [f"round {number}: {problem}" for problem in problems]

    def _note_committed(self) -> None:
        with FrontierView(self.folder / "frontier") as view:
            self.committed |= {record.url for _, record in view.pages() if record.status}

    def _cut(self) -> None:
        paths = list((self.folder / "warc").glob("*.open"))
        if not paths or self.chance.random() < 0.5:
            return
        size = paths[0].stat().st_size
        at = self.chance.randrange(max(0, size - _TAIL_BYTES), size)
        os.truncate(paths[0], at)
        self.cuts += 1
        if self.chance.random() < 1 / 3:
            os.truncate(paths[0], size)
            self.zeros += 1

    def finish(self) -> None:
        """Let the crawl end by itself, and judge what there is."""
        log = self.folder.with_name("last.log")
        with log.open("wb") as output:
            began = time.monotonic()
            spent = finish(start(self.command(), output), began)
        self.lost += log.read_text().count("wait in the frontier again")
        if spent.status:
            self.verdict.faults.append(log.read_text()[-_OUTPUT:])
        self._verify(-1)
        captures = read_captures(self.folder / "warc")
        self.verdict.add(judge_captures(captures, self.expected))
        gone = sorted(self.committed - set(captures))
        self.verdict.faults += [f"committed and not archived: {url}" for url in gone]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torn_tails", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--pace", type=float, default=0.35, help="seconds promised to each host and address")
    parser.add_argument("--longest", type=float, default=3.5, help="seconds that a life lasts after it was verified")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments and bytes")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torn-tails-") as scratch:
        folder = Path(scratch)
        arguments = ("--profile", "broad", "--hosts", str(given.hosts), "--response-seconds", "0.01")
        with synthetic_web(folder / "web", *arguments) as web:
            rounds = Rounds(web, folder / "crawl", given)
            done = 0
            while done < given.rounds and rounds.round(done):
                done += 1
                if done % 10 == 0:
                    print(f"{done} rounds, {rounds.cuts} cuts", flush=True)
            if done < given.rounds:
                rounds.verdict.faults.append(f"the crawl ended after {done} of {given.rounds} rounds: a longer --pace")
            rounds.finish()
    if not rounds.committed or not rounds.lost:
        rounds.verdict.faults.append("nothing was committed, or nothing committed was cut: choose a longer --longest")
    filled, lost = f"{rounds.zeros} of them filled up with zeros", f"{rounds.lost} starts found committed bytes gone"
    rounds.verdict.facts.insert(0, f"{done} kills and {rounds.cuts} cuts ({filled}), {lost}")
    rounds.verdict.facts.insert(1, f"{len(rounds.committed):,} pages were committed at some kill, all are archived")
    rounds.verdict.facts.append(f"{time.monotonic() - began:.0f} s")
    sys.exit(show(rounds.verdict))


if __name__ == "__main__":
    main()
