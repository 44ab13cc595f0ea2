"""``scrapy hosts``: every host as a row of a table that sorts by any column."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_progress import NOTHING_LEFT
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.inspection.host_table import HostRow, census, host_rows
from crawlerproject.inspection.status_facts import ahead_of, left_lines
from crawlerproject.operator_command import InspectCommand, option
from crawlerproject.rules.printable import counted, human_seconds
from crawlerproject.terminal import SCREEN_ROWS, Layout, is_screen, json_text, say, say_below, say_table

_STATES = ("in-flight", "free", "waiting", "resting", "paused", "limited", "parked", "left-alone", "done")
_PIPED_ROWS = 10_000
"""Beyond these (ours) an order costs more memory than the answer is worth: --all has every host, by name."""


class Command(InspectCommand):
    """Works while the crawl runs, and after."""

    arguments = "[--sort COLUMN] [--state STATE] [--limit N | --all] [--json]"
    summary = "A table of all hosts: queue, done, pace, rest, failures, ETA"

    example = "scrapy hosts --sort queued --limit 20"

    options = (
        option("--sort", default="", metavar="COLUMN", help=f"one of {', '.join(HostRow._fields)}"),
        option("--state", choices=_STATES, help="only the hosts in this state"),
        option(
            "--limit",
            type=int,
            default=0,
            metavar="N",
            help=f"the first N rows (default: {SCREEN_ROWS} on a terminal, {_PIPED_ROWS:,} elsewhere)",
        ),
        option("--all", action="store_true", help="every host, by name, as it is read"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise OperatorError("scrapy hosts takes no argument; for one host: scrapy why HOST")
        if opts.all and (opts.sort or opts.limit):
            raise OperatorError("--all lists hosts by name; leave out --sort and --limit.")
        name = opts.sort or "eta_seconds"
        column = name if name in HostRow._fields else f"{name}_seconds"
        if column not in HostRow._fields:
            raise OperatorError(f"There is no column {name!r}; sort by one of {', '.join(HostRow._fields)}.")
        crawl = self.look()
        if opts.all:
            _say_all(crawl, opts)
            return
        limit = opts.limit if opts.limit > 0 else SCREEN_ROWS if is_screen() and not opts.json else _PIPED_ROWS
        with crawl.store() as store:
            found = census(
                store.hosts(), crawl.now, crawl.leases(), store.head, column=column, limit=limit, state=opts.state
            )
        left_out = _say(found.rows, as_json=opts.json)
        shown, of = len(found.rows), found.chosen
        count = f"{shown:,} of {counted(of, 'host')}; --all has the others" if shown < of else counted(of, "host")
        if opts.json:
            if shown < of:
                say(count, error=True)
            return
        room = f"; no room for {', '.join(left_out)}: --json has all" if left_out else ""
        # A host's ETA is that of its own pauses: hosts of one address take turns besides.
        say_below(count + room, *(" ".join(line.split()) for line in left_lines(ahead_of(crawl, found.ahead))))


def _say_all(crawl: CrawlView, opts: argparse.Namespace) -> None:
    with crawl.store() as store:
        rows = host_rows(store.hosts(), crawl.now, crawl.leases(), store.head)
        _say((row for row in rows if opts.state in (None, row.state)), as_json=opts.json)


def _say(rows: Iterable[HostRow], *, as_json: bool) -> list[str]:
    """The columns that had no room."""
    if not as_json:
        return say_table(_LAYOUT, rows)
    sys.stdout.writelines(_json_lines(rows))
    return []


def _json_lines(rows: Iterable[HostRow]) -> Iterator[str]:
    """A list, a row a line."""
    between = "[\n"
    for row in rows:
        yield between + json_text(row._asdict())
        between = ",\n"
    yield "[]\n" if between.startswith("[") else "\n]\n"


def _seconds(value: float | None) -> str:
    return NOTHING_LEFT if value is None else human_seconds(value)


# What a person looks for, in the order of the table.
_COLUMNS: dict[str, Callable[[HostRow], str]] = {
    "host": lambda row: row.host,
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
_LAYOUT = Layout(
    _COLUMNS, ("host", "state"), ("response", "free in", "failures", "rests", "pace", "done", "state", "ETA")
)
