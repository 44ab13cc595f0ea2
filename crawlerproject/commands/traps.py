"""``scrapy traps``: which hosts and templates of URLs are not asked for any more, and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.rules.printable import printable_line
from crawlerproject.rules.traps.domain_hosts import DomainHosts
from crawlerproject.rules.traps.strangers import Strangers
from crawlerproject.rules.traps.template_yield import HostYields
from crawlerproject.rules.url.hosts import host_name
from crawlerproject.stores.host_facts import HostFact
from crawlerproject.terminal import say, say_json


class Command(ScrapyCommand):
    """Looks at the frontier as of its last commit; changes nothing, also beside a running crawl."""

    requires_project = True
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        """The arguments."""
        return "[options] [HOST...]"

    def short_desc(self) -> str:
        """For the list of commands."""
        return "List the traps that the crawl has found, with the reason"

    def long_desc(self) -> str:
        """For the help."""
        return (
            "Lists, host by host, the templates of URLs whose budget is spent, the links that were refused for "
            "their shape, sitemaps that name nothing new, and domains that name URLs of others' hosts (@DOMAIN); then "
            "the domains (*.DOMAIN) that have more hosts than are taken up. HOST is a host key as "
            "the request log has it, or a domain; none lists all. A line's host and template, put into "
            "TRAP_ALLOW_FILE, say that this is no trap. "
            "Example: scrapy traps -s CRAWL_DIR=crawls/web example.org"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Ours, after Scrapy's."""
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print what there is."""
        assert self.settings is not None
        try:
            with CrawlView(self.settings).store() as view:
                rows = [row for name, packed in view.facts(HostFact.TRAPS) for row in _rows(name, packed, args)]
                strangers = view.facts(HostFact.STRANGERS)
                rows += [row for name, packed in strangers for row in _rows_of_strangers(name, packed, args)]
                rows.sort(key=lambda row: str(row["host"]))
                rows += [
                    row for name, packed in view.facts(HostFact.DOMAIN) for row in _domain_rows(name, packed, args)
                ]
        except (OperatorError, StorageError) as error:
            raise UsageError(printable_line(str(error)), print_help=False) from None
        except ValueError as error:
            raise UsageError(f"What the frontier keeps of traps cannot be read: {error}.", print_help=False) from None
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


def _rows(name: str, packed: bytes, hosts: list[str]) -> Iterator[dict[str, object]]:
    host = host_name(name.removeprefix(HostFact.TRAPS))  # a version before this one told ports apart
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
        yield from ({"host": host, **found._asdict()} for found in Strangers.unpack(packed).trapped())
