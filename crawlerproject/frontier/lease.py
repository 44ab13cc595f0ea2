"""One URL handed out to be fetched: whose turn it is, at which address, under which promise."""

from __future__ import annotations

from dataclasses import dataclass

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.subrequests import Subrequest
from crawlerproject.stores.protocols import QueuedPage


@dataclass(slots=True)
class Lease:
    """Ends exactly once, by ``FrontierScheduler.finish``; a crash ends it too: the row is still queued."""

    row: QueuedPage
    host: Host
    address: str  # IP address, already checked against the address rules
    leased_at: float  # epoch seconds
    delay_seconds: float  # the pause that was promised before this request
    stored: bool = True  # False for a robots.txt that the host's turn made up: it has no queue row
    ended: bool = False
    embed: Subrequest | None = None  # the sub-request of a page in the browser that this fetches
    mark: str = ""  # under which its address is reserved among several workers

    def granted(self, now: float) -> None:
        """Its address is reserved for it: its time begins ``now`` (epoch seconds)."""
        self.leased_at = self.host.asked_at = now
