"""The same pages with other crawlers: a stock Scrapy CrawlSpider and ``wget -r --warc-file``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from benchmarks.real_pages.hosts_file import use_hosts
from benchmarks.real_pages.site import DOMAIN, RealSite
from tests.web.running import PROJECT, Spent, measured


def stock_scrapy(site: RealSite, depth: int = 0) -> Spent:
    """A CrawlSpider with default settings but for the delay, which the project template would set to 1 s.

    ``depth`` is how far from the seeds it follows links, 0 for no bound.
    """
    command = [sys.executable, "-m", "benchmarks.real_pages.peers", str(site.folder), str(depth)]
    return measured(command, site.folder / "scrapy.log", PROJECT)


def wget(site: RealSite, depth: int = 0) -> Spent | None:
    """Recursive wget with a WARC; it knows no hosts file, so nginx plays its proxy (same bytes, same work)."""
    if not shutil.which("wget"):
        return None
    folder = site.folder / "wget"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    proxy = ["-e", "use_proxy=yes", "-e", f"http_proxy=http://127.0.0.1:{site.port}"]
    seeds = folder / "seeds.txt"  # one of the manual: wget walks anew from each seed and forgets what it has
    manual = [seed for seed in site.seeds if "//pg" in seed]
    seeds.write_text("\n".join([seed for seed in site.seeds if seed not in manual[1:]]))
    options = ["-r", "-l", str(depth or "inf"), "-H", "-D", DOMAIN, "-nv", "-e", "robots=off", "--follow-tags=a,area"]
    command = ["wget", *options, "--delete-after", f"--warc-file={folder}/peer", *proxy, "-i", str(seeds)]
    return measured(command, site.folder / "wget.log", folder)


def _crawl(folder: Path, depth: int) -> None:
    from scrapy.crawler import CrawlerProcess
    from scrapy.http import Response
    from scrapy.linkextractors import LinkExtractor
    from scrapy.spiders import CrawlSpider, Rule

    use_hosts(folder / "hosts")

    class Stock(CrawlSpider):
        name = "stock"
        allowed_domains = [DOMAIN]
        start_urls = (folder / "seeds.txt").read_text().split()
        rules = (Rule(LinkExtractor(), callback="page", follow=True),)

        def page(self, response: Response) -> dict[str, object]:
            return {"url": response.url, "bytes": len(response.body)}

    os.environ.pop("SCRAPY_SETTINGS_MODULE", None)
    settings = {"LOG_LEVEL": "INFO", "DOWNLOAD_DELAY": 0, "ROBOTSTXT_OBEY": True, "TELNETCONSOLE_ENABLED": False}
    settings["DEPTH_LIMIT"] = depth
    process = CrawlerProcess(settings)
    process.crawl(Stock)
    process.start()


if __name__ == "__main__":
    _crawl(Path(sys.argv[1]), int(sys.argv[2]))
