"""The exchange of a leased request: what it carries from the scheduler to the spider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlerproject.fetch.exchange import META_KEY, Exchange

if TYPE_CHECKING:
    from scrapy import Request

    from crawlerproject.frontier.passage import Lease
    from crawlerproject.items import Rendered


@dataclass(slots=True, kw_only=True)
class LeasedExchange(Exchange):
    """The exchange of a request that the frontier leased."""

    lease: Lease
    rendered: Rendered | None = None  # of a page to render, once the browser has shown it


def leased(request: Request) -> LeasedExchange | None:
    """The exchange of a leased request; None for others, copies of a leased one included."""
    found = request.meta.get(META_KEY)
    return found if isinstance(found, LeasedExchange) and found.owner() is request else None


def lease_in(request: Request) -> Lease | None:
    """The lease of a leased request."""
    found = leased(request)
    return None if found is None else found.lease
