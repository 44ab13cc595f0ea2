"""``python -m benchmarks.soak --folder DIR [--requests 2000000]``: a month in an hour."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.real_pages.site import free_port, install
from benchmarks.soak.books import Books
from benchmarks.soak.run import Length, Soak
from benchmarks.soak.server import served
from benchmarks.soak.web import lay
from tests.web.running import many_files


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="of the soak; the same one goes on where it was")
    parser.add_argument("--requests", type=int, default=2_000_000, help="after which no further round begins")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which this start ends, whatever was reached")
    parser.add_argument("--hosts", type=int, default=1500, help="that show a manual, when the soak begins")
    parser.add_argument("--event-seconds", type=float, default=60.0, help="between two strokes of chance; 0: none")
    parser.add_argument("--seed", type=int, default=1, help="of chance, when the soak begins")
    given = parser.parse_args()
    install()
    many_files()
    plan = {"hosts": given.hosts, "port": free_port(), "cut_port": free_port(), "workers": 2, "seed": given.seed}
    books = Books.open(given.folder.resolve(), plan)
    web = lay(books.folder / "web", books.plan["port"], books.plan["cut_port"], books.plan["hosts"])
    turn = books.rounds[-1].generation if books.rounds else 0
    with served(web, turn) as show:
        Soak(web, books, show, Length(given.requests, given.seconds, given.event_seconds)).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
