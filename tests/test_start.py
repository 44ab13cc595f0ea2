"""What a crawl imports before its first request: every command, since Scrapy does, and nothing that it may not need."""

from __future__ import annotations

import json
import subprocess
import sys

# Each takes from a fiftieth to a fifth of a second of every start, of every command.
HEAVY = [
    "aiodns",
    "aiohttp",
    "duckdb",
    "playwright",
    "prometheus_client",
    "pyarrow",
    "redis",
    "requests",
    "rich",
    "scipy",
    "surt",
    "tantivy",
    "tldextract",
    "twisted.web.server",
]
START = """
import json, sys
from scrapy.utils.misc import load_object, walk_modules
from scrapy.crawler import Crawler
from scrapy.utils.project import get_project_settings

settings = get_project_settings()
for name in [settings["COMMANDS_MODULE"], *settings.getlist("SPIDER_MODULES")]:
    walk_modules(name)
crawler = Crawler(load_object("crawlerproject.spiders.web.WebSpider"), settings)
crawler.addons.load_settings(crawler.settings)
settings = crawler.settings
load_object(settings["SCHEDULER"])
for name in ("EXTENSIONS", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES"):
    for component in settings.get_component_priority_dict_with_base(name):
        load_object(component)
for handler in settings.getwithbase("DOWNLOAD_HANDLERS").values():
    if handler and "crawlerproject" in handler:
        load_object(handler)
print(json.dumps(sorted(sys.modules)))
"""


def test_a_start_imports_nothing_heavy() -> None:
    """Arrow, Redis, a browser and others wait until they are asked for."""
    ended = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    loaded = set(json.loads(ended.stdout.splitlines()[-1]))

    assert {"crawlerproject.crawl.crawl", "crawlerproject.spiders.web", "crawlerproject.commands.rank"} <= loaded
    assert loaded.isdisjoint(HEAVY), loaded.intersection(HEAVY)
