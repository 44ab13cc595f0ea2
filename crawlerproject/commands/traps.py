"""``scrapy traps``: which hosts and templates of URLs are not asked for any more, and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.operator_command import OperatorCommand
from crawlerproject.rules.traps.external_budgets import ExternalBudgets
from crawlerproject.rules.traps.invented_hosts import DomainHosts, NamedHosts
from crawlerproject.rules.traps.requisite_budgets import RequisiteBudgets
from crawlerproject.rules.traps.template_yield import HostYields
from crawlerproject.rules.url.urls import host_name
from crawlerproject.stores.protocols import HostFact
from crawlerproject.terminal import say, say_json


class Command(OperatorCommand):
    """Looks at the frontier as of its last commit; changes nothing, also beside a running crawl."""

    arguments = "[options] [HOST...]"
    summary = "List the traps that the crawl has found, with the reason"
    details = (
        "Lists, host by host, the templates of URLs whose budget is spent, the links that were refused for "
        "their shape, sitemaps that name nothing new, and domains that name URLs of others' hosts (@DOMAIN); then "
        "the domains (*.DOMAIN) that have more hosts than are taken up, and those that name too many hosts that do not "
        "exist (names). HOST is a host key as "
        "the request log has it, or a domain; none lists all. A line's host and template, put into "
        "TRAP_ALLOW_FILE, say that this is no trap. "
        "Example: scrapy traps -s CRAWL_DIR=crawls/web example.org"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print what there is."""
        kinds = (
            (HostFact.TRAPS, _rows),
            (HostFact.STRANGERS, _rows_of_strangers),
            (HostFact.REQUISITES, _rows_of_requisites),
            (HostFact.DOMAIN, _domain_rows),
            (HostFact.NAMED, _rows_of_names),
        )
        try:
            with CrawlView(self.settings).store() as view:
                rows = [row for kind, of in kinds for fact in view.facts(kind) for row in of(*fact, args)]
        except ValueError as error:
            raise OperatorError(f"What the frontier keeps of traps cannot be read: {error}.") from None
        rows.sort(key=lambda row: (str(row["host"]).startswith("*."), str(row["host"])))
        if opts.json:
            say_json(rows, lines=True)
            return
        for row in sorted(rows, key=lambda row: str(row["host"])):
            say(f"{row['host']} {row['template']}  {row['why']}; {row['refused']:,} URLs refused")
        if not rows:
            say("No traps so far.")


def _domain_rows(name: str, packed: bytes, hosts: list[str]) -> Iterator[dict[str, object]]:
    host = "*." + name.removeprefix(HostFact.DOMAIN)
    domain = DomainHosts.unpack(packed)
    if domain.refused and (not hosts or host in hosts or host[2:] in hosts):
        why = f"{domain.hosts:,} hosts, which have shown {domain.pages:,} new texts"
        counts = {"fetched": 0, "new": domain.pages, "refused": domain.refused}
        yield {"host": host, "template": "-", **counts, "why": why}


def _rows_of_names(name: str, packed: bytes, hosts: list[str]) -> Iterator[dict[str, object]]:
    domain, named = name.removeprefix(HostFact.NAMED), NamedHosts.unpack(packed)
    if named.refused and (not hosts or domain in hosts):
        why = f"named {named.unresolved:,} hosts that have no address, and {named.resolved:,} that have"
        yield {"host": domain, "template": "names", "fetched": 0, "new": 0, "refused": named.refused, "why": why}


def _rows(name: str, packed: bytes, hosts: list[str]) -> Iterator[dict[str, object]]:
    host = host_name(name.removeprefix(HostFact.TRAPS))  # an earlier version had one for each port
    if hosts and host not in map(host_name, hosts):
        return
    yields = HostYields.unpack(packed)
    for found in yields.trapped():
        yield {"host": host, **found._asdict()}
    if yields.shapes:
        why = f"links with an endless path, the last of them {yields.example}"
        yield {"host": host, "template": "-", "fetched": 0, "new": 0, "refused": yields.shapes, "why": why}


def _rows_of_strangers(name: str, packed: bytes, hosts: list[str]) -> Iterator[dict[str, object]]:
    host = name.removeprefix(HostFact.STRANGERS)
    if not hosts or host in map(host_name, hosts):
        yield from ({"host": host, **found._asdict()} for found in ExternalBudgets.unpack(packed).trapped())


def _rows_of_requisites(name: str, packed: bytes, hosts: list[str]) -> Iterator[dict[str, object]]:
    host = name.removeprefix(HostFact.REQUISITES)
    if not hosts or host in map(host_name, hosts):
        yield from ({"host": host, **found._asdict()} for found in RequisiteBudgets.unpack(packed).trapped())
