"""The crawler for another Scrapy project, by one line: ``ADDONS = {"crawlerproject.addon.PoliteCrawl": 100}``.

What makes the crawl polite and whole is set whatever the project says (Scrapy's template has a download delay that
would hold up all hosts at once); our own settings are defaults that the project may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.settings import SETTINGS_PRIORITIES

from crawlerproject import settings as ours
from crawlerproject.promised_settings import keep_guard
from crawlerproject.setting_values import let_in_flight

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_PROJECT = SETTINGS_PRIORITIES["project"]
# What says which project this is, and what must be known before there is a crawler.
_THEIRS = frozenset({"BOT_NAME", "SPIDER_MODULES", "NEWSPIDER_MODULE", "COMMANDS_MODULE", "LOG_LEVEL", "ADDONS"})
_EARLY = ("TWISTED_REACTOR", "ASYNCIO_EVENT_LOOP", "LOG_FORMATTER")
# What Scrapy has by itself stays but for what works against ours or shows less than ours does.
_KEPT = frozenset({"EXTENSIONS_BASE"})
_OFF = ("throttle.AutoThrottle", "spiderstate.SpiderState", "logstats.LogStats")
_EXTENSIONS: dict[str, int | None] = {f"scrapy.extensions.{name}": None for name in _OFF}


class Guarded:
    """Our own project's: the last guard stays whatever a spider's ``custom_settings`` say."""

    def update_settings(self, settings: BaseSettings) -> None:
        """After the spider's."""
        keep_guard(settings)


class PoliteCrawl:
    """Frontier, politeness and WARC output for spiders that derive from ``crawlerproject.spiders.web.WebSpider``.

    Other spiders keep Scrapy's scheduler; robots.txt, NeverCrawl and the pace hold for them too.
    """

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Our spider beside the project's own, and the event loop."""
        modules = [*settings.getlist("SPIDER_MODULES"), *ours.SPIDER_MODULES]
        settings.set("SPIDER_MODULES", list(dict.fromkeys(modules)), _PROJECT)
        for name in _EARLY:
            settings.set(name, getattr(ours, name), "addon")

    def update_settings(self, settings: BaseSettings) -> None:
        """Everything else."""
        for name in dir(ours):
            if not name.isupper() or name.startswith("_") or name in _THEIRS | _KEPT or name in (*_EARLY, "OURS"):
                continue
            value: Any = getattr(ours, name)
            if name in ours.OURS:
                settings.set(name, value, "addon")
            elif isinstance(value, dict):
                more: dict[str, int | None] = dict(_EXTENSIONS) if name == "EXTENSIONS" else {}
                settings.set(name, settings.getdict(name) | value | more, _PROJECT)
            else:
                settings.set(name, value, _PROJECT)
        let_in_flight(settings)
        keep_guard(settings)
