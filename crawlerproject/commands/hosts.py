"""``scrapy hosts``: every host as a row of a table that sorts by any column."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from operator import attrgetter

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_progress import NOTHING_LEFT
from crawlerproject.inspection.host_table import HostRow, host_rows
from crawlerproject.inspection.status_facts import ahead_of, left_lines
from crawlerproject.operator_command import InspectCommand, option
from crawlerproject.rules.printable import human_seconds, printable_line
from crawlerproject.terminal import console, say_json

_TEXTS = ("host", "state")
_STATES = ("in-flight", "free", "waiting", "resting", "paused", "limited", "parked", "left-alone", "done")
# On a narrow terminal the first of these goes first.
_LEAST_FIRST = ("response", "free in", "failures", "rests", "pace", "done", "state", "ETA")
_PADDING = 3  # of a column, as Rich's SIMPLE_HEAD draws it
_TELLING = 28  # letters of a host for whose sake columns are left out: a name and its port
_SHORTEST = 8
ELLIPSIS = "…"


class Command(InspectCommand):
    """Works while the crawl runs, and after."""

    arguments = "[--sort COLUMN] [--state STATE] [--limit N] [--json]"
    summary = "A table of all hosts: queue, done, pace, rest, failures, ETA"

    example = "scrapy hosts --sort queued --limit 20"

    options = (
        option("--sort", default="eta_seconds", metavar="COLUMN", help=f"one of {', '.join(HostRow._fields)}"),
        option("--state", choices=_STATES, help="only the hosts in this state"),
        option("--limit", type=int, default=0, metavar="N", help="the first N rows (default: all)"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise OperatorError("scrapy hosts takes no argument; for one host: scrapy why HOST")
        column = opts.sort if opts.sort in HostRow._fields else f"{opts.sort}_seconds"
        if column not in HostRow._fields:
            raise OperatorError(f"There is no column {opts.sort!r}; sort by one of {', '.join(HostRow._fields)}.")
        crawl = self.look()
        with crawl.store() as store:
            every = list(host_rows(store.hosts(), crawl.now, crawl.leases(), store.head))
        rows = [row for row in every if opts.state in (None, row.state)]
        # Words from a to z, numbers from the largest: what one looks for comes first.
        rows.sort(key=lambda row: row.host)
        values = attrgetter(column)
        rows.sort(
            key=lambda row: (False, 0) if values(row) is None else (True, values(row)), reverse=column not in _TEXTS
        )
        shown = rows[: opts.limit] if opts.limit > 0 else rows
        if opts.json:
            say_json([row._asdict() for row in shown])
        else:
            # A host's ETA is that of its own pauses: hosts of one address take turns besides.
            _print(shown, len(rows), left_lines(ahead_of(crawl, every)))


def _print(rows: list[HostRow], of: int, left: list[str]) -> None:
    from rich import box
    from rich.table import Table

    cells = {name: [text(row) for row in rows] for name, text in _COLUMNS.items()}
    widths = {name: _PADDING + max(map(len, (name, *texts))) for name, texts in cells.items()}
    terminal = console()
    if not terminal.is_terminal:  # a file, a pipe: as wide as its columns
        terminal = console(width=sum(widths.values()))
    shown, host_width = columns_that_fit(widths, terminal.width)
    room = host_width - _PADDING  # the end of a name says whose it is
    cells["host"] = [
        host if len(host) <= room else ELLIPSIS + host[len(host) - room + len(ELLIPSIS) :] for host in cells["host"]
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in shown:
        table.add_column(name, justify="left" if name in _TEXTS else "right", no_wrap=True)
    for row in zip(*(cells[name] for name in shown), strict=True):
        table.add_row(*row)
    terminal.print(table)
    left_out = [name for name in _COLUMNS if name not in shown]
    count = f"{len(rows):,} of {of:,} hosts" if len(rows) < of else f"{of:,} hosts"
    terminal.print(count + (f"; no room for {', '.join(left_out)}: --json has all" if left_out else ""))
    for line in left:
        terminal.print(" ".join(line.split()))


def columns_that_fit(widths: Mapping[str, int], room: int) -> tuple[list[str], int]:
    """The columns for which there is room, in the order of ``widths``, and the width of the first: the host.

    Least important ones are left out before a host loses its telling part; a number is never cut.
    """
    shown, least = list(widths), min(widths["host"], _PADDING + _TELLING)
    for name in _LEAST_FIRST:
        others = sum(widths[column] for column in shown[1:])
        if least + others <= room:
            break
        shown.remove(name)
    others = sum(widths[column] for column in shown[1:])
    return shown, max(_PADDING + _SHORTEST, min(widths["host"], room - others))


def _seconds(value: float | None) -> str:
    return NOTHING_LEFT if value is None else human_seconds(value)


# What a person looks for, in the order of the table.
_COLUMNS: dict[str, Callable[[HostRow], str]] = {
    "host": lambda row: printable_line(row.host),
    "state": lambda row: row.state,
    "queued": lambda row: f"{row.queued:,}",
    "done": lambda row: f"{row.done:,}",
    "pace": lambda row: human_seconds(row.pace_seconds),
    "response": lambda row: _seconds(row.response_seconds),
    "free in": lambda row: _seconds(row.free_in_seconds or None),
    "rests": lambda row: _seconds(row.rests_seconds or None),
    "failures": lambda row: str(row.failures),
    "ETA": lambda row: _seconds(row.eta_seconds),
}
