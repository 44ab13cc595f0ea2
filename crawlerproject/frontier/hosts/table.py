"""The hosts of the crawl: loaded from the store when they are needed, counted, held and given up.

A host that has work is not asked while the operator has paused it, or once it has had its share: its queue stays as it
is. A limit holds a host until a later start has a higher one, a pause until the operator ends it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import ceil
from typing import NamedTuple

from crawlerproject.errors import StorageError
from crawlerproject.frontier.hosts.host import HELD, Host, HostState, Stage
from crawlerproject.frontier.hosts.names_and_domains import NamesToResolve, PortsOfNames
from crawlerproject.frontier.hosts.on_disk import HostsOnDisk, Move, place_of
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.reasons import Reason
from crawlerproject.rules.limits import PER_HOST, Limits, Spent, reached
from crawlerproject.rules.politeness.clock_set_back import SLACK_SECONDS, Longest
from crawlerproject.rules.politeness.pauses import HOUR_SECONDS
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.refused_urls import DEFAULT_MAX_PORTS
from crawlerproject.rules.url.urls import host_name, key_of
from crawlerproject.stores.protocols import IN_MEMORY, Changes, FrontierStore

LEFT_ALONE = {
    HostState.PARKED: Reason.HOST_PARKED, HostState.PAUSED: Reason.PAUSED, HostState.LIMITED: Reason.HOST_LIMIT,
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


class ParkedHosts:
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


logger = logging.getLogger(__name__)

CLOCK_FACT = "clock"
"""The latest moment that any commit was made at, by whatever clock the machine had then."""
MAX_HOSTS_IN_MEMORY = 100_000
"""Of hosts with work; FRONTIER_MAX_HOSTS_IN_MEMORY. At some 1 KB each with what is in memory of their
queues it is 100 MB, and at five seconds a page it is 20,000 pages a second: more than one process fetches."""

# Hosts that are probed once more with one commit: each is read from the store.
_PROBED_AT_A_TIME = 50


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
                "The clock was set back since the last commit: %s would have waited for longer than any pause or rest "
                "lasts; each waits for its own from now on.",
                counted(self._cut, "host"),
            )

    def fact(self) -> tuple[str, bytes]:
        """The fact that a commit of this moment stores."""
        self._latest = max(self._latest, self.now)
        return CLOCK_FACT, repr(self._latest).encode()


class HostTable:
    """Every host that has work in memory or on disk."""

    def __init__(
        self,
        store: FrontierStore,
        workbench: Workbench,
        names: NamesToResolve,
        start: Start,
        *,
        start_delay_seconds: float,
        max_in_memory: int = MAX_HOSTS_IN_MEMORY,
        max_ports: int = DEFAULT_MAX_PORTS,
        suspensions: HostSuspensions | None = None,
    ) -> None:
        """``start_delay_seconds``: the pause of a host that has not been asked yet; ``max_ports`` of one name, the
        default port left out. More hosts with work than ``max_in_memory`` wait on disk.
        """
        self.store, self.workbench = store, workbench
        self.ownership = names.ownership
        self.clock = ClockSkew(store, start)
        self.dirty: dict[str, Host] = {}  # their states go with the next commit
        self.copies: dict[str, Host] = {}  # of hosts that are not in memory, while rows for them are queued
        self._start_delay_seconds = start_delay_seconds
        self.ports = PortsOfNames(self, max_ports)
        self.names = names
        self.suspensions = HostSuspensions() if suspensions is None else suspensions
        self.on_disk = HostsOnDisk(self, store, max_in_memory)
        self.waiting_urls = self.on_disk.counts.rows  # queued, not leased, of hosts not parked
        self.parked_hosts = ParkedHosts()
        self.parked = 0  # of this start, and not yet asked again
        self.held: Counter[str] = Counter()  # by HostState, of those that have had a turn since this start
        # Hosts that were needed before the loading came to them; None: all are loaded.
        self.loaded_early: set[str] | None = None
        self.unlisted: list[Move] = []  # changes of the lists that wait for a commit, since the store had no room

    @property
    def loading(self) -> bool:
        """Whether hosts of an earlier run are not taken up yet."""
        return self.loaded_early is not None

    def find(self, name: str) -> Host:
        """The host in memory or as it is stored, without taking it up."""
        found = self.workbench.hosts.get(name) or self.dirty.get(name) or self.copies.get(name)
        return self._unpacked(name, self.store.host(name)) if found is None else found

    def _unpacked(self, name: str, packed: bytes | None) -> Host:
        """A host as the store has it, or a new one; moments too far ahead are cut."""
        if packed is None:
            return Host(name, self._start_delay_seconds)
        host = Host.unpack(name, packed)
        if not host.on_disk:  # where it stands there is its moment as it is stored
            self.clock.clamp_to_now(host)
        return host

    def _add_uncertainty(self, host: Host, *, stored: bool = True) -> None:
        """Delay a host from the store for requests that the store may not know of."""
        if unsure_until := self.ownership.unsure_until(host.name):
            host.next_free = max(host.next_free, unsure_until + host.delay_seconds)
            host.pace_free = max(host.pace_free, unsure_until + host.delay_seconds)
        if stored:
            host.next_free += self.ownership.doubt_seconds

    def comes_off_disk(self, host: Host) -> None:
        """A host that waited on disk is no mere copy any more: its moment there is as it was stored."""
        host.on_disk = host.rests_on_disk = False
        self.clock.clamp_to_now(host)
        self._add_uncertainty(host)

    def of(self, name: str) -> Host:
        """The host in memory, taken from the store or made new when it is not there."""
        known = self.workbench.hosts.get(name)
        if known is not None:
            return known
        if (host := self.dirty.get(name)) is not None:  # left the workbench, its state not yet stored
            if host.on_disk:  # or never came to it: something was to be stored of a copy
                return self._taken_in(host)
            self.ports.share(host)
            self.workbench.wait(host, host.next_free, work=False)
            self.workbench.hosts[name] = host
            return host
        return self._taken_in(self.stored(name, self.store.host(name)))

    def to_queue(self, name: str, named_by: str = "") -> Host:
        """The host for which links were found: in memory if it is there or has room, else a copy as the store has it.

        ``named_by``: the domain that names it, if not its own. A new one is looked up, and not in memory before, when
        that domain's turn comes. ``HostsOnDisk.more_rows`` says what becomes of a copy.
        """
        known, now = self.workbench.hosts.get(name), self.clock.now
        if known is not None and known.fetched:
            return known  # as nearly always: of a page's own host
        if known is None and (known := self.dirty.get(name)) is not None and not known.on_disk:
            known = self.of(name)
        if known is not None and not known.on_disk:
            if known.next_free > now and self.names.sooner(known, named_by, now):
                self._comes_now(known, now)
            return known
        host = known or self.stored(name, self.store.host(name))
        if named_by and not (host.ever_queued or host.fetched):
            self.names.names(host, named_by, now)
        if known is not None:
            return self._taken_in(host)
        if host.on_disk and self.names.sooner(host, named_by, now):
            return self._comes_now(self._taken_in(host), now)
        loads = self.loaded_early is not None and host.rows > 0
        waits = bool(host.named_by) and host.next_free > now
        if host.on_disk or ((waits or len(self.workbench.hosts) >= self.on_disk.max_in_memory) and not loads):
            return host
        return self._taken_in(host)

    def _comes_now(self, host: Host, now: float) -> Host:
        """A host that waits for nothing but its turn to be looked up does so no more."""
        host.next_free = host.pace_free = now
        self._add_uncertainty(host)
        self.workbench.wait(host, host.next_free, work=host.work)
        return host

    def stored(self, name: str, packed: bytes | None) -> Host:
        """A copy of the host as the store has it, or a new one."""
        host = self._unpacked(name, packed)
        if host.on_disk and self.loaded_early is not None and not self.on_disk.store.is_due(place_of(host)):
            host.on_disk = host.rests_on_disk = False  # a process took it up and did not live to say so
            self.clock.clamp_to_now(host)
        if not host.on_disk:
            host.listed = self.on_disk.counts.whole and host.rows > 0
            self._add_uncertainty(host, stored=packed is not None)
        return host

    def begin(self, host: Host) -> None:
        """A host from the store has work, in memory from now on."""
        self.ports.share(host)
        if not host.held_until:
            host.pace_free = host.next_free
        self.workbench.hosts[host.name] = host
        self.workbench.add(host)

    def _taken_in(self, host: Host) -> Host:
        if host.on_disk:
            self._take_off(host)
            self.begin(host)
            return host
        self.ports.share(host)
        host.pace_free = host.next_free
        self.workbench.hosts[host.name] = host
        self.workbench.wait(host, host.next_free, work=False)
        if self.loaded_early is not None and host.rows:
            # The loading of what an earlier run left has not come to it yet.
            self.loaded_early.add(host.name)
            host.state = HostState.ASKED  # it was not, until this start
            self.waits(host, host.waiting_urls)
            self.workbench.add(host)
        elif host.rows and not host.state:
            # It was forgotten with rows that a later run shall have: they count until its turn says so again.
            self.waits(host, host.waiting_urls)
            self.workbench.add(host)
        return host

    def _take_off(self, host: Host) -> None:
        """A host that was on disk is needed in memory."""
        on_disk = self.on_disk
        counts = on_disk.counted()
        counts.add(host, -1)
        changes = Changes(due=[(host.name, place_of(host).at, IN_MEMORY)])
        self.comes_off_disk(host)
        with suppress(StorageError):
            on_disk.apply(changes, counts, [host])
            return
        self.unlisted.extend(changes.due)
        on_disk.counts, on_disk.unstored = counts, True
        host.listed = True

    def waits(self, host: Host, count: int) -> None:
        """So many URLs more (or fewer) of the host wait; those of a host that was given up do not count."""
        if not host.state:
            self.waiting_urls += count

    def park(self, host: Host, probe_at: float) -> None:
        """Leave a host alone until the next start, or until ``probe_at`` (epoch seconds; 0: never)."""
        if not host.state:
            self.waits(host, -host.waiting_urls)
            host.state = HostState.PARKED
            if self.loaded_early is not None:
                self.loaded_early.add(host.name)
            self.parked += 1
            if probe_at:
                self.parked_hosts.add(host.name, probe_at)

    def probe_again(self, now: float) -> bool:
        """Let some hosts that were left alone for long enough be asked once more; whether any is. StorageError."""
        self.clock.now, asked = now, False
        for _ in range(_PROBED_AT_A_TIME):
            if (name := self.parked_hosts.due(now)) is None:
                break
            host = self.find(name) if self.ownership.mine(name) else None
            if host is not None and host.state is HostState.PARKED:
                if (host := self.of(name)).state:  # else the loading of what an earlier run left has let it in
                    self._let_in(host)
                asked = True
            self.parked_hosts.drop()
            self.parked -= 1
        return asked

    def hold(self, host: Host, why: HostState) -> None:
        """Leave a host with its queue: ``why`` as ``HostSuspensions`` says."""
        if host.state:
            return
        self.waits(host, -host.waiting_urls)
        host.state = why
        self.held[why.value] += 1
        if self.loaded_early is not None:
            self.loaded_early.add(host.name)
        self.dirty[host.name] = host

    def let_in(self, name: str) -> None:
        """What held a name's hosts is over: those that it held have work again, as far as the store knows them."""
        first = self.find(name)
        for key in (name, *(key_of(name, number) for number in first.other_ports)):
            if not self.ownership.mine(key) or self.find(key).state not in HELD:
                continue
            if (host := self.of(key)).state in HELD:  # else the loading has let it in
                self.held[host.state.value] -= 1
                self._let_in(host)

    def _let_in(self, host: Host) -> None:
        host.state = HostState.ASKED
        self.dirty[host.name] = host
        if host.waiting_urls > 0:
            self.waits(host, host.waiting_urls)
            self.workbench.add(host)

    def let_go(self, mine: Callable[[str], bool]) -> list[str]:
        """Forget hosts that are not ours any more; those in flight stay until they have ended, and are named."""
        staying = []
        for host in [host for name, host in self.workbench.hosts.items() if not mine(name)]:
            if host.stage == Stage.IN_FLIGHT or host.taken or host.unstored or host.subrequests:
                staying.append(host.name)
                continue
            self.waits(host, -host.waiting_urls)
            self.workbench.drop(host)
        return staying + [name for name in self.dirty if not mine(name)]
