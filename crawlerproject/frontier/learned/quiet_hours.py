"""In which hours each host answers slowly: learned from its answers, and what that does to its pause."""

from __future__ import annotations

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.learned.models import HostModel
from crawlerproject.rules.politeness.quiet_hours import (
    LEAST_WORK_SECONDS,
    SLOWER,
    HostHours,
    busy_from_of_country,
    is_busy,
)
from crawlerproject.rules.url.urls import host_name
from crawlerproject.stores.protocols import FactReader, HostFact

# Of a host with work for hours: its hours take some 600 bytes.
_KEPT = 20_000
# Of one host's answers one in so long is looked at: sixty an hour tell as much as hundreds (ours).
_APART_SECONDS = 60.0


class QuietHours(HostModel[HostHours]):
    """Only hosts with work for hours are looked at: for others neither a pause nor a write is made."""

    def __init__(self, store: FactReader) -> None:
        super().__init__(store, HostFact.HOURS, HostHours, _KEPT)
        self.slowed: set[str] = set()
        """Hosts whose pause is longer now: the last one that was set."""

    def paced(self, host: Host, delay_seconds: float, now: float) -> float:
        """The pause of a host whose pace gives ``delay_seconds``: that, or a longer one in its busy hours."""
        longer = host.waiting_urls * delay_seconds >= LEAST_WORK_SECONDS and self._busy(host, now)
        (self.slowed.add if longer else self.slowed.discard)(host.name)
        return SLOWER * delay_seconds if longer else delay_seconds

    def _busy(self, host: Host, now: float) -> bool:
        own = self.of(host.name).busy_from(now)
        return is_busy(now, own if own is not None else busy_from_of_country(host_name(host.name)))

    def learn(self, host: Host, response_seconds: float, now: float) -> None:
        """Take in a good answer that took so long to its first byte and ended ``now`` (epoch seconds)."""
        if host.waiting_urls * host.delay_seconds >= LEAST_WORK_SECONDS:
            hours = self.of(host.name)
            if not 0 <= now - hours.learned_at < _APART_SECONDS:
                self.changed(host.name).learn(now, response_seconds)
