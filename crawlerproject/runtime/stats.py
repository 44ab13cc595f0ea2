"""Scrapy's collector of statistics, as far as a crawl needs it."""

from __future__ import annotations

from typing import Protocol


class Stats(Protocol):
    """Counts by name."""

    def inc_value(self, key: str, count: int = 1) -> None: ...
