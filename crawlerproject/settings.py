"""Every setting with its default. docs/settings.md explains each to the operator."""

import os as _os
import sys as _sys
from importlib.machinery import PathFinder as _PathFinder
from importlib.util import find_spec as _find_spec
from typing import Any as _Any

from crawlerproject.rules.url.refused_urls import SKIP_EXTENSIONS as _SKIP_EXTENSIONS
from crawlerproject.stores.operator_files.user_settings import UserSettings as _UserSettings
from crawlerproject.stores.operator_files.user_settings import read_user_settings as _read_user_settings

# --- Ours: one default, one unit each -----------------------------------------------------------

OURS = {
    # Identity. A crawl of public addresses does not start without a way to reach the operator.
    "CRAWLER_NAME": "PoliteCrawler",
    "CRAWLER_INFO_URL": "",
    "CRAWLER_CONTACT": "",
    # Empty: crawls/<spider name>.
    "CRAWL_DIR": "",
    # Pace.
    "PACE_PRESET": "default",
    "PACE_MULTIPLIER": None,
    "PACE_WINDOW": None,
    "PACE_MIN_SECONDS": None,
    "PACE_MAX_SECONDS": None,
    "PACE_START_SECONDS": None,
    "HOST_PACE_FILE": "",
    "PACE_PER_IP": True,
    "PACE_IP_SECONDS": 0.5,
    "RETRY_AFTER_MAX_SECONDS": 86400,
    "BACKOFF_START_SECONDS": 60,
    "BACKOFF_MAX_SECONDS": 86400,
    "HOST_MAX_FAILURES": 5,
    # Exclusions and bounds.
    "NEVERCRAWL_FILE": "NeverCrawl.txt",
    "NEVERCRAWL_USER_FILE": "~/.config/polite-crawler/NeverCrawl.txt",
    "NEVERCRAWL_RELOAD_SECONDS": 1,
    "TRAP_ALLOW_FILE": "",
    "SKIP_EXTENSIONS": sorted(_SKIP_EXTENSIONS),
    "ROBOTS_TTL_SECONDS": 86400,
    "SCOPE_MAX_DEPTH": 20,
    "SCOPE_MAX_URLS_PER_HOST": 100_000,
    "SCOPE_MAX_URL_LENGTH": 2000,
    "SCOPE_MAX_PORTS_PER_HOST": 8,
    "SCOPE_MAX_HOSTS_PER_DOMAIN": 1000,
    # What pages need to be seen: style sheets, images, fonts, scripts.
    "REQUISITES": "none",
    "REQUISITES_PRIORITY": "among",
    "REQUISITES_MAX_PER_PAGE": 500,
    "REQUISITES_MAX_PER_HOST": 20_000,
    # Links within PDFs and the like.
    "DOCUMENT_LINKS": False,
    # Fetching.
    "FETCH_MAX_BYTES": 5 * 1024 * 1024,
    "FETCH_TIMEOUT_SECONDS": 30,
    "FETCH_ALLOW_NETWORKS": [],
    "FETCH_CONNECT_TIMEOUT_SECONDS": 10,
    "FETCH_FIRST_BYTE_TIMEOUT_SECONDS": 20,
    "FETCH_MIN_BYTES_PER_SECOND": 100,
    "FETCH_SLOW_GRACE_SECONDS": 10,
    "FETCH_HOSTS_FILE": "/etc/hosts",
    "FETCH_DNS_SERVERS": [],
    "FETCH_DNS_TIMEOUT_SECONDS": 10,
    "FETCH_DNS_MAX_PER_SECOND": 500,
    "FETCH_CA_FILE": "",
    "TLS_ALLOW_HOSTS": [],
    # Reading pages, large ones in processes of their own.
    "NATIVE_READER": "auto",
    "READ_TIMEOUT_SECONDS": 10,
    "READ_MAX_MEMORY_BYTES": 2 * 1024**3,
    # What counts as the same text.
    "NEAR_DUPLICATE_BITS": 6,
    "NEAR_DUPLICATE_MAX_PAGES": 4_000_000,
    # Pages that need a browser.
    "RENDER": "auto",
    "RENDER_BROWSER": "",
    "RENDER_SANDBOX": "auto",
    "RENDER_MAX_IN_FLIGHT": 2,
    "RENDER_MAX_PER_HOST": 1000,
    "RENDER_MAX_SUBREQUESTS": 40,
    "RENDER_NAVIGATION_SECONDS": 15,
    "RENDER_TIMEOUT_SECONDS": 30,
    "RENDER_WAIT_SECONDS": 60,
    "RENDER_MAX_MEMORY_BYTES": 2 * 1024**3,
    "RENDER_PAGE_MEMORY_BYTES": 512 * 1024**2,
    "RENDER_SCREENSHOT": False,
    "RENDER_PROXIES": [],
    # Coming back.
    "RECRAWL_RECENT_DAYS": 2,
    "RECRAWL_FULL_FETCH_SHARE": 0.02,
    "SITEMAPS": True,
    # Where WebSub hubs push to; 0: no subscriptions.
    "WEBSUB_PORT": 0,
    "WEBSUB_ADDRESS": "127.0.0.1",
    "WEBSUB_PUBLIC_URL": "",
    # Archive and frontier.
    "WARC_MAX_BYTES": 1_000_000_000,
    "WARC_PREFIX": "crawl",
    "WARC_OPERATOR": "",
    "COMMIT_SECONDS": 1.0,
    "STATE_URL": "rocksdb:",
    # Several workers on one crawl: STATE_URL is redis://…
    "FLEET_CRAWL": "web",
    "FLEET_WORKER": "",
    "FLEET_RUN": "",
    "FLEET_PARTITIONS": 256,
    "FLEET_LEASE_SECONDS": 60,
    "FLEET_MAX_DRIFT_SECONDS": 0.5,
    "FRONTIER_MAX_IN_FLIGHT": 1000,
    "FRONTIER_MAX_HOSTS_IN_MEMORY": 100_000,
    "FRONTIER_MAX_REST_SECONDS": 3600,
    "NETWORK_MAX_WAIT_SECONDS": 604_800,
    "DISK_MIN_FREE_BYTES": 200_000_000,
    "LOG_KEEP_DAYS": 31,
    "LOG_LINES": "text",
    "PROGRESS_LOG_SECONDS": 30,
    "OWN_ERRORS_MAX_IN_A_ROW": 20,
    # The live page; 0: none.
    "WATCH_PORT": 0,
    "WATCH_ADDRESS": "127.0.0.1",
    # Where the archive goes; empty: it stays in the crawl's folder.
    "ARCHIVE_URL": "",
    "ARCHIVE_KEEP_LOCAL": True,
    "ARCHIVE_READ_BACK": False,
    "ARCHIVE_MAX_BYTES_PER_SECOND": 0,
    "ARCHIVE_END_WAIT_SECONDS": 600,
    # pywb's program for `scrapy replay`; empty: it is looked for.
    "REPLAY_COMMAND": "",
    # What is called when the crawl pauses, errs, falls silent or ends; empty: nothing.
    "HOOK_COMMAND": "",
    "HOOK_URL": "",
    "HOOK_TIMEOUT_SECONDS": 10,
    "HOOK_SILENT_SECONDS": 900,
}
globals().update(OURS)

# Lower case: none of Scrapy's. Names of earlier versions, which go on working (config/old_settings.py).
renamed = {
    "ERRORS_IN_A_ROW": "OWN_ERRORS_MAX_IN_A_ROW",
    "FRONTIER_PATIENCE_SECONDS": "FRONTIER_MAX_REST_SECONDS",
    "RECRAWL_CHECK_SHARE": "RECRAWL_FULL_FETCH_SHARE",
}
# Settings of earlier versions that are constants now, with their value.
constant = {
    "FETCH_DNS_NEGATIVE_TTL_SECONDS": 60,
    "FETCH_KEEPALIVE_SECONDS": 8,
    "FETCH_MAX_IDLE_CONNECTIONS": 2000,
    "NEAR_DUPLICATE_BITS_ACROSS_HOSTS": 3,
    "RENDER_CACHE_BYTES": 64 * 1024**2,
    "RENDER_MAX_PAGES": 100_000,
    "RENDER_RECYCLE_PAGES": 200,
}

# --- Scrapy's, as this crawler needs them -------------------------------------------------------

BOT_NAME = "crawlerproject"
SPIDER_MODULES = ["crawlerproject.spiders"]
NEWSPIDER_MODULE = "crawlerproject.spiders"


def commands_module(arguments: list[str]) -> str:
    """Where Scrapy finds the command that its arguments name: it imports all of a package's to find one (0.1 s)."""
    name = next((argument for argument in arguments[1:] if not argument.startswith("-")), "")
    package = "crawlerproject.commands"
    found = _find_spec(package)  # the package itself is not imported for it
    alone = f"{package}.{name}"
    known = name.isidentifier() and found and _PathFinder.find_spec(alone, found.submodule_search_locations)
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
# Pages pass all three, items the project's own pipelines (pipelines/processor.py).
ITEM_PROCESSOR = "crawlerproject.pipelines.processor.PageProcessor"
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

ROBOTSTXT_OBEY = False  # ours cannot be switched off; this is Scrapy's own, which allows on error
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

LOG_LEVEL = "INFO"
LOG_FORMATTER = "crawlerproject.extensions.scrapy_parts.QuietLogFormatter"
WARN_ON_GENERATOR_RETURN_VALUE = False
LOG_VERSIONS: list[str] = []  # `scrapy version -v` says them; to ask at each start takes a process (uname)

# --- The operator's own, which override all of these (stores/operator_files/user_settings.py) ----

_USER = _read_user_settings(_os.environ)
globals().update({renamed.get(name, name): value for name, value in _USER.items()} | dict(_USER.items()))


def user() -> _UserSettings:
    """The settings in the operator's own file and environment."""
    return _USER


def given() -> dict[str, _Any]:
    """Our settings as the operator has set them for all crawls: the defaults in another project."""
    return {name: globals()[name] for name in OURS}
