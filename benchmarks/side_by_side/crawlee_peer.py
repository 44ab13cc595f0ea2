"""Crawlee's ParselCrawler over a site; runs in the environment of the peers: ``crawlee_peer.py FOLDER DEPTH``."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.http_clients import HttpxHttpClient

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.real_pages.hosts_file import use_hosts  # the project is not installed there


async def crawl(folder: Path, depth: int) -> None:
    """Follow every link within the site's domain."""
    use_hosts(folder / "hosts")
    Configuration.get_global_configuration().storage_dir = str(folder / "crawlee")
    crawler = ParselCrawler(
        http_client=HttpxHttpClient(verify=False),
        concurrency_settings=ConcurrencySettings(desired_concurrency=16, max_concurrency=16),
        max_crawl_depth=depth or None,
        configure_logging=False,
    )
    logging.basicConfig(level=logging.WARNING)

    @crawler.router.default_handler
    async def page(context: ParselCrawlingContext) -> None:
        await context.push_data({"url": context.request.url, "title": context.selector.css("title::text").get()})
        await context.enqueue_links(strategy="same-domain")

    await crawler.run((folder / "seeds.txt").read_text().split())


if __name__ == "__main__":
    asyncio.run(crawl(Path(sys.argv[1]), int(sys.argv[2])))
