"""What a request of this crawler carries, and how its answer's headers are read.

It carries one object in its meta, beside Scrapy's own keys: an ``Exchange``, or the ``LeasedExchange`` of what the
frontier leased. The download handler leaves what crossed the wire in it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

from crawlerproject.rules.url.urls import url_in_header

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Headers

    from crawlerproject.errors import FetchError
    from crawlerproject.frontier.passage import Lease
    from crawlerproject.items import Rendered
    from crawlerproject.rules.archive.http_messages import Wire

META_KEY = "crawlerproject"
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(slots=True)
class Exchange:
    """State of one request and its response. It belongs to one Request object.

    Scrapy copies ``meta`` shallowly from request to request (redirects, retries, ``meta=response.meta``). The exchange
    in a copy has another owner, so the copy inherits nothing of it. A pickled exchange is empty.
    """

    owner: Callable[[], Request | None]  # a weak reference
    address: str = ""  # IP address to connect to, checked before; "": ask the resolver
    ask_until: float | None = None  # seconds since boot, by which the answer must be complete
    pause_seconds: float = 0.0  # before the next request there, as far as it is known: how long a connection would idle
    error: FetchError | None = None  # known before anything is sent: the download handler raises it
    mark: Callable[[], AbstractContextManager[object]] = nullcontext  # entered while the body is decoded
    max_bytes: int | None = None  # of the body; None: FETCH_MAX_BYTES
    as_scrapys: bool = False  # its own headers say what is accepted, and the body stays as it was encoded
    wire: Wire | None = None  # None until something was connected

    def __reduce__(self) -> tuple[Any, ...]:
        return Exchange, (_no_owner,)


@dataclass(slots=True, kw_only=True)
class LeasedExchange(Exchange):
    """The exchange of a request that the frontier leased."""

    lease: Lease
    rendered: Rendered | None = None  # of a page to render, once the browser has shown it


def exchange_of(request: Request) -> Exchange:
    """The request's own exchange; a new one if it has none."""
    found = request.meta.get(META_KEY)
    if isinstance(found, Exchange) and found.owner() is request:
        return found
    made = request.meta[META_KEY] = Exchange(ref(request))
    return made


def leased(request: Request) -> LeasedExchange | None:
    """The exchange of a leased request; None for others, copies of a leased one included."""
    found = request.meta.get(META_KEY)
    return found if isinstance(found, LeasedExchange) and found.owner() is request else None


def lease_in(request: Request) -> Lease | None:
    """The lease of a leased request."""
    found = request.meta.get(META_KEY)
    return found.lease if isinstance(found, LeasedExchange) and found.owner() is request else None


def header(headers: Headers, name: bytes) -> str:
    """A header's last value as text; "" without one. ``name`` in title case, as Scrapy keeps names: "Etag".

    Past ``Headers.get``, which normalises the name at each of the dozen looks that a page takes.
    """
    values = dict.get(headers, name)
    return values[-1].decode("latin-1") if values else ""


def location(headers: Headers) -> str:
    """Where a redirect leads, as it is written there; "" where it leads nowhere."""
    values = dict.get(headers, b"Location")
    return url_in_header(values[-1]) if values else ""


def _no_owner() -> None:
    return None
