"""``python -m benchmarks.soak --folder DIR [--requests 2000000]``: a month in an hour.

A fleet of two workers crawls the manuals under very many names, and visits them again every three days of a clock that
is moved on between rounds; each round passes midnight. All the while servers fail in every way, workers and supervisor
are killed and stopped, and disks are full. Then all is judged and reported, with plots. The same command goes on where
an earlier one was ended, and reports again. How the last one went: docs/performance.md.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.real_pages.site import free_port, install
from benchmarks.soak.books import Books
from benchmarks.soak.judge import Judge, commands
from benchmarks.soak.report import write
from benchmarks.soak.run import Length, Soak
from benchmarks.soak.server import served
from benchmarks.soak.web import lay
from tests.web.judge import show as show_verdict
from tests.web.running import many_files


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="of the soak; the same one goes on where it was")
    parser.add_argument("--requests", type=int, default=2_000_000, help="after which no further round begins")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which this start ends, whatever was reached")
    parser.add_argument("--hosts", type=int, default=1500, help="that show a manual, when the soak begins")
    parser.add_argument("--event-seconds", type=float, default=60.0, help="between two strokes of chance; 0: none")
    parser.add_argument("--seed", type=int, default=1, help="of chance, when the soak begins")
    parser.add_argument("--report", action="store_true", help="crawl nothing more: judge what is there, and report it")
    parser.add_argument("--into", type=Path, help="where soak.json, the report and the plots go; else DIR/report")
    given = parser.parse_args()
    install()
    many_files()
    plan = {"hosts": given.hosts, "port": free_port(), "cut_port": free_port(), "workers": 2, "seed": given.seed}
    books = Books.open(given.folder.resolve(), plan)
    web = lay(books.folder / "web", books.plan["port"], books.plan["cut_port"], books.plan["hosts"])
    turn = books.rounds[-1].generation if books.rounds else 0
    if not given.report:
        with served(web, turn) as show:
            Soak(web, books, show, Length(given.requests, given.seconds, given.event_seconds)).run()
    with ThreadPoolExecutor() as beside:  # scrapy verify takes as long as all the rest
        asked = beside.submit(commands, books.crawl)
        judged = Judge(web, books).run()
        judged.add(asked.result())
    write(books, judged, given.into or books.folder / "report")
    return show_verdict(judged)


if __name__ == "__main__":
    sys.exit(main())
