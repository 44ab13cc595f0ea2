"""What the memberships of all kinds name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from crawlerproject.errors import FetchError
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.stores.redis.buffer.store import BufferedStore
    from crawlerproject.stores.rocks.store import RocksStore

    Store = BufferedStore | RocksStore


class ReservationEnds(Protocol):
    """Is called with the answer to each reservation."""

    def granted(self, lease: Lease, error: FetchError | None) -> None:
        """The address is reserved for the lease."""

    def refused(self, lease: Lease, wait_seconds: float) -> None:
        """Another worker has the address; try again after this time."""
