"""``scrapy report``: one self-contained HTML page on a crawl, made from its logs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_view import View
from crawlerproject.inspection.host_table import host_rows, outlook
from crawlerproject.operator_command import SPAN, InspectCommand, span_of
from crawlerproject.reports.crawl_report import crawl_report
from crawlerproject.reports.report_page import page
from crawlerproject.rules.traps.external_budgets import ExternalBudgets
from crawlerproject.rules.traps.template_yield import HostYields
from crawlerproject.stores.protocols import HostFact
from crawlerproject.terminal import say, say_json


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
        if opts.json:
            say_json({name: _plain(getattr(report, name)) for name in report.__slots__})
            return
        with crawl.store() as store:
            states = outlook(host_rows(store.hosts(), crawl.now, crawl.leases(), store.head)).hosts
            traps = sorted(_traps(store), key=lambda trap: str(trap["host"]))
        target = Path(args[0] if args else "report.html")
        try:
            halted = crawl.halted()
            title = f"Crawl {crawl.folder}" + (f": {halted[1]}" if halted else "")
            target.write_text(page(title, report, dict(states.most_common()), traps), encoding="utf-8")
        except OSError as error:
            raise OperatorError(f"{target} cannot be written ({error.strerror}).") from error
        say(f"{target}: {report.pages:,} pages of {report.hosts:,} hosts")


def _traps(store: View) -> Iterator[dict[str, Any]]:
    for name, packed in store.facts(HostFact.TRAPS):
        yields = HostYields.unpack(packed)
        host = name.removeprefix(HostFact.TRAPS)
        for found in yields.trapped():
            yield {"host": host, **found._asdict()}
        if yields.shapes:
            yield {"host": host, "template": yields.example, "why": f"links with an endless path: {yields.shapes:,}"}
    for name, packed in store.facts(HostFact.STRANGERS):
        for found in ExternalBudgets.unpack(packed).trapped():
            yield {"host": name.removeprefix(HostFact.STRANGERS), **found._asdict()}


def _plain(value: Any) -> Any:
    """Rows with names, where they have names."""
    return [row._asdict() if hasattr(row, "_asdict") else row for row in value] if isinstance(value, list) else value
