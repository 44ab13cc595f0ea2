"""``scrapy hosts``: every host as a row of a table that sorts by any column."""

from __future__ import annotations

import argparse

from crawlerproject.errors import OperatorError
from crawlerproject.frontier.host_table import HostRow, host_rows
from crawlerproject.frontier.progress import NOTHING_LEFT, human_seconds
from crawlerproject.onlooker import LookingCommand
from crawlerproject.rules.printable import printable_line
from crawlerproject.terminal import console, say_json

_TEXTS = ("host", "state")
# Piped into a file, the table is as wide as its columns.
_WIDE = 200


class Command(LookingCommand):
    """Works while the crawl runs, and after."""

    example = "scrapy hosts --sort queued --limit 20"

    def syntax(self) -> str:
        return "[--sort COLUMN] [--state STATE] [--limit N] [--json]"

    def short_desc(self) -> str:
        return "A table of all hosts: queue, done, pace, rest, failures, ETA"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        columns = ", ".join(HostRow._fields)
        parser.add_argument("--sort", default="eta_seconds", metavar="COLUMN", help=f"one of {columns}")
        parser.add_argument(
            "--state", help="only: in-flight, free, waiting, resting, paused, limited, parked, left-alone or done"
        )
        parser.add_argument("--limit", type=int, default=0, metavar="N", help="the first N rows (default: all)")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise OperatorError("scrapy hosts takes no argument; for one host: scrapy why HOST")
        column = opts.sort if opts.sort in HostRow._fields else f"{opts.sort}_seconds"
        if column not in HostRow._fields:
            raise OperatorError(f"There is no column {opts.sort!r}; sort by one of {', '.join(HostRow._fields)}.")
        crawl = self.look()
        with crawl.store() as store:
            rows = [
                row for row in host_rows(store.hosts(), crawl.now, crawl.leases()) if opts.state in (None, row.state)
            ]
        # Words from a to z, numbers from the largest: what one looks for comes first.
        rows.sort(key=lambda row: row.host)
        rows.sort(key=lambda row: _key(row, column), reverse=column not in _TEXTS)
        shown = rows[: opts.limit] if opts.limit > 0 else rows
        if opts.json:
            say_json([row.as_dict() for row in shown])
        else:
            _print(shown, len(rows))


def _key(row: HostRow, column: str) -> tuple[bool, object]:
    value = getattr(row, column)
    return (value is not None, value if value is not None else 0)


def _print(rows: list[HostRow], of: int) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("host", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for name in ("queued", "done", "pace", "response", "free in", "rests", "failures", "ETA"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            printable_line(row.host), row.state, f"{row.queued:,}", f"{row.done:,}", human_seconds(row.pace_seconds),
            _seconds(row.response_seconds), _seconds(row.free_in_seconds or None), _seconds(row.rests_seconds or None),
            str(row.failures), _seconds(row.eta_seconds),
        )  # fmt: skip
    terminal = console()
    if not terminal.is_terminal:
        terminal = console(width=_WIDE)
    terminal.print(table)
    terminal.print(f"{len(rows):,} of {of:,} hosts" if len(rows) < of else f"{of:,} hosts")


def _seconds(value: float | None) -> str:
    return NOTHING_LEFT if value is None else human_seconds(value)
