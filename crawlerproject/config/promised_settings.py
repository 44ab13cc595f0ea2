"""What ordinary settings may not take away: the last guard, and what a crawl of ours is whole by.

``custom_settings`` replaces whole dictionaries, where its writer means one line of them. So what is missing is put back
beside what was set, and what stands in the place of ours is put out, with one line of warning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings

from crawlerproject import settings as ours

logger = logging.getLogger(__name__)

_PROJECT = SETTINGS_PRIORITIES["project"]
_ADDONS = ("crawlerproject.addon.PoliteCrawl", "crawlerproject.addon.Guarded")
_SCHEMES = ("http", "https")
_OURS_HANDLER = ours.DOWNLOAD_HANDLERS["http"] or ""
SCRAPY_HANDLER = "crawlerproject.render.handler.ScrapyDownloadHandler"
"""The guarded download handler for spiders that are not ours."""
# Paths of our classes in earlier versions: replaced without a warning.
_FORMER = ("crawlerproject.pipelines.processor.PageProcessor",)
# Put together from Scrapy's and a project's: ours are added where they are missing.
_CHAINS = ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS")
# Extensions that listen, by the setting of their port: 0 is off, and each brings Twisted's web server.
_LISTENING = {
    "crawlerproject.extensions.status_server.StatusServer": "WATCH_PORT",
    "crawlerproject.extensions.websub_listener.WebSubListener": "WEBSUB_PORT",
}
_NO_PORT = (None, 0, "0", "")
# Without these nothing that is fetched would count, so None does not switch them off.
_NEEDED = (
    "crawlerproject.extensions.commit_loop.CommitLoop",
    "crawlerproject.extensions.error_log.ErrorLog",
    *ours.ITEM_PIPELINES,
)


def keep_guard(settings: BaseSettings, handler: str = _OURS_HANDLER) -> None:
    """For every spider: a download handler of ours for http and https, in Scrapy's own downloader.

    ``handler`` is put where none of the guarded ones stands.
    """
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    missing = {scheme: handler for scheme in _SCHEMES if handlers.get(scheme) not in (_OURS_HANDLER, SCRAPY_HANDLER)}
    for scheme in missing:
        if handlers.get(scheme) is not None:
            _warn("DOWNLOAD_HANDLERS", f"{handlers[scheme]} is not used for {scheme}")
    if missing:
        _put(settings, "DOWNLOAD_HANDLERS", dict(handlers) | missing)
    _only(settings, "DOWNLOADER", default_settings.DOWNLOADER)


def keep_addon(settings: BaseSettings, project: Mapping[str, Any]) -> None:
    """Our add-on, which keeps the rest, where ``project`` (its ADDONS) has it and the spider's list does not."""
    given = settings.getdict("ADDONS")
    addons = {path: order for path, order in project.items() if path in _ADDONS and path not in given}
    if addons:
        _put(settings, "ADDONS", given | addons)


def keep_whole(settings: BaseSettings) -> None:
    """For spiders that derive from ``WebSpider``: the frontier, the commits and the chain besides."""
    keep_guard(settings)
    _only(settings, "SCHEDULER", ours.SCHEDULER)
    _only(settings, "ITEM_PROCESSOR", ours.ITEM_PROCESSOR)
    for name in _CHAINS:
        given, wanted = settings.getdict(name), getattr(ours, name)
        whole = wanted | given | {path: wanted[path] for path in _NEEDED if path in wanted and given.get(path) is None}
        if whole != given:
            _put(settings, name, whole)


def leave_out(settings: BaseSettings) -> None:
    """Removes components that are switched off, by None or by their port: Scrapy imports those too, and cookies bring
    requests.
    """
    closed = {path for path, port in _LISTENING.items() if settings.get(port) in _NO_PORT}
    for name in _CHAINS:
        chain, base = settings.getdict(name), settings.getdict(f"{name}_BASE")
        _put(settings, name, {path: order for path, order in chain.items() if order is not None and path not in closed})
        _put(
            settings,
            f"{name}_BASE",
            {path: order for path, order in base.items() if chain.get(path, order) is not None},
        )


def _only(settings: BaseSettings, name: str, wanted: str) -> None:
    """Set the only class that is possible; Scrapy's default, which templates write, is replaced without a warning."""
    given = settings.get(name)
    if given != wanted:
        if given not in (getattr(default_settings, name), *_FORMER):
            _warn(name, f"{given} is not used")
        _put(settings, name, wanted)


def _put(settings: BaseSettings, name: str, value: Any) -> None:
    """Where it was set, and not below: later settings of a higher priority are not ours."""
    settings.set(name, value, max(settings.getpriority(name) or 0, _PROJECT))


def _warn(name: str, what: str) -> None:
    logger.warning("%s: %s; robots.txt, NeverCrawl and the pace are kept in the crawler's own.", name, what)
