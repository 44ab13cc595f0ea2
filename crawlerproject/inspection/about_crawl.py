"""What a crawl is, in words for a title page: by whom, by which bot, since when, how far."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from crawlerproject.config.crawl_file import apply_of_folder
from crawlerproject.config.values import identity
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.stores.crawl_dir import CrawlDir

Fact = tuple[str, str]
"""A name and its text."""


def view_of(folder: CrawlDir, settings: BaseSettings) -> CrawlView | None:
    """A look at the crawl in a folder that a command names; None of an archive without one. OperatorError."""
    if not (folder.is_here and (folder.crawl_file.exists() or folder.run.exists() or folder.started_below())):
        return None
    own = settings.copy()
    own.set("CRAWL_DIR", str(folder), "cmdline")
    apply_of_folder(own)
    return CrawlView(own)


def settings_there(folder: CrawlDir, settings: BaseSettings) -> BaseSettings:
    """The settings of that crawl."""
    crawl = view_of(folder, settings)
    return settings if crawl is None else crawl.settings


def title_of(settings: BaseSettings, folder: CrawlDir) -> str:
    """CRAWL_TITLE; without one the folder's name."""
    return str(settings["CRAWL_TITLE"] or "") or f"Crawl “{folder.resolve().name}”"


def about(crawl: CrawlView) -> list[Fact]:
    """The facts in the order in which they are read; what is not known is left out."""
    return [(name, text) for name, text in _facts(crawl) if text]


def _facts(crawl: CrawlView) -> Iterator[Fact]:
    settings, status, run = crawl.settings, crawl.status, crawl.run
    yield "Crawled by", str(settings["WARC_OPERATOR"] or "")
    yield "Bot", identity(settings).user_agent
    yield (
        "Contact",
        ", ".join(str(settings[name]) for name in ("CRAWLER_CONTACT", "CRAWLER_INFO_URL") if settings[name]),
    )
    yield "Purpose", str(settings["PURPOSE"])
    yield "Began", _moment((status.get("totals") or {}).get("since") or run.get("started"))
    yield "Ended", _moment(status.get("ended")) if not crawl.running else "not yet: it runs"
    yield "How it ended", "" if crawl.running else str(status.get("finish_reason") or "")
    yield "Halted", halted[1] if (halted := crawl.halted()) else ""
    yield "Scope", _scope(run, settings)
    build = status.get("build", {})
    yield "Made with", f"crawlerproject {build['version']}, Scrapy {build['scrapy']}" if build else ""


def _scope(run: Mapping[str, Any], settings: BaseSettings) -> str:
    arguments = run.get("arguments", {})
    words = [f"scope={run.get('scope', 'any')}", f"at most {settings['SCOPE_MAX_DEPTH']} links deep"]
    words += [f"{name}={' '.join(found)}" for name in ("include", "exclude") if (found := arguments.get(name))]
    words += [f"{name}={value}" for name, value in arguments.get("limits", {}).items() if value]
    return "; ".join(words)


def _moment(seconds: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)) if seconds else ""
