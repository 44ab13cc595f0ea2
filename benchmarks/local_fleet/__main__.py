"""``python -m benchmarks.local_fleet [--rounds 3] [--workers 4] [--web small|manuals|apps]``: a fleet without a server.

First rounds of trouble: workers crawl a web while chance kills workers (kill -9) and their supervisor, stops either
(SIGSTOP) and takes a worker's room on the disk. Every page must be archived once, every pause kept by the server's own
log, every WARC strict, ``scrapy audit`` and ``scrapy verify`` clean over the whole. The web is the small synthetic one,
Debian's manuals (the handbook and PostgreSQL's, 66 hosts), or pages that scripts build, with a real Chromium.

Then throughput: a broad crawl by one process and by two workers, in turn, with the server on the same machine. Printed
are pages a second and CPU ms a page, of the crawler and of the server, without what starts cost.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from benchmarks.local_fleet.throughput import throughput
from benchmarks.local_fleet.trouble import Trouble, one_round
from benchmarks.local_fleet.worlds import WORLDS
from tests.web.running import many_files


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_fleet", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="crawls under trouble")
    parser.add_argument("--workers", type=int, default=4, help="of each of them")
    parser.add_argument("--web", choices=WORLDS, default="small", help="that they crawl")
    parser.add_argument("--pages", type=int, default=None, help="of the manuals, about; without it all 4,000")
    parser.add_argument("--events", type=int, default=8, help="of trouble in each of them")
    parser.add_argument("--longest", type=float, default=4.0, help="seconds for which something is stopped at most")
    parser.add_argument("--seed", type=int, default=1, help="of chance")
    parser.add_argument("--turns", type=int, default=2, help="of the throughput; 0: none")
    parser.add_argument("--hosts", type=int, default=1500, help="of the broad crawl")
    parser.add_argument("--keep", type=Path, default=None, help="leave the folders of the rounds here")
    given = parser.parse_args()
    chance, faults = random.Random(given.seed), 0
    many_files()
    with tempfile.TemporaryDirectory() as name:
        for number in range(given.rounds):
            folder = Path(given.keep or name, f"round-{number}")
            folder.mkdir(parents=True)
            with WORLDS[given.web](folder / "web", given.pages) as world:
                faults += one_round(folder, world, Trouble(given.workers, given.events, given.longest), chance)
        if given.turns:
            throughput(Path(name), given.hosts, given.turns)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
