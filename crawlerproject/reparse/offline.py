"""Scrapy's settings for a run over an archive, as the last add-on: whatever spider and project say, nothing leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.crawler import Crawler

from crawlerproject.settings import OURS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy import Spider
    from scrapy.settings import BaseSettings, Settings

_LAST = 1_000_000  # behind every add-on
_ABOVE_ALL = 1_000  # Scrapy's command line is 40 (scrapy.settings.SETTINGS_PRIORITIES)
_OURS = "crawlerproject."
_HANDLER = "crawlerproject.reparse.handler.ArchiveHandler"
_FEEDS = "scrapy.extensions.feedexport.FeedExporter"
_SCHEMES = ("http", "https", "ftp", "file", "s3", "data")
# Pages in hand at a time: reading waits for nothing, and each may have some MB.
_AT_ONCE = 4
# A project's own stay in these: what concerns items, and what watches the run.
_KEPT = ("SPIDER_MIDDLEWARES", "EXTENSIONS", "ITEM_PIPELINES")
_SETTINGS: dict[str, Any] = {
    "SCHEDULER": "crawlerproject.reparse.scheduler.ArchiveScheduler",
    "DOWNLOADER": "scrapy.core.downloader.Downloader",
    "DOWNLOAD_HANDLERS": dict.fromkeys(_SCHEMES, _HANDLER),
    "DOWNLOAD_HANDLERS_BASE": {},
    "DOWNLOADER_MIDDLEWARES": {},
    "DOWNLOADER_MIDDLEWARES_BASE": {},
    "SPIDER_MIDDLEWARES_BASE": {},
    "EXTENSIONS_BASE": {"scrapy.extensions.corestats.CoreStats": 0, _FEEDS: 0},
    "CONCURRENT_REQUESTS": _AT_ONCE,
    "CONCURRENT_REQUESTS_PER_DOMAIN": _AT_ONCE,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_MAXSIZE": 0,
    "DOWNLOAD_WARNSIZE": 0,
    "TELNETCONSOLE_ENABLED": False,
    "JOBDIR": "",
}


class Offline:
    """The add-on."""

    def update_settings(self, settings: BaseSettings) -> None:
        """After those of the project."""
        for name, value in _SETTINGS.items():
            settings.set(name, value, _ABOVE_ALL)
        for name in _KEPT:
            own = {path: order for path, order in settings.getdict(name).items() if not _is_ours(path)}
            own.pop(_FEEDS, None)
            settings.set(name, own, _ABOVE_ALL)
        for name, value in OURS.items():  # what listens or calls the operator's programs is for crawls
            if name.endswith("_PORT") or name.startswith("HOOK_"):
                settings.set(name, value, _ABOVE_ALL)


class OfflineCrawler(Crawler):
    """A crawler of which nothing is started but the reading of the archive."""

    def __init__(self, spidercls: type[Spider], settings: Settings) -> None:
        super().__init__(spidercls, settings)
        path = f"{Offline.__module__}.{Offline.__qualname__}"
        self.settings.set("ADDONS", self.settings.getdict("ADDONS") | {path: _LAST}, _ABOVE_ALL)

    def _create_spider(self, *args: Any, **kwargs: Any) -> Spider:
        spider = super()._create_spider(*args, **kwargs)
        spider.start = _nothing  # type: ignore[method-assign]  # its seeds are requests
        return spider


def _is_ours(component: Any) -> bool:
    path = component if isinstance(component, str) else f"{component.__module__}."
    return path.startswith(_OURS)


async def _nothing() -> AsyncIterator[Any]:
    nothing: tuple[Any, ...] = ()
    for request in nothing:
        yield request
