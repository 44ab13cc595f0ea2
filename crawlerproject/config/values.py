"""Reads settings whose values may come from a command line, where everything is a string."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scrapy.settings import SETTINGS_PRIORITIES

from crawlerproject.errors import OperatorError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

# Of Scrapy's downloader, which holds all requests in one slot (settings.py).
_CONCURRENCY = ("CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN")
# A crawler that Scrapy is given is given its project's settings once more (CrawlerRunner.create_crawler).
_ABOVE_PROJECT = SETTINGS_PRIORITIES["project"] + 1


def let_in_flight(settings: BaseSettings) -> None:
    """Have Scrapy's downloader take as many requests at a time as FRONTIER_MAX_IN_FLIGHT says, by whom it is said.

    A concurrency given for one spider or on the command line stands. Before the crawler freezes its settings.
    """
    try:
        in_flight = settings.getint("FRONTIER_MAX_IN_FLIGHT")
    except ValueError:  # no number: the start says so (crawl/start/preflight.py)
        return
    for name in _CONCURRENCY if in_flight > 0 else ():
        settings.set(name, in_flight, _ABOVE_PROJECT)


def list_of(settings: BaseSettings, name: str) -> list[str]:
    """A list of strings, also written as JSON (``["a", "b"]``) or with commas (``a,b``); OperatorError otherwise."""
    try:
        return list_of_value(settings.get(name))
    except ValueError as error:
        raise OperatorError(f"{name} is {error}") from None


def list_of_value(value: Any) -> list[str]:
    """The same of a setting's value; ValueError says what it is and how to write it."""
    if not value:
        return []
    parts = value
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [part.strip() for part in value.split(",") if part.strip()]
        try:
            parts = json.loads(value)
        except ValueError:
            parts = None
    if not isinstance(parts, (list, tuple, set, frozenset)):
        raise ValueError(f'{value!r}; write it as ["a", "b"] or a,b.')
    return [str(part) for part in parts]
