"""``scrapy plan``: a list of pages to crawl, by domain, in an order that spreads the hosts of one server."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

from crawlerproject.batch.plans import urls_of_index, urls_of_sitemap, write_plan
from crawlerproject.crawl.start.preflight import seeds_with_options
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_view import frontier_in
from crawlerproject.operator_command import OperatorCommand, option
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.urls import Address, UrlRefused, parse
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Makes what ``scrapy crawl plan`` crawls."""

    arguments = "OUT.jsonl.gz [--seeds FILE] [--known FOLDER] [--sitemap FILE] [--index FILE]"
    summary = "Make a plan: the pages that a batch crawl visits"
    details = (
        "Write a plan from seeds, from the pages that a crawl knows, from sitemaps and from index files (CDXJ or "
        "Parquet); each may be given several times. Ids are random (--random N draws the same again) and give the "
        "order. Example: scrapy plan plan.jsonl.gz --seeds seeds.txt --known crawls/web; scrapy crawl plan -a "
        "plan=plan.jsonl.gz"
    )

    options = (
        option("--seeds", action="append", default=[], help="a file of URLs, or URLs"),
        option("--known", action="append", default=[], type=CrawlDir, help="a crawl's folder"),
        option("--sitemap", action="append", default=[], type=Path, help="a sitemap file, as fetched"),
        option("--index", action="append", default=[], type=Path, help="a CDXJ or Parquet index file"),
        option("--random", type=int, default=None, help="draw the ids by this number"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Gather, write, say how much."""
        if len(args) != 1:
            raise OperatorError("Give the plan's file, for example: scrapy plan plan.jsonl.gz --seeds seeds.txt")
        if not (opts.seeds or opts.known or opts.sitemap or opts.index):
            raise OperatorError("There is nothing to plan; give --seeds, --known, --sitemap or --index.")
        domains, pages = write_plan(_addresses(opts), Path(args[0]), random.Random(opts.random))
        say(f"{args[0]}: {counted(pages, 'page')} of {counted(domains, 'domain')}")


def _addresses(opts: argparse.Namespace) -> Iterator[Address]:
    for seeds in opts.seeds:
        yield from seeds_with_options(seeds, "any").addresses
    for folder in opts.known:
        with frontier_in(folder) as view:
            for _, record in view.pages():
                if record.status == 200:
                    yield from _parsed(record.url)
    for file in opts.sitemap:
        for url in urls_of_sitemap(file):
            yield from _parsed(url)
    for file in opts.index:
        for url in urls_of_index(file):
            yield from _parsed(url)


def _parsed(url: str) -> Iterator[Address]:
    try:
        yield parse(url)
    except UrlRefused:
        return
