"""What a request of this crawler carries beside Scrapy's own meta keys: one object, under one key."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from scrapy import Request

    from crawlerproject.errors import FetchError
    from crawlerproject.wire import Wire

META_KEY = "crawlerproject"


@dataclass(slots=True)
class Exchange:
    """One request on its way, and its answer. It belongs to one Request object alone.

    Scrapy copies ``meta`` from request to request (redirects, retries, ``meta=response.meta``), values as they are. A
    copy therefore finds an exchange that names another request as its owner, and inherits nothing of it. Pickled, an
    exchange is empty.
    """

    owner: Callable[[], Request | None]  # a weak reference
    address: str = ""  # IP address to connect to, already checked; "": ask the resolver
    delay_seconds: float = 0.0  # the pause that was promised before this request
    ask_until: float | None = None  # seconds since boot, by which the answer must be complete
    error: FetchError | None = None  # known before anything was sent; the download handler raises it
    mark: Callable[[], AbstractContextManager[object]] = nullcontext  # entered while the body is decoded
    wire: Wire | None = None  # None until something was connected

    def __reduce__(self) -> tuple[Any, ...]:
        return _empty, ()


def exchange_of(request: Request) -> Exchange:
    """The request's own exchange; an empty one is put into its meta where there is none."""
    found = request.meta.get(META_KEY)
    if isinstance(found, Exchange) and found.owner() is request:
        return found
    made = request.meta[META_KEY] = Exchange(ref(request))
    return made


def _empty() -> Exchange:
    return Exchange(_nobody)


def _nobody() -> None:
    return None
