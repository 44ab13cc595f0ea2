"""Names of hosts on their way to an address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from crawlerproject.errors import FetchError, StorageError
from crawlerproject.rules.hosts import host_name

if TYPE_CHECKING:
    from crawlerproject.crawl.crawl import Crawl
    from crawlerproject.frontier.host import Host
    from crawlerproject.frontier.lease import Lease


class Lookups:
    """A task for each host whose turn it is and whose address is not known."""

    def __init__(
        self, crawl: Crawl, found: Callable[[Lease, FetchError | None], None], nothing: Callable[[], None]
    ) -> None:
        """``found`` is given the lease that a host then has, and why it has no address; ``nothing`` is told of none."""
        self._crawl = crawl
        self._found = found
        self._nothing = nothing
        self._tasks: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def begin(self, host: Host) -> None:
        """Look up one more."""
        task = asyncio.get_running_loop().create_task(self._resolve(host))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Nobody waits for them any more."""
        for task in self._tasks:
            task.cancel()

    async def _resolve(self, host: Host) -> None:
        crawl = self._crawl
        error: FetchError | None = None
        try:
            resolved = await crawl.resolver.resolve(host_name(host.name).strip("[]"))
            address = crawl.frontier.address_for(host, resolved.addresses, crawl.now())
            until = resolved.expires_at
        except FetchError as failed:
            # It has its turn all the same: the failure is logged and judged like any other.
            error, address, until = failed, f"unresolved:{host.name}", 0.0
        try:
            lease = crawl.frontier.looked_up(host, address, until, crawl.now())
        except StorageError as away:
            crawl.pause(str(away))
            return
        if lease is not None:
            self._found(lease, error)
        else:
            self._nothing()
