"""A script that runs spiders of a project in one process, and leaves their statistics in ``stats.json``."""

SCRIPT = """
import json, sys
from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

process = CrawlerProcess(get_project_settings())
crawlers = {name: process.create_crawler(name) for name in sys.argv[1:]}
for crawler in crawlers.values():
    process.crawl(crawler)
process.start()
stats = {name: crawler.stats.get_stats() for name, crawler in crawlers.items()}
open("stats.json", "w").write(json.dumps(stats, default=str))
sys.exit(process.bootstrap_failed)
"""
