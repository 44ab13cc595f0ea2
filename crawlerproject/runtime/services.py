"""Finds the parts of a running crawl by their type.

Scrapy builds spiders, middlewares and extensions independently of each other. A running crawl provides its parts here,
and a component asks for the one it needs when it needs it: a crawl that begins anew provides its parts again.
"""

from __future__ import annotations

from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class Services:
    """The parts that one crawler's components share, each under its class."""

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


_services: WeakKeyDictionary[object, Services] = WeakKeyDictionary()


def services_of(crawler: object) -> Services:
    """The crawler's one registry."""
    return _services.setdefault(crawler, Services())
