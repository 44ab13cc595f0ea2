"""The crawler for another Scrapy project, by one line: ``ADDONS = {"crawlerproject.addon.PoliteCrawl": 100}``.

A spider that derives from ``WebSpider`` gets the frontier, with every setting that it needs. Any other spider keeps
Scrapy as documented, above a download handler that enforces robots.txt, NeverCrawl, address rules and pace. What is not
a promise is set at add-on priority, so that the project's own settings win.
"""

from __future__ import annotations

import logging
import re
from typing import Any, Self

import scrapy
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings
from scrapy.utils.reactor import is_reactor_installed
from scrapy.utils.spider import DefaultSpider

from crawlerproject import settings as ours
from crawlerproject.config.old_settings import warn_nowhere, warn_old_names
from crawlerproject.config.promised_settings import SCRAPY_HANDLER, keep_guard, leave_out
from crawlerproject.config.values import NO_BOUND_BYTES, check_local_address, identity, let_in_flight
from crawlerproject.crawl.start.setting_limits import check_directory, check_signing
from crawlerproject.json_log import take_log

logger = logging.getLogger(__name__)

_ADDON = SETTINGS_PRIORITIES["addon"]
_PROJECT = SETTINGS_PRIORITIES["project"]
# Settings that identify the project, and those that must be known before there is a crawler.
_THEIRS = frozenset({"BOT_NAME", "SPIDER_MODULES", "NEWSPIDER_MODULE", "COMMANDS_MODULE", "LOG_LEVEL", "ADDONS"})
_EARLY = ("TWISTED_REACTOR", "ASYNCIO_EVENT_LOOP")
# Scrapy's own extensions stay, except for those that conflict with ours (``_OFF``).
_KEPT = frozenset({"EXTENSIONS_BASE"})
_OF_FRONTIER = tuple(
    name
    for name in dir(ours)
    if name.isupper() and name[0] != "_" and name not in _THEIRS | _KEPT | {*_EARLY, "OURS", *ours.OURS}
)
_OFF = ("throttle.AutoThrottle", "spiderstate.SpiderState", "logstats.LogStats")
_EXTENSIONS: dict[str, int | None] = {f"scrapy.extensions.{name}": None for name in _OFF}

# The guard obeys robots.txt below every middleware; Scrapy's own would only fetch it once more.
_SCRAPYS_LOG_STATS = "scrapy.extensions.logstats.LogStats"
_LOG_STATS = "crawlerproject.extensions.scrapy_parts.RestingLogStats"
_SCRAPYS_ROBOTS = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
_HOST_QUEUE = "crawlerproject.crawl.host_queue.HostPriorityQueue"
_STOP = "crawlerproject.crawl.host_queue.StopMiddleware"
# Nearer to the downloader than any retry middleware, which would otherwise see the exception first.
_NEAREST = 10_000
# That queue gives each place to another host, and a place mostly waits for its pause: 20 requests a second at 5 s. An
# interrupted crawl waits for all of them, which takes no longer than one pause.
_CONCURRENT_REQUESTS = 100
# The bot's name in a User-Agent: as in "Mozilla/5.0 (compatible; foobot/2.1; +https://…)", or the first product.
_COMPATIBLE = re.compile(r"compatible;\s*([A-Za-z_-][A-Za-z0-9_-]*)")
_PRODUCT = re.compile(r"\s*([A-Za-z_-][A-Za-z0-9_-]*)")


class Guarded:
    """Our own project's add-on: keeps the guard in place, whatever a spider's ``custom_settings`` say.

    The project's settings are for crawls by the frontier; a warning names what other spiders lose by them.
    """

    def __init__(self, *, frontier: bool) -> None:
        self._frontier = frontier

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Warns of a spider that is neither a ``WebSpider`` nor the shell's."""
        if not (_of_frontier(crawler) or issubclass(crawler.spidercls, DefaultSpider)):
            logger.warning(
                "%s does not derive from WebSpider: in this project Scrapy's cookies, redirects, retries, "
                "allowed_domains and DEPTH_LIMIT are off; the add-on leaves them to it in a project of its own.",
                crawler.spidercls.__name__,
            )
        _warn_of_start(crawler.spidercls)
        return cls(frontier=_of_frontier(crawler))

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Runs before Scrapy opens its log."""
        take_log(settings)

    def update_settings(self, settings: BaseSettings) -> None:
        """Runs after the spider's ``custom_settings`` are applied."""
        take_log(settings)
        warn_old_names(settings)
        warn_nowhere(settings)
        if not self._frontier:
            _give_back(settings)
        keep_guard(settings)
        _let_upload(settings)
        leave_out(settings)


class PoliteCrawl(Guarded):
    """Frontier, politeness and WARC output for spiders that derive from ``crawlerproject.spiders.web.WebSpider``.

    Other spiders run as in Scrapy; robots.txt, NeverCrawl, the address rules and the pace hold for them too.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Whether the crawler's spider is a ``WebSpider``."""
        _warn_of_start(crawler.spidercls)
        return cls(frontier=_of_frontier(crawler))

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Adds our spider and event loop, and the guard for spiders that replace ``ADDONS``."""
        modules = [*settings.getlist("SPIDER_MODULES"), *ours.SPIDER_MODULES]
        settings.set("SPIDER_MODULES", list(dict.fromkeys(modules)), _PROJECT)
        if not is_reactor_installed():  # a script that has installed one has chosen its loop
            for name in _EARLY:
                settings.set(name, getattr(ours, name), _ADDON)
        _defaults(settings)
        take_log(settings)
        # Nothing would enforce robots.txt, NeverCrawl and pace for ftp; a project may name a handler.
        handlers = {"http": SCRAPY_HANDLER, "https": SCRAPY_HANDLER, "ftp": None}
        settings.set("DOWNLOAD_HANDLERS_BASE", settings.getdict("DOWNLOAD_HANDLERS_BASE") | handlers, _ADDON)

    def update_settings(self, settings: BaseSettings) -> None:
        """Set our defaults, and what the kind of spider needs."""
        _defaults(settings)
        take_log(settings)
        warn_old_names(settings)
        warn_nowhere(settings)
        if self._frontier:
            set_for_frontier(settings)
            keep_guard(settings)
            _let_upload(settings)
        else:
            _set_for_scrapy(settings)
            keep_guard(settings, SCRAPY_HANDLER)
        leave_out(settings)


def _let_upload(settings: BaseSettings) -> None:
    """Add what uploads the archive, where it goes anywhere: no other crawl imports it."""
    if settings["ARCHIVE_URL"]:
        wanted = settings.getdict("EXTENSIONS") | {"crawlerproject.extensions.uploads.Uploads": 560}
        settings.set("EXTENSIONS", wanted, settings.getpriority("EXTENSIONS") or _ADDON)


def _of_frontier(crawler: Crawler) -> bool:
    from crawlerproject.spiders.web import WebSpider  # late: this module is imported before the event loop is chosen

    return issubclass(crawler.spidercls, WebSpider)


def _warn_of_start(spidercls: type[Spider]) -> None:
    """Such a spider was written for an earlier Scrapy, and would end at once with nothing."""
    found = next((name for base in spidercls.__mro__ for name in ("start", "start_requests") if name in vars(base)), "")
    if found == "start_requests":
        logger.warning(
            "%s has start_requests() and no start(): Scrapy %s does not call it; write async def start(self) instead.",
            *(spidercls.__name__, scrapy.__version__),
        )


def _defaults(settings: BaseSettings) -> None:
    """Our own settings, which the project may change."""
    for name, value in ours.given().items():
        settings.set(name, value, _ADDON)


def set_for_frontier(settings: BaseSettings) -> None:
    """Set what a crawl by the frontier needs of Scrapy's settings, whatever the project says.

    Scrapy's project template, for one, has a download delay, which would hold up all hosts at once.
    """
    for name in _OF_FRONTIER:
        value: Any = getattr(ours, name)
        if isinstance(value, dict):
            more: dict[str, int | None] = dict(_EXTENSIONS) if name == "EXTENSIONS" else {}
            value = settings.getdict(name) | value | more
        settings.set(name, value, _PROJECT)
    let_in_flight(settings)


def _set_for_scrapy(settings: BaseSettings) -> None:
    """What of ours follows Scrapy's settings, for a spider that is not ours."""
    _name_by_user_agent(settings)
    who = identity(settings)
    settings.set("USER_AGENT", who.user_agent, _ADDON)
    if settings["USER_AGENT"] == who.user_agent and not who.reachable:
        logger.warning("No site can reach you: set CRAWLER_INFO_URL or CRAWLER_CONTACT, or a USER_AGENT that says how.")
    check_signing(settings)
    check_directory(settings)
    for name in ("FETCH_TIMEOUT_SECONDS", "FETCH_CONNECT_TIMEOUT_SECONDS", "FETCH_FIRST_BYTE_TIMEOUT_SECONDS"):
        settings.set(name, settings.getfloat("DOWNLOAD_TIMEOUT"), _ADDON)
    settings.set("FETCH_MIN_BYTES_PER_SECOND", 0, _ADDON)
    settings.set("FETCH_MAX_BYTES", settings.getint("DOWNLOAD_MAXSIZE") or NO_BOUND_BYTES, _ADDON)
    check_local_address(settings)
    settings.set("CONCURRENT_REQUESTS", _CONCURRENT_REQUESTS, _ADDON)
    extensions = settings.getdict("EXTENSIONS")
    if extensions.get(_SCRAPYS_LOG_STATS, 0) is not None:
        more = {_SCRAPYS_LOG_STATS: None, _LOG_STATS: 0}
        settings.set("EXTENSIONS", extensions | more, settings.getpriority("EXTENSIONS") or _ADDON)
    settings.set("LOG_FORMATTER", "crawlerproject.extensions.scrapy_parts.GuardedLogFormatter", _ADDON)
    _chain(settings, {_SCRAPYS_ROBOTS: None})
    _give_back(settings)
    if settings.getbool("COOKIES_ENABLED"):
        from scrapy.downloadermiddlewares import cookies  # loaded for such a spider in any case

        # It would download the list of public suffixes: past the guard, and while all else waits.
        cookies._split_domain.suffix_list_urls = ()


def _give_back(settings: BaseSettings) -> None:
    """What waits for its host in vain when the spider is closed goes back to the queue that it came from."""
    settings.set("SCHEDULER_PRIORITY_QUEUE", _HOST_QUEUE, _ADDON)
    _chain(settings, {_STOP: _NEAREST})


def _chain(settings: BaseSettings, more: dict[str, int | None]) -> None:
    chain = settings.getdict("DOWNLOADER_MIDDLEWARES") | more
    settings.set("DOWNLOADER_MIDDLEWARES", chain, settings.getpriority("DOWNLOADER_MIDDLEWARES") or _ADDON)


def _name_by_user_agent(settings: BaseSettings) -> None:
    """A project that sends its own name obeys the rules that robots.txt has for that name.

    ``ROBOTSTXT_USER_AGENT`` wins over ``USER_AGENT``, as in Scrapy; CRAWLER_NAME of the project over both.
    """
    sent = settings.get("ROBOTSTXT_USER_AGENT") or settings["USER_AGENT"]
    if not sent or sent == default_settings.USER_AGENT:
        return
    found = _COMPATIBLE.search(sent) or _PRODUCT.match(sent)
    if found is not None:
        settings.set("CRAWLER_NAME", found[1], _ADDON)
