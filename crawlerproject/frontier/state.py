"""What the frontier knows and has not stored yet: hosts in memory, changes for the next commit, the counts.

Links become durable at once (one atomic store change a page). A lease is only remembered in memory: its
queue row stays in the store until ``apply`` commits the page's fate together with the archive's durable
length. So a crash at any instant returns every unfinished lease to its queue and forgets nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import suppress

from crawlerproject.errors import StorageError
from crawlerproject.frontier.holds import Holds
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import HostsOnDisk, place_of
from crawlerproject.frontier.ownership import HostOwnership
from crawlerproject.frontier.recent_keys import RecentKeys
from crawlerproject.frontier.robots.cache import RobotsCache
from crawlerproject.frontier.workbench import PortsClock, Workbench
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.clock_set_back import SLACK_SECONDS, Longest
from crawlerproject.rules.url.hosts import host_name
from crawlerproject.rules.url.ports import DEFAULT_MAX_PORTS, key_of, port_of
from crawlerproject.stores.protocols import (
    FLAG_RENDER,
    FLAG_SEED,
    IN_MEMORY,
    Changes,
    FrontierStore,
    PageRecord,
    QueuedPage,
)

# Rows of a queue that are looked through for one of the other scheme (ours; a host with both has few of either first).
_LOOKED_THROUGH = 50
# Refused seeds that are kept for whoever says so, between two looks.
_REFUSED_SEEDS = 1000
_UNSURE_FACT = "unsure-until"
_CLOCK_FACT = "clock"  # the latest moment that any commit was made at, by whatever clock the machine had then

logger = logging.getLogger(__name__)


def unsure_until(store: FrontierStore, started_at: float, *, clean_start: bool) -> float:
    """Until then an earlier process may have asked any host without a trace in the store; 0.0 when none has.

    Kept, since a clean start may follow soon after an unclean one.
    """
    if clean_start:
        return min(float(store.fact(_UNSURE_FACT) or 0.0), started_at)  # the clock may have been set back since
    store.apply(Changes(facts=[(_UNSURE_FACT, repr(started_at).encode())]))
    return started_at


def decided_key(row: QueuedPage, reason: str) -> bytes:
    """Under which a row's fate is known: the page's own, unless it is the stranger's fate who named it, not the page's.

    What is refused for a stranger may still be named by the host itself.
    """
    return row.key if reason == Reason.STRANGER else row.page_key


class FrontierState:
    """Shared by intake, turns and endings; ``now`` is epoch seconds everywhere."""

    def __init__(
        self,
        store: FrontierStore,
        workbench: Workbench[Host],
        robots: RobotsCache,
        *,
        start_delay_seconds: float,
        ownership: HostOwnership,
        on_disk: HostsOnDisk | None = None,
        max_ports: int = DEFAULT_MAX_PORTS,
        now: float = 0.0,
        longest: Longest | None = None,
        holds: Holds | None = None,
    ) -> None:
        """``shelf``: hosts on disk; None: every host with work is in memory. ``max_ports``: of one name, others.

        ``longest``: what is stored may be no further away, if the clock was set back; None: it is believed.
        """
        self.holds = holds or Holds()
        self.max_ports = max_ports
        self.now = now  # of the frontier's last question
        self._latest = float(store.fact(_CLOCK_FACT) or 0.0)  # that any commit was made at
        # While the clock is behind that, what is stored may lie too far ahead.
        self.longest = longest if not self._latest or self._latest > now + SLACK_SECONDS else None
        self.set_back = 0  # hosts that were to wait for longer than anything lasts
        self.store = store
        self.workbench = workbench
        self.robots = robots
        self.recent = RecentKeys()
        self.refused: Counter[str] = Counter()  # by reason, since the last look
        self.refused_seeds: list[tuple[str, Reason]] = []  # URLs, since the last look; the first ones
        self.waiting_urls = 0  # queued, not leased, of hosts not given up
        self.leased = 0
        self.given_up_hosts = 0
        self.held_hosts: Counter[str] = Counter()  # by Host.held, those with a queue that was come to since this start
        self.changes = Changes()
        self.dirty: dict[str, Host] = {}
        self.copies: dict[str, Host] = {}  # of hosts that are not in memory, while rows for them are queued
        self.ownership = ownership
        self._start_delay_seconds = start_delay_seconds
        self._arrival = 0
        self._warned = False
        self.met: set[str] | None = None  # hosts met while those of an earlier run are taken up one after the other
        self.on_disk = on_disk
        if on_disk is not None:
            self.waiting_urls = on_disk.counts.rows

    def host(self, name: str) -> Host:
        """The host in memory, taken from the store or made new when it is not there."""
        known = self.workbench.hosts.get(name)
        if known is not None:
            return known
        if (host := self.dirty.get(name)) is not None:  # left the workbench, its state not yet stored
            if host.on_disk:  # or never came to it: something was to be stored of a copy
                return self._taken_in(host)
            self._share_ports(host)
            self.workbench.wait(host, host.next_free, work=False)
            self.workbench.hosts[name] = host
            return host
        return self._taken_in(self.stored(name, self.store.host(name)))

    def refuse(self, reason: Reason, url: str, flags: int) -> None:
        """Count a refusal; a seed's is said to the operator."""
        self.refused[reason] += 1
        if flags & FLAG_SEED and len(self.refused_seeds) < _REFUSED_SEEDS:
            self.refused_seeds.append((url, reason))

    def to_queue(self, name: str) -> Host:
        """The host for which links were found: in memory if it is there or has room, else a copy as the store has it.

        What becomes of a copy is for the ``shelf`` to say.
        """
        known = self.workbench.hosts.get(name)
        if known is not None:
            return known
        on_disk = self.on_disk
        if on_disk is None or name in self.dirty:
            return self.host(name)
        host = self.stored(name, self.store.host(name))
        loads = self.met is not None and host.rows > 0
        if host.on_disk or (len(self.workbench.hosts) >= on_disk.max_in_memory and not loads):
            return host
        return self._taken_in(host)

    def stored(self, name: str, packed: bytes | None) -> Host:
        """A copy of the host as the store has it, or a new one."""
        host = self._unpacked(name, packed)
        on_disk = self.on_disk
        if host.on_disk and (on_disk is None or (self.met is not None and not on_disk.store.is_due(place_of(host)))):
            host.on_disk = host.rests_on_disk = False  # a process took it up and did not live to say so
            self.bring_back(host)
        if not host.on_disk:
            host.listed = on_disk is not None and on_disk.counts.whole and host.rows > 0
            self.doubt(host, stored=packed is not None)
        return host

    def doubt(self, host: Host, *, stored: bool) -> None:
        """Let a host that comes from the store wait for what the store may not know."""
        if unsure_until := self.ownership.unsure_until(host.name):
            host.next_free = max(host.next_free, unsure_until + host.delay_seconds)
            host.pace_free = max(host.pace_free, unsure_until + host.delay_seconds)
        if stored:
            host.next_free += self.ownership.doubt_seconds

    def begin(self, host: Host) -> None:
        """A host from the store has work, in memory from now on."""
        self._share_ports(host)
        if not host.held_until:
            host.pace_free = host.next_free
        self.workbench.hosts[host.name] = host
        self.workbench.add(host)

    def _taken_in(self, host: Host) -> Host:
        if host.on_disk:
            self._take_off(host)
            self.begin(host)
            return host
        self._share_ports(host)
        host.pace_free = host.next_free
        self.workbench.hosts[host.name] = host
        self.workbench.wait(host, host.next_free, work=False)
        if self.met is not None and host.rows:
            self._meet(host)
        elif host.rows and not host.given_up:
            # It was forgotten with rows that a later run shall have: they count until its turn says so again.
            self.waits(host, host.waiting_urls)
            self.workbench.add(host)
        return host

    def _take_off(self, host: Host) -> None:
        """A host that was on disk is needed in memory."""
        on_disk = self.on_disk
        assert on_disk is not None
        counts = on_disk.counted()
        counts.add(host, -1)
        changes = Changes(due=[(host.name, place_of(host).at, IN_MEMORY)])
        on_disk.ready(changes, counts)
        host.on_disk = host.rests_on_disk = False
        self.bring_back(host)
        self.doubt(host, stored=True)
        with suppress(StorageError):
            self.store.apply(changes)
            on_disk.stored(changes, counts, [host])
            return
        self.changes.due.extend(changes.due)  # there is no room: with the next commit
        on_disk.counts, on_disk.unstored = counts, True
        host.listed = True

    def knows(self, name: str) -> bool:
        """Whether a URL of the host, or of another port of its name, was ever accepted."""
        if (clock := self.workbench.names.get(host_name(name))) is not None:
            return clock.known > 0 or any(host.met for host in clock.hosts)
        first = self._kept(host_name(name))
        return first.met or self._kept(name).met or any(number != port_of(name) for number in first.other_ports)

    # --- ports of one name ------------------------------------------------------------------------

    def too_many_ports(self, name: str, *, stranger: bool = False) -> bool:
        """Whether a host key is one port too many of its name; half of them are kept from strangers."""
        if ":" not in name or name in self.workbench.hosts or not (port := port_of(name)):
            return False
        clock = self.workbench.names.get(host_name(name))
        taken = clock.numbers if clock is not None else self._kept(host_name(name)).other_ports
        return port not in taken and len(taken) >= (self.max_ports // 2 if stranger else self.max_ports)

    def charge(self, host: Host, ended: float, next_free: float) -> None:
        """The host was asked: it waits for its pace and its rest, its name for the pace and rests that were asked."""
        host.pace_free = max(next_free, host.rest_until)
        host.name_free = max(next_free, host.asked_until)
        if host.ports is not None:
            host.ports.charge(host, ended, host.name_free)

    def tell_port(self, host: Host) -> None:
        """Have a name know of one more port, whose host goes to disk at once: it shares their clock once it is back."""
        name, port = host_name(host.name), port_of(host.name)
        if not port:
            return
        if (clock := self.workbench.names.get(name)) is not None:
            clock.numbers.add(port)
            host.next_free = max(host.next_free, clock.free_at(host))
        first = self._kept(name)
        if port not in first.other_ports:
            first.other_ports += (port,)
            self.dirty[name] = first

    def _share_ports(self, host: Host) -> None:
        """Have a host share the clock of its name's other ports, in memory or stored; most names have no other."""
        name, bench = host_name(host.name), self.workbench
        clock = bench.names.get(name)
        if clock is None:
            port = port_of(host.name)
            first = self._kept(name) if port else host
            if port and port not in first.other_ports:
                first.other_ports += (port,)
                self.dirty[name] = first
            if not first.other_ports:
                return
            unheard_of = name not in bench.hosts and not (first.known or first.fetched or first.name_free)
            if first.other_ports == (port,) and unheard_of:  # the only port of its name shares its clock with nobody
                return
            clock = bench.share(host, name)
            clock.numbers.update(first.other_ports)
            for key in (name, *(key_of(name, number) for number in clock.numbers)):
                self._learn_clock(host if key == host.name else self._kept(key), clock)
        elif (port := port_of(host.name)) and port not in clock.numbers:
            clock.numbers.add(port)
            first = self._kept(name)
            first.other_ports += (port,)
            self.dirty[name] = first
        bench.share(host, name)
        host.next_free = max(host.next_free, clock.free_at(host))
        for each in clock.hosts:
            each.rest_until = max(each.rest_until, clock.rest_until)

    def _learn_clock(self, host: Host, clock: PortsClock[Host]) -> None:
        """Take in what one port's state says of the name's clock: its last answer ended before its pause began."""
        free = host.name_free + self.ownership.doubt_seconds if host.name_free else 0.0
        if unsure_until := self.ownership.unsure_until(host.name):  # it may have been this port that was asked
            free = max(free, unsure_until + host.delay_seconds)
        clock.known += host.known
        if host.rest_until <= host.name_free:  # it was asked for: what fails rests a port alone
            clock.rest_until = max(clock.rest_until, host.rest_until)
        clock.next_free = max(clock.next_free, free)
        clock.ended = max(clock.ended, free - host.delay_seconds)
        if host.name in self.workbench.hosts:
            self.workbench.share(host, clock.name)

    def _kept(self, name: str) -> Host:
        """The host in memory or as it is stored, without taking it up."""
        host = self.workbench.hosts.get(name) or self.dirty.get(name) or self.copies.get(name)
        if host is None:
            host = self._unpacked(name, self.store.host(name))
        return host

    def _unpacked(self, name: str, packed: bytes | None) -> Host:
        """A host as the store has it, or a new one; what it waits for lies within what anything lasts."""
        if packed is None:
            return Host(name, self._start_delay_seconds)
        host = Host.unpack(name, packed)
        if not host.on_disk:  # where it stands there is its moment as it is stored
            self.bring_back(host)
        return host

    def bring_back(self, host: Host) -> bool:
        """Cut what a clock that was set back makes too long; whether anything was."""
        if self.longest is None or not host.bring_back(self.now, self.longest):
            return False
        self.set_back += 1
        return True

    def warn_of_set_back(self) -> None:
        """Say once, of the hosts taken up so far, that the clock was set back."""
        if self.set_back and not self._warned:
            self._warned = True
            logger.warning(
                "The clock was set back since the last commit: %d hosts were to wait for longer than any pause or rest "
                "lasts; each waits for its own from now on.",
                self.set_back,
            )

    def _meet(self, host: Host) -> None:
        """A host with work from an earlier run is in memory before the loading has come to it."""
        assert self.met is not None
        self.met.add(host.name)
        host.given_up, host.held = False, ""  # it was, until this start
        if not host.rows and self.store.head(host.name, 1):
            host.rows = 1  # counts of a torn run: the rows themselves are the truth
        self.waits(host, host.waiting_urls)
        self.workbench.add(host)

    def next_arrival(self, host: Host, now: float) -> int:
        """A number that orders rows by when they came: ascending, and of one host unique whatever the clock says.

        A clock may have been set back since an earlier run, or be another machine's: the host's state, which is stored
        with its rows, remembers the last. Two rows with one place in a queue would be one.
        """
        self._arrival = host.arrival = max(self._arrival + 1, host.arrival + 1, int(now * 1_000_000))
        return self._arrival

    def other_scheme_waits(self, host: Host, scheme: str) -> bool:
        """Whether pages of the other of http and https wait, whose robots.txt was never asked for."""
        other = "http" if scheme == "https" else "https"
        if host.robots_until(other):
            return False
        rows = self.store.head(host.name, _LOOKED_THROUGH)
        return any(row.url.startswith(other + ":") and row.arrival not in host.taken for row in rows)

    def decide(self, row: QueuedPage, host: Host, record: PageRecord) -> None:
        """The fate of a row that was taken; it leaves its queue with the next commit."""
        self.changes.removed.append(row)
        self.changes.pages.append((decided_key(row, record.reason), record))
        self.dirty[host.name] = host

    def queue_again(self, row: QueuedPage, host: Host, now: float) -> None:
        """A row goes back behind its equals, with one more try."""
        self.changes.removed.append(row)
        self.changes.queued.append(row._replace(arrival=self.next_arrival(host, now), tries=row.tries + 1))
        host.unstored += 1
        self.waits(host, 1)

    def decide_now(self, host: Host, changes: Changes) -> None:
        """One change of a host's queue at once: nothing in it depends on the archive. StorageError: nothing changed."""
        more = len(changes.queued) - len(changes.removed)
        host.rows += more
        changes.hosts = [(host.name, host.pack())]
        try:
            self.store.apply(changes)
        except StorageError:
            host.rows -= more
            raise
        self.waits(host, more)
        self.dirty[host.name] = host

    def waits(self, host: Host, count: int) -> None:
        """So many URLs more (or fewer) of the host wait; those of a host that was given up wait for another start."""
        if not host.given_up:
            self.waiting_urls += count

    def give_up(self, host: Host) -> None:
        """Leave a host alone until the next start."""
        if not host.given_up:
            self.waits(host, -host.waiting_urls)
            host.given_up = True
            if self.met is not None:
                self.met.add(host.name)
            self.given_up_hosts += 1

    def hold(self, host: Host, why: str) -> None:
        """Leave a host with its queue: ``why`` as ``Holds`` says."""
        if host.given_up:
            return
        self.waits(host, -host.waiting_urls)
        host.given_up, host.held = True, why
        self.held_hosts[why] += 1
        if self.met is not None:
            self.met.add(host.name)
        self.dirty[host.name] = host

    def let_in(self, name: str) -> None:
        """What held a name's hosts is over: those that it held have work again, as far as the store knows them."""
        first = self._kept(name)
        for key in (name, *(key_of(name, number) for number in first.other_ports)):
            if not self.ownership.mine(key) or not self._kept(key).held:
                continue
            host = self.host(key)
            self.held_hosts[host.held] -= 1
            host.given_up, host.held = False, ""
            self.dirty[key] = host
            if host.waiting_urls > 0:
                self.waits(host, host.waiting_urls)
                self.workbench.add(host)

    def take(self, row: QueuedPage, host: Host) -> None:
        """A row is leased, or waits for the next commit: nobody else gets it."""
        host.taken.add(row.arrival)
        self.waits(host, -1)

    def leave_plain(self, row: QueuedPage, host: Host) -> None:
        """A page that was to be rendered is not: what is known of it stays what its plain answer said."""
        self.changes.removed.append(row)
        self.dirty[host.name] = host

    def queue_to_render(self, row: QueuedPage, host: Host, record: PageRecord, place: str, now: float) -> None:
        """A fetched page waits for its host's turn once more, for the browser; ``place`` is where its answer is."""
        self.changes.removed.append(row)
        self.changes.pages.append((row.page_key, record))
        marked = row._replace(arrival=self.next_arrival(host, now), tries=0, flags=row.flags | FLAG_RENDER, note=place)
        self.changes.queued.append(marked)
        host.unstored += 1
        self.waits(host, 1)

    def store_now(self, host: Host) -> None:
        """Store what must survive even a crash within the next beat; without room it waits for the beat."""
        states = [(host.name, host.pack())]
        name = host_name(host.name)
        if name != host.name and (first := self.dirty.get(name)) is not None:  # that this port is one of its name's
            states.append((name, first.pack()))
        with suppress(StorageError):
            self.store.apply(Changes(hosts=states))

    # --- commit ---------------------------------------------------------------------------------

    def take_changes(self) -> Changes:
        """Everything decided since the last call, to be applied once its archive bytes are durable."""
        changes, self.changes = self.changes, Changes()
        return changes

    def apply(self, changes: Changes, facts: list[tuple[str, bytes]]) -> None:
        """Commit ``changes`` and ``facts`` atomically. On StorageError nothing has changed; call again later."""
        self._settle(changes, 1)
        dirty = self.dirty
        # What has ended since these changes were taken is in the next commit: until then its host is not forgotten.
        later = self.changes
        names = {row.host for row in (*later.removed, *later.queued)}
        names |= {origin.partition("://")[2] for origin, _ in later.robots}
        self.dirty = {name: dirty[name] for name in names if name in dirty}
        changes.hosts = [(name, host.pack()) for name, host in dirty.items()]
        decided = changes.facts
        if changes or facts:
            self._latest = max(self._latest, self.now)
            changes.facts = [*decided, *facts, (_CLOCK_FACT, repr(self._latest).encode())]
        on_disk, moved = self.on_disk, changes.due
        if on_disk is not None:
            changes.due = moved + on_disk.lists(dirty.values())
            on_disk.ready(changes, on_disk.counts)
        try:
            if changes:
                self.store.apply(changes)
                if on_disk is not None:
                    on_disk.stored(changes, on_disk.counts, dirty.values())
            for origin, _ in changes.robots:
                self.robots.stored(origin)
        except StorageError:
            self._settle(changes, -1)
            changes.due = moved
            dirty.update(self.dirty)
            self.dirty = dirty
            changes.facts = decided
            self.take_back(changes)
            raise

    def take_back(self, changes: Changes) -> None:
        """Put changes that could not be committed in front of those that came since."""
        later, self.changes = self.changes, changes
        changes.removed.extend(later.removed)
        changes.queued.extend(later.queued)
        changes.pages.extend(later.pages)
        changes.robots.extend(later.robots)
        changes.facts.extend(later.facts)
        changes.fingerprints.extend(later.fingerprints)
        changes.payloads.extend(later.payloads)
        changes.due.extend(later.due)

    def _settle(self, changes: Changes, sign: int) -> None:
        for row in changes.removed:
            host = self.host(row.host)
            host.rows -= sign
            if sign > 0:
                host.taken.discard(row.arrival)
            else:
                host.taken.add(row.arrival)
            self.dirty[host.name] = host
        for origin, _ in changes.robots:
            scheme, _, name = origin.partition("://")
            host = self.host(name)
            host.robots_unstored = host.robots_unstored - {scheme} if sign > 0 else host.robots_unstored | {scheme}
            self.dirty[name] = host
        for row in changes.queued:
            host = self.host(row.host)
            host.rows += sign
            host.unstored -= sign
            self.dirty[host.name] = host
