"""``scrapy report``: one self-contained HTML page on a crawl, made from its logs."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crawlerproject.commands.traps import trap_rows
from crawlerproject.config.crawl_file import CrawlFile
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_view import CrawlView, View, about, title_of
from crawlerproject.inspection.host_table import census
from crawlerproject.operator_command import SPAN, InspectCommand, span_of
from crawlerproject.reports.crawl_report import Count, SeedEnd, crawl_report, listed
from crawlerproject.reports.report_page import Title, page
from crawlerproject.rules.printable import counted
from crawlerproject.stores.atomic_files import write_whole
from crawlerproject.terminal import say, say_json

# Of a crawl's statistics those on URLs that it refused.
_REFUSED = "refused/"


class Command(InspectCommand):
    """Works while the crawl runs, and after."""

    arguments = "[FILE] [--since TIME] [--until TIME] [--json]"
    summary = "Write a page with plots and tables on the crawl (default: report.html)"

    example = "scrapy report report.html"

    options = SPAN

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) > 1:
            raise OperatorError(f"Give one file or none, for example: {self.example}")
        crawl = self.look()
        report = crawl_report(crawl.logs, *span_of(opts))
        with crawl.store() as store:
            states = census(store.hosts(), crawl.now, crawl.leases(), store.head).ahead.hosts
            traps = trap_rows(store)
            seeds = [*report.seeds, *_unasked(crawl, store, {seed.url for seed in report.seeds}, self.crawl_file)]
        report.seeds, report.seeds_in_all = listed(seeds), len(seeds)
        report.about, report.refused = about(crawl), _refused(crawl)
        if opts.json:
            say_json({name: _plain(getattr(report, name)) for name in report.__slots__})
            return
        target = Path(args[0] if args else "report.html")
        title = Title(title_of(crawl.settings, crawl.folder), str(crawl.settings["CRAWL_DESCRIPTION"] or ""))
        write_whole(target, page(title, report, dict(states.most_common()), traps, str(crawl.folder)).encode())
        say(f"{target}: {counted(report.pages, 'page')} of {counted(report.hosts, 'host')}")


def _unasked(crawl: CrawlView, store: View, asked: set[str], file: CrawlFile | None) -> Iterator[SeedEnd]:
    """Seeds of the crawl's file that no line of the log is about, and what keeps them."""
    if file is None or not file.seeds:
        return
    from crawlerproject.crawl.start.preflight import seeds_with_options  # Scrapy imports every command at each start

    try:
        addresses, problems, _ = seeds_with_options(file.seeds, "any", warn=False)  # the page lists them
    except OperatorError:  # the list has been moved away since
        return
    why = crawl.why(store)
    for url in dict.fromkeys(address.url for address in addresses):
        if url not in asked:
            state = why.url(url)
            yield SeedEnd(url, False, f"{state.state}, {state.reason}" if state.reason else str(state.state))
    for problem in problems:
        yield SeedEnd(problem.text, False, f"no URL to crawl: {problem.reason}")


def _refused(crawl: CrawlView) -> list[Count]:
    """URLs that were refused since the last start, by reason."""
    counts: Counter[str] = Counter()
    for status in [worker.status for worker in crawl.workers] or [crawl.status]:
        for name, number in status.get("stats", {}).items():
            if name.startswith(_REFUSED):
                counts[name.removeprefix(_REFUSED)] += number
    return [Count(name, number) for name, number in counts.most_common()]


def _plain(value: Any) -> Any:
    """Rows with names, where they have names."""
    return [row._asdict() if hasattr(row, "_asdict") else row for row in value] if isinstance(value, list) else value
