"""A script that runs spiders of a project in one process, and leaves their statistics in ``stats.json``."""

SCRIPT = """
import json, sys
from tldextract import TLDExtract
from scrapy.downloadermiddlewares import cookies
from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

# The first cookie of a machine downloads the newest public suffixes, and logs a traceback where it cannot.
cookies._split_domain = TLDExtract(suffix_list_urls=(), include_psl_private_domains=True)
process = CrawlerProcess(get_project_settings())
crawlers = {name: process.create_crawler(name) for name in sys.argv[1:]}
for crawler in crawlers.values():
    process.crawl(crawler)
process.start()
stats = {name: crawler.stats.get_stats() for name, crawler in crawlers.items()}
open("stats.json", "w").write(json.dumps(stats, default=str))
sys.exit(process.bootstrap_failed)
"""
