"""The same pages with other crawlers: a stock Scrapy CrawlSpider and ``wget -r --warc-file``."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.real_pages.site import DOMAIN, RealSite
from tests.web.running import PROJECT, Spent, measured


class Peer(NamedTuple):
    """What another crawler did."""

    name: str
    pages: int  # successful answers in the server's log
    spent: Spent


def stock_scrapy(site: RealSite) -> Spent:
    """A CrawlSpider with default settings but for the delay, which the project template would set to 1 s."""
    command = [sys.executable, "-m", "benchmarks.real_pages.peers", str(site.folder)]
    return measured(command, site.folder / "scrapy.log", PROJECT)


def wget(site: RealSite) -> Spent | None:
    """Recursive wget with a WARC; it knows no hosts file, so nginx plays its proxy (same bytes, same work)."""
    if not shutil.which("wget"):
        return None
    folder = site.folder / "wget"
    folder.mkdir()
    proxy = ["-e", "use_proxy=yes", "-e", f"http_proxy=http://127.0.0.1:{site.port}"]
    seeds = folder / "seeds.txt"  # one of the manual: wget walks anew from each seed and forgets what it has
    manual = [seed for seed in site.seeds if "//pg" in seed]
    seeds.write_text("\n".join([seed for seed in site.seeds if seed not in manual[1:]]))
    options = ["-r", "-l", "inf", "-H", "-D", DOMAIN, "-nv", "-e", "robots=off", "--follow-tags=a,area"]
    command = ["wget", *options, "--delete-after", f"--warc-file={folder}/peer", *proxy, "-i", str(seeds)]
    return measured(command, site.folder / "wget.log", folder)


def _use_hosts(path: Path) -> None:
    """Make this process resolve the names of a hosts(5) file."""
    known = {name: ip for ip, name in (line.split() for line in path.read_text().splitlines())}
    lookup, by_name = socket.getaddrinfo, socket.gethostbyname

    def getaddrinfo(host: Any, *rest: Any, **named: Any) -> Any:
        return lookup(known.get(host, host), *rest, **named)

    def gethostbyname(name: str) -> str:
        return by_name(known.get(name, name))

    socket.getaddrinfo, socket.gethostbyname = getaddrinfo, gethostbyname


def _crawl(folder: Path) -> None:
    from scrapy.crawler import CrawlerProcess
    from scrapy.http import Response
    from scrapy.linkextractors import LinkExtractor
    from scrapy.spiders import CrawlSpider, Rule

    _use_hosts(folder / "hosts")

    class Stock(CrawlSpider):
        name = "stock"
        allowed_domains = [DOMAIN]
        start_urls = (folder / "seeds.txt").read_text().split()
        rules = (Rule(LinkExtractor(), callback="page", follow=True),)

        def page(self, response: Response) -> dict[str, object]:
            return {"url": response.url, "bytes": len(response.body)}

    os.environ.pop("SCRAPY_SETTINGS_MODULE", None)
    settings = {"LOG_LEVEL": "INFO", "DOWNLOAD_DELAY": 0, "ROBOTSTXT_OBEY": True, "TELNETCONSOLE_ENABLED": False}
    process = CrawlerProcess(settings)
    process.crawl(Stock)
    process.start()


if __name__ == "__main__":
    _crawl(Path(sys.argv[1]))
