"""Every setting with its default: ours (``config/settings_table.py``), and Scrapy's as this crawler needs them.

docs/settings.md explains each of ours to the operator.
"""

import os as _os
import sys as _sys
from importlib.machinery import PathFinder as _PathFinder
from importlib.util import find_spec as _find_spec
from typing import Any as _Any

from crawlerproject.config import settings_table as _table
from crawlerproject.stores.operator_files.user_settings import UserSettings as _UserSettings
from crawlerproject.stores.operator_files.user_settings import read_user_settings as _read_user_settings

OURS = {name: setting.default for name, setting in _table.SETTINGS.items()}
globals().update(OURS)

# --- Scrapy's, as this crawler needs them -------------------------------------------------------

BOT_NAME = "polite-crawler"
SPIDER_MODULES = ["crawlerproject.spiders"]
NEWSPIDER_MODULE = "crawlerproject.spiders"


def commands_module(arguments: list[str]) -> str:
    """Where Scrapy finds the command that its arguments name: it imports all of a package's to find one (0.1 s)."""
    name = next((argument for argument in arguments[1:] if not argument.startswith("-")), "")
    package = "crawlerproject.commands"
    found = _find_spec(package)  # the package itself is not imported for it
    alone = f"{package}.{name}"
    a_word = name.replace("-", "_").isidentifier()
    known = a_word and found and _PathFinder.find_spec(alone, found.submodule_search_locations)
    return alone if known else package


COMMANDS_MODULE = commands_module(_sys.argv)

ADDONS = {"crawlerproject.addon.Guarded": 1000}  # last, so that it sees what the others set

SCHEDULER = "crawlerproject.crawl.scheduler.FrontierScheduler"
DOWNLOAD_HANDLERS = {
    "http": "crawlerproject.render.handler.RenderingDownloadHandler",
    "https": "crawlerproject.render.handler.RenderingDownloadHandler",
    "ftp": None,
    "s3": None,
}

# The chain, in the order in which a request passes it. Scrapy's redirects and retries would ask a host again at once,
# past the workbench.
DOWNLOADER_MIDDLEWARES = {
    "crawlerproject.middlewares.nevercrawl.NeverCrawlMiddleware": 20,
    "crawlerproject.middlewares.filetypes.FileTypesMiddleware": 30,
    "crawlerproject.middlewares.triage.TriageMiddleware": 50,
    "crawlerproject.middlewares.pace.PaceMiddleware": 900,
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
    "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware": None,
    "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,
    "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
    "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None,
    "scrapy.downloadermiddlewares.stats.DownloaderStats": None,
    "scrapy.downloadermiddlewares.httpcache.HttpCacheMiddleware": None,
}
SPIDER_MIDDLEWARES = {
    "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,
    "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,
    "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
}
# Pages pass all three, items the project's own pipelines (pipelines/warc.py).
ITEM_PROCESSOR = "crawlerproject.pipelines.warc.PageProcessor"
ITEM_PIPELINES = {
    "crawlerproject.pipelines.dedup.DedupPipeline": 100,
    "crawlerproject.pipelines.warc.WarcPipeline": 900,
}
# Scrapy's other extensions report less than the progress line does, are replaced below, or are off; and Scrapy imports
# every entry of this list, switched off or not (remote control brings aiohttp, 0.1 s of each start).
EXTENSIONS_BASE = {
    "scrapy.extensions.corestats.CoreStats": 0,
    "scrapy.extensions.logcount.LogCount": 0,
    "scrapy.extensions.closespider.CloseSpider": 0,
}
EXTENSIONS = {
    "crawlerproject.extensions.process_tuning.GarbageCollectorTuning": 10,
    "crawlerproject.extensions.process_tuning.LoopLatency": 20,
    "crawlerproject.extensions.process_tuning.ServiceWatchdog": 25,
    "crawlerproject.extensions.process_tuning.LargePages": 28,
    "crawlerproject.extensions.process_tuning.EagerTasks": 30,
    "crawlerproject.extensions.error_log.ErrorLog": 90,
    "crawlerproject.extensions.commit_loop.CommitLoop": 100,
    "crawlerproject.extensions.orders.Orders": 110,
    "crawlerproject.extensions.progress.ProgressExtension": 500,
    "crawlerproject.extensions.status_file.StatusFile": 510,
    "crawlerproject.extensions.status_server.StatusServer": 520,
    "crawlerproject.extensions.websub_listener.WebSubListener": 530,
    "crawlerproject.extensions.scrapy_parts.CrawlFeeds": 540,
    "scrapy.extensions.feedexport.FeedExporter": None,  # CrawlFeeds replaces it
    "crawlerproject.extensions.hooks.Hooks": 550,
}

# One download slot for everything: the workbench paces hosts, and a slot a host costs 1.4 KB. Other values of
# FRONTIER_MAX_IN_FLIGHT are copied to both when a crawl begins (config/values.py).
CONCURRENT_REQUESTS = OURS["FRONTIER_MAX_IN_FLIGHT"]
CONCURRENT_REQUESTS_PER_DOMAIN = OURS["FRONTIER_MAX_IN_FLIGHT"]
DOWNLOAD_DELAY = 0
DOWNLOAD_DELAY_JITTER = 0
# The default of 100 makes a hundred asyncio tasks for every response (scrapy issue 5182).
CONCURRENT_ITEMS = 1
# Counts bodies until the pipelines are done; the default of 5 MB throttles 160 pages in flight.
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 64_000_000

TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
ASYNCIO_EVENT_LOOP = "uvloop.Loop"

COOKIES_ENABLED = False
REDIRECT_ENABLED = False
RETRY_ENABLED = False
METAREFRESH_ENABLED = False
REFERER_ENABLED = False
HTTPERROR_ALLOW_ALL = True
# Both execute any Python that is sent to their port.
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
DOWNLOADER_STATS = False
STATS_CLASS = "crawlerproject.extensions.scrapy_parts.PlainStats"

LOG_LEVEL = "INFO"
LOG_FORMATTER = "crawlerproject.extensions.scrapy_parts.QuietLogFormatter"
WARN_ON_GENERATOR_RETURN_VALUE = False
LOG_VERSIONS: list[str] = []  # `scrapy version -v` says them; to ask at each start takes a process (uname)

# --- The operator's own, which override all of these (stores/operator_files/user_settings.py) ----

_USER = _read_user_settings(_os.environ)
globals().update({_table.RENAMED.get(name, name): value for name, value in _USER.items()} | dict(_USER.items()))


def user() -> _UserSettings:
    """The settings in the operator's own file and environment."""
    return _USER


def given() -> dict[str, _Any]:
    """Our settings as the operator has set them for all crawls: the defaults in another project."""
    return {name: globals()[name] for name in _table.ALL if name in globals()}
