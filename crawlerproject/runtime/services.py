"""Finds the parts that one crawler's components share, by their type.

Scrapy builds spiders, middlewares, download handlers and extensions independently of each other. A running crawl
provides its parts here, again when it opens another session, and a component looks up the one it needs at the moment of
use. What a crawler has one of whether it crawls or not (guard, resolver, pool of connections) is made at the first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class Services:
    """The parts of one crawler, each under its class."""

    def __init__(self) -> None:
        self._by_type: dict[type[Any], Any] = {}

    def provide(self, *services: object) -> None:
        """Offer these under their classes; a later object of a class replaces the earlier one."""
        self._by_type.update((type(service), service) for service in services)

    def __getitem__(self, kind: type[T]) -> T:
        """The one of this class. Raises KeyError when there is none, as outside a crawl."""
        found: T = self._by_type[kind]
        return found

    def get(self, kind: type[T]) -> T | None:
        """The one of this class; None when there is none, as outside a crawl."""
        return self._by_type.get(kind)

    def once(self, kind: type[T], make: Callable[[], T]) -> T:
        """The one of this class, made now if there is none yet."""
        found: T | None = self._by_type.get(kind)
        if found is None:
            found = self._by_type[kind] = make()
        return found


_services: WeakKeyDictionary[object, Services] = WeakKeyDictionary()


def services_of(crawler: object) -> Services:
    """The crawler's one registry."""
    services = _services.get(crawler)
    if services is None:
        services = _services[crawler] = Services()
    return services


class Stats(Protocol):
    """Scrapy's collector of statistics, as far as a crawl needs it."""

    def inc_value(self, key: str, count: int = 1) -> None: ...
