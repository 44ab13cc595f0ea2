"""``scrapy traps``: which hosts and templates of URLs are not asked for any more, and why."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_view import CrawlView, View
from crawlerproject.operator_command import OperatorCommand, option
from crawlerproject.rules.printable import counted
from crawlerproject.rules.traps.budgets import DomainHosts, ExternalBudgets, NamedHosts, RequisiteBudgets
from crawlerproject.rules.traps.template_yield import HostYields
from crawlerproject.rules.url.urls import host_name
from crawlerproject.stores.protocols import HostFact
from crawlerproject.terminal import say, say_json


class Command(OperatorCommand):
    """Looks at the frontier as of its last commit; changes nothing, also beside a running crawl."""

    arguments = "[options] [HOST...]"
    summary = "List the traps that the crawl has found, with the reason"
    details = (
        "List, host by host: templates of URLs whose budget is spent, links refused for their shape, sitemaps that "
        "name nothing new, domains that name URLs of others' hosts (@DOMAIN), that have too many hosts (*.DOMAIN) or "
        "name too many that do not exist. A line's host and template in TRAP_ALLOW_FILE say that this is no trap. "
        "Example: scrapy traps -s CRAWL_DIR=crawls/web example.org"
    )

    options = (option("--json", action="store_true", help="print one JSON object a line"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print what there is."""
        with CrawlView(self.settings).store() as view:
            rows = trap_rows(view)
        names = {*args, *map(host_name, args)}
        rows = [row for row in rows if not args or row["host"].removeprefix("*.") in names or row["host"] in names]
        if opts.json:
            say_json(rows, lines=True)
            return
        for row in sorted(rows, key=lambda row: row["host"]):
            say(f"{row['host']} {row['template']}  {row['why']}; {counted(row['refused'], 'URL')} refused")
        if not rows:
            say("No traps so far.")


def trap_rows(view: View) -> list[dict[str, Any]]:
    """Each trap that the crawl has found, hosts before domains. Raises OperatorError."""
    try:
        facts = ((kind, fact) for kind in _ROWS for fact in view.facts(kind))
        rows = [row for kind, (key, packed) in facts for row in _ROWS[kind](key.removeprefix(kind), packed)]
    except ValueError as error:
        raise OperatorError(f"What the frontier keeps of traps cannot be read: {error}.") from None
    return sorted(rows, key=lambda row: (row["host"].startswith("*."), row["host"]))


def _row(host: str, template: str, refused: int, why: str, new: int = 0) -> dict[str, Any]:
    return {"host": host, "template": template, "fetched": 0, "new": new, "refused": refused, "why": why}


def _of_domain(domain: str, packed: bytes) -> Iterator[dict[str, Any]]:
    known = DomainHosts.unpack(packed)
    if known.refused:
        why = f"{counted(known.hosts, 'host')} with {counted(known.pages, 'new text')}"
        yield _row(f"*.{domain}", "-", known.refused, why, known.pages)


def _of_named(domain: str, packed: bytes) -> Iterator[dict[str, Any]]:
    named = NamedHosts.unpack(packed)
    if named.refused:
        why = f"named {counted(named.unresolved, 'host')} without an address, and {named.resolved:,} with one"
        yield _row(domain, "names", named.refused, why)


def _of_templates(key: str, packed: bytes) -> Iterator[dict[str, Any]]:
    host, yields = host_name(key), HostYields.unpack(packed)  # an earlier version had one for each port
    yield from ({"host": host, **found._asdict()} for found in yields.trapped())
    if yields.shapes:
        yield _row(host, "-", yields.shapes, f"links with an endless path, the last of them {yields.example}")


def _of_budgets(kind: type[ExternalBudgets | RequisiteBudgets], host: str, packed: bytes) -> Iterator[dict[str, Any]]:
    yield from ({"host": host, **found._asdict()} for found in kind.unpack(packed).trapped())


_ROWS: dict[HostFact, Callable[[str, bytes], Iterator[dict[str, Any]]]] = {
    HostFact.TRAPS: _of_templates,
    HostFact.EXTERNAL: partial(_of_budgets, ExternalBudgets),
    HostFact.REQUISITES: partial(_of_budgets, RequisiteBudgets),
    HostFact.DOMAIN: _of_domain,
    HostFact.NAMED: _of_named,
}
"""What of each kind of fact is a trap: of the fact's name behind its kind, and its value."""
