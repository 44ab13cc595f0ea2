"""Hosts that are not asked though they have work: those that the operator paused, and those that have had their share.

Their queues stay as they are. A limit holds a host until a later start has a higher one, a pause until the operator
ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from crawlerproject.frontier.hosts.host import Host, HostState
from crawlerproject.reasons import Reason
from crawlerproject.rules.crawl_limits import PER_HOST, Limits, Spent, reached
from crawlerproject.rules.politeness.backoff import HOUR_SECONDS
from crawlerproject.rules.url.urls import host_name

LEFT_ALONE = {
    HostState.GIVEN_UP: Reason.HOST_PARKED, HostState.PAUSED: Reason.PAUSED, HostState.LIMITED: Reason.HOST_LIMIT,
}  # fmt: skip
"""Why what waits for a host that is not asked is refused."""


class HostSuspensions:
    """Asked once a turn. ``paused``: host names (all of their ports) and keys, with the operator's remark."""

    def __init__(
        self,
        limits: Limits | None = None,
        of_hosts: Mapping[str, Limits] | None = None,
        paused: Mapping[str, str] | None = None,
    ) -> None:
        """``limits`` of every host; ``of_hosts``: those that seeds say of their own, by host key."""
        self._limits = limits if limits is not None and any(limits) else None
        self.of_hosts = dict(of_hosts or {})
        self.paused = dict(paused or {})

    def __bool__(self) -> bool:
        return bool(self.paused or self._limits or self.of_hosts)

    def why(self, host: Host) -> HostState:
        """PAUSED, LIMITED, or ASKED when the host may be asked."""
        if self.paused and self.pause_of(host.name) is not None:
            return HostState.PAUSED
        return HostState.LIMITED if self.limit_of(host) else HostState.ASKED

    def pause_of(self, name: str) -> str | None:
        """The operator's remark on the pause of a host (its key); None when it is not paused."""
        return self.paused.get(host_name(name))

    def limit_of(self, host: Host) -> str:
        """The limit that the host has reached, as the operator wrote it: ``max_pages_per_host=100``; "" for none."""
        return self._limit(host.name, Spent(host.pages, host.busy_seconds, host.received_bytes))

    def only_pages(self, host: Host) -> bool:
        """Whether nothing but the number of its pages holds the host: what these need may still be asked for."""
        if self.paused and self.pause_of(host.name) is not None:
            return False
        return not self._limit(host.name, Spent(0, host.busy_seconds, host.received_bytes))

    def _limit(self, name: str, spent: Spent) -> str:
        own = self.of_hosts.get(name) if self.of_hosts else None
        if own is not None and (name := reached(own, spent)):
            return f"{name} of its seed"
        if self._limits is None or not (name := reached(self._limits, spent)):
            return ""
        return name.replace("=", f"{PER_HOST}=", 1)


class LeftAlone:
    """Those of this start: the next one asks them anyway.

    They are on disk with their queues, and a name costs some 20 bytes here: a broad crawl meets many dead hosts in a
    month.
    """

    def __init__(self) -> None:
        self._hours: dict[int, bytearray] = {}  # by the hour since the epoch, names with a line feed behind each

    def add(self, name: str, at: float) -> None:
        """A host that is due at ``at`` (epoch seconds), and not before.

        One that went to another worker and came back meanwhile may be here twice: then it has waited for its rest.
        """
        self._hours.setdefault(ceil(at / HOUR_SECONDS), bytearray()).extend(f"{name}\n".encode())

    def due(self, now: float) -> str | None:
        """One that is due, until it is dropped; None when none is."""
        first = min(self._hours, default=None)
        if first is None or first * HOUR_SECONDS > now:
            return None
        names = self._hours[first]
        return names[names.rfind(b"\n", 0, -1) + 1 : -1].decode()

    def drop(self) -> None:
        """Forget the host that ``due`` named."""
        first = min(self._hours)
        names = self._hours[first]
        del names[names.rfind(b"\n", 0, -1) + 1 :]
        if not names:
            del self._hours[first]
