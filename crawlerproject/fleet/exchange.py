"""Links, word of changed pages and other messages between the workers of a fleet, whatever carries them.

``local_exchange`` (sockets between processes of one machine) and ``redis_exchange`` (inboxes in Redis) carry them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from crawlerproject.frontier.other_workers import Changed, HostOwnership, Links, Message, pack_message

if TYPE_CHECKING:
    from crawlerproject.frontier.discovered import DiscoveredUrl
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.rules.url.urls import Address

LINKS_A_MESSAGE = 100
"""A frame of 16 MB takes as many of the longest URLs that settings may allow."""
_CHANGED_A_MESSAGE = 500

ChangedPage = tuple["Address", float]  # with the moment, epoch seconds


class FleetHosts(HostOwnership):
    """Whose a host is, by its partition, and what is written to those who hold the others."""

    sole = False

    def __init__(self, partition: Callable[[str], int], post: Callable[[int, bytes], None]) -> None:
        """``partition`` of a host key; ``post`` sends a message to the holder of a partition."""
        super().__init__()
        self.partition = partition
        self._post = post
        self._links: defaultdict[int, list[DiscoveredUrl]] = defaultdict(list)  # of messages that are not full

    def send(self, host: str, message: Message) -> None:
        """Write to the worker that decides about the host."""
        self.send_to(self.partition(host), message)

    def send_to(self, partition: int, message: Message) -> None:
        """As ``send``, to the worker that holds this partition."""
        self._post(partition, pack_message(message))

    def send_links(self, found: Iterable[DiscoveredUrl]) -> None:
        """As ``send``, each to its host's: those of full messages at once, the others with ``flush``."""
        for item in found:
            partition = self.partition(item.address.host)
            links = self._links[partition]
            links.append(item)
            if len(links) == LINKS_A_MESSAGE:
                del self._links[partition]
                self.send_to(partition, Links(links))

    def flush(self) -> None:
        """Send the links that are left."""
        while self._links:
            partition, links = self._links.popitem()
            self.send_to(partition, Links(links))

    def send_changed(self, pages: Iterable[ChangedPage]) -> list[ChangedPage]:
        """Send word of those that are others'; the own ones."""
        own: list[ChangedPage] = []
        others: defaultdict[int, list[ChangedPage]] = defaultdict(list)
        for page in pages:
            host = page[0].host
            (own if self.mine(host) else others[self.partition(host)]).append(page)
        for partition, some in others.items():
            for first in range(0, len(some), _CHANGED_A_MESSAGE):
                self.send_to(partition, Changed(some[first : first + _CHANGED_A_MESSAGE]))
        return own

    def parted(self, found: Iterable[DiscoveredUrl]) -> tuple[list[DiscoveredUrl], list[DiscoveredUrl]]:
        """Those of own hosts, and the others."""
        own: list[DiscoveredUrl] = []
        others: list[DiscoveredUrl] = []
        for item in found:
            (own if self.mine(item.address.host) else others).append(item)
        return own, others


class Exchange:
    """How what is found reaches the frontier that decides about it: here the only one. Workers override what differs.

    All may raise StorageError.
    """

    keeps_delivered = False
    """While a backup of all workers is made, rows stay of messages that others have acknowledged."""

    def take(self, found: Iterable[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        """Queue what was found, or send it to whose it is; how many were new here."""
        return frontier.add(found, now)

    def changed(self, pages: Iterable[ChangedPage], frontier: Frontier, now: float) -> int:
        """Take word that known pages have changed, or hand it on; how many are believed here."""
        return frontier.changed(pages, now)

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Before a commit begins: what other workers wrote takes effect in it."""

    async def deliver(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Between the beginning of a commit and its end: what was found since ``take`` goes with it."""

    def deliver_now(self, frontier: Frontier, now: float) -> None:
        """Deliver at once, before a commit that nothing may come between. Blocking."""

    def settle(self) -> None:
        """The commit that holds what came of the messages is applied."""
