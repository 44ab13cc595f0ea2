"""Finds the parts that one crawler's components share, by their type.

Scrapy builds spiders, middlewares, download handlers and extensions independently of each other. A running crawl
provides its parts here, again when it opens another session, and a component looks up the one it needs at the moment of
use. What a crawler has one of whether it crawls or not (guard, resolver, pool of connections) is made at the first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class Services(dict[type[Any], Any]):
    """The parts of one crawler, each under its class; a class has no part outside a crawl."""

    if TYPE_CHECKING:  # a dictionary's own methods, which each page calls, with the types of what they find

        def __getitem__(self, kind: type[T]) -> T: ...
        def get(self, kind: type[T]) -> T | None: ...  # type: ignore[override]

    def provide(self, *services: object) -> None:
        """Offer these under their classes; a later object of a class replaces the earlier one."""
        self.update((type(service), service) for service in services)

    def once(self, kind: type[T], make: Callable[[], T]) -> T:
        """The part of this class, made now if it is missing."""
        found = self.get(kind)
        if found is None:
            found = self[kind] = make()
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
