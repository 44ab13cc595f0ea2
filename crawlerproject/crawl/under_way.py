"""The leases that are handed out and have not ended."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

    from crawlerproject.frontier.lease import Lease


class UnderWay:
    """Knows each lease from its turn to its end, and the request that was sent for it until its Page is here."""

    def __init__(self) -> None:
        self.by_host: dict[str, Lease] = {}
        """For inspection. While a page is in the browser its host has other leases: one of those is shown."""
        self._sent: dict[int, tuple[Lease, Request]] = {}  # by the lease's id
        self._rest: Callable[[Lease], None] | None = None

    def rest_with(self, rest: Callable[[Lease], None]) -> None:
        """Have ``rest`` called with each lease that ends."""
        self._rest = rest

    def sent(self, lease: Lease, request: Request) -> None:
        """The engine has the request."""
        if not (lease.row.kind.is_render and lease.host.name in self.by_host):
            self.by_host[lease.host.name] = lease
        self._sent[id(lease)] = (lease, request)

    def answered(self, lease: Lease) -> None:
        """Its Page is here."""
        self._sent.pop(id(lease), None)

    def over(self, lease: Lease) -> None:
        """It has ended."""
        self.answered(lease)
        if self.by_host.get(lease.host.name) is lease:
            del self.by_host[lease.host.name]
        if self._rest is not None:
            self._rest(lease)

    def unanswered(self, known: Container[Request]) -> list[Lease]:
        """The leases without a Page whose request is none of those that the engine knows."""
        return [lease for lease, request in self._sent.values() if request not in known]
