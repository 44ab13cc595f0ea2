"""Hosts as they are in memory or in the store; stored moments that are too far ahead, or may be too early."""

from __future__ import annotations

import logging
from typing import NamedTuple

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.other_workers import HostOwnership
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.rules.politeness.clock_set_back import SLACK_SECONDS, Longest
from crawlerproject.stores.protocols import FrontierStore

CLOCK_FACT = "clock"
"""The latest moment that any commit was made at, by whatever clock the machine had then."""

logger = logging.getLogger(__name__)


class Start(NamedTuple):
    """How this run of a crawl begins."""

    at: float  # epoch seconds
    clean: bool = True  # the run before ended in good order, or there was none
    longest: Longest | None = None  # how far ahead a stored moment may lie; None: what is stored is believed


class ClockSkew:
    """Cuts what lies too far ahead, while the clock is behind the latest commit. ``now`` is epoch seconds."""

    def __init__(self, store: FrontierStore, start: Start) -> None:
        self.start = start
        now = self.now = start.at  # of the frontier's last question
        self._latest = float(store.fact(CLOCK_FACT) or 0.0)
        self._longest = start.longest if not self._latest or self._latest > now + SLACK_SECONDS else None
        self._cut = 0  # hosts that were to wait for longer than anything lasts
        self._warned = False

    @property
    def suspected(self) -> bool:
        """Whether what is stored may lie too far ahead."""
        return self._longest is not None

    def clamp_to_now(self, host: Host) -> bool:
        """Cut what the host would wait for too long; whether anything was cut."""
        if self._longest is None or not host.clamp_to_now(self.now, self._longest):
            return False
        self._cut += 1
        return True

    def warn(self) -> None:
        """Log once how many of the hosts taken up so far were cut."""
        if self._cut and not self._warned:
            self._warned = True
            logger.warning(
                "The clock was set back since the last commit: %d hosts were to wait for longer than any pause or rest "
                "lasts; each waits for its own from now on.",
                self._cut,
            )

    def fact(self) -> tuple[str, bytes]:
        """The fact that a commit of this moment stores."""
        self._latest = max(self._latest, self.now)
        return CLOCK_FACT, repr(self._latest).encode()


class KnownHosts:
    """Finds a host without taking it up."""

    def __init__(
        self,
        store: FrontierStore,
        workbench: Workbench,
        ownership: HostOwnership,
        clock: ClockSkew,
        start_delay_seconds: float,
    ) -> None:
        """``start_delay_seconds``: the pause of a host that has not been asked yet."""
        self.store = store
        self.workbench = workbench
        self.ownership = ownership
        self.clock = clock
        self.dirty: dict[str, Host] = {}  # their states go with the next commit
        self.copies: dict[str, Host] = {}  # of hosts that are not in memory, while rows for them are queued
        self._start_delay_seconds = start_delay_seconds

    def find(self, name: str) -> Host:
        """The host in memory or as it is stored, without taking it up."""
        host = self.workbench.hosts.get(name) or self.dirty.get(name) or self.copies.get(name)
        if host is None:
            host = self.unpacked(name, self.store.host(name))
        return host

    def unpacked(self, name: str, packed: bytes | None) -> Host:
        """A host as the store has it, or a new one; moments too far ahead are cut."""
        if packed is None:
            return Host(name, self._start_delay_seconds)
        host = Host.unpack(name, packed)
        if not host.on_disk:  # where it stands there is its moment as it is stored
            self.clock.clamp_to_now(host)
        return host

    def add_uncertainty(self, host: Host, *, stored: bool) -> None:
        """Delay a host from the store for requests that the store may not know of."""
        if unsure_until := self.ownership.unsure_until(host.name):
            host.next_free = max(host.next_free, unsure_until + host.delay_seconds)
            host.pace_free = max(host.pace_free, unsure_until + host.delay_seconds)
        if stored:
            host.next_free += self.ownership.doubt_seconds
