"""The frontier: what waits, whose turn it is, and what becomes of a page. No Scrapy, no clock, no network.

Links become durable at once (one atomic store change a page). A lease is only remembered in memory: its
queue row stays in the store until ``apply`` commits the page's fate together with the archive's durable
length. So a crash at any instant returns every unfinished lease to its queue and forgets nothing.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from crawlerproject.errors import StorageError
from crawlerproject.frontier.conduct import Conduct, Ending
from crawlerproject.frontier.found import Found
from crawlerproject.frontier.gates import Gates
from crawlerproject.frontier.host import Host
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.robots_desk import RobotsDesk
from crawlerproject.frontier.workbench import Stage, Workbench
from crawlerproject.reasons import Reason
from crawlerproject.rules.backoff import FAILURES
from crawlerproject.rules.priority import LAST
from crawlerproject.rules.robots import MAX_REDIRECTS
from crawlerproject.rules.urls import UrlRefused, parse
from crawlerproject.stores.protocols import (
    FLAG_ROBOTS,
    FLAG_SEED,
    Changes,
    FrontierStore,
    PageRecord,
    QueuedPage,
)

# Rows of one host that may be refused in a single turn before others get theirs (ours: 20 refusals cost 1 ms).
_REFUSALS_PER_TURN = 20
# A robots.txt that was redirected is asked for again when no answer came for so long (ours).
_REDIRECTED_ROBOTS_SECONDS = 120.0
# A row that the next commit stores cannot be leased before: look again after a beat (COMMIT_SECONDS) and a bit.
_UNSTORED_WAIT_SECONDS = 1.3
# An answer's end as the server sees it: its last write returns up to this much after we have read it (1.2 ms seen
# between two busy processes on one machine).
_SERVERS_VIEW_SECONDS = 0.005


class Lookup(NamedTuple):
    """A host whose name must be resolved before its turn."""

    host: Host


class Frontier:
    """Hosts, queues, leases and their ends. ``now`` is epoch seconds everywhere."""

    def __init__(
        self,
        store: FrontierStore,
        workbench: Workbench,
        gates: Gates,
        conduct: Conduct,
        robots: RobotsDesk,
        *,
        rng: random.Random,
        started_at: float,
        clean_start: bool,
    ) -> None:
        self.store = store
        self.workbench = workbench
        self.gates = gates
        self.conduct = conduct
        self.robots = robots
        self.refused: Counter[str] = Counter()  # by reason, since the last look
        self.waiting_urls = 0  # queued, not leased, of hosts not given up
        self.leased = 0
        self.given_up_hosts = 0
        self._rng = rng
        self._started_at = started_at
        self._clean_start = clean_start
        self._changes = Changes()
        self._dirty: dict[str, Host] = {}
        self._arrival = 0
        self._redirected_robots: dict[str, float] = {}  # origin -> asked again when older than this
        self._refused_adds: list[Found] = []  # found while the store had no room

    # --- into the frontier ----------------------------------------------------------------------

    def load(self, now: float) -> None:
        """Take up every host that has work from an earlier run."""
        for name in self.store.hosts_with_work():
            host = self._host(name)
            if not host.rows:  # counts of a torn run: the rows themselves are the truth
                host.rows = 1
            host.given_up = False
            self.waiting_urls += host.waiting_urls
            self.workbench.add(host)

    def add(self, found: Iterable[Found], now: float) -> int:
        """Queue what is new and allowed, as one atomic change. Returns how many were queued."""
        new = self._new(found, now)
        if not new:
            return 0
        hosts: dict[str, Host] = {}
        rows = [self._row(item, now) for item in new]
        for row in rows:
            host = hosts.get(row.host)
            if host is None:
                host = hosts[row.host] = self._host(row.host)
            host.rows += 1
            host.known += 1
        try:
            self.store.apply(Changes(queued=rows, hosts=[(name, host.pack()) for name, host in hosts.items()]))
        except StorageError:
            for row in rows:
                hosts[row.host].rows -= 1
                hosts[row.host].known -= 1
            self._refused_adds.extend(new)
            raise
        for row in rows:
            host = hosts[row.host]
            if not host.given_up:
                self.waiting_urls += 1
                if not host.work or host.stage == Stage.IDLE:
                    self.workbench.add(host)
        return len(rows)

    def add_again(self, now: float) -> None:
        """Queue what was found while the store had no room."""
        found, self._refused_adds = self._refused_adds, []
        self.add(found, now)

    def _new(self, found: Iterable[Found], now: float) -> list[Found]:
        allowed: dict[bytes, Found] = {}
        for item in found:
            refusal = self.gates.refusal(item, now)
            if refusal is None:
                allowed.setdefault(item.address.key, item)
            else:
                self.refused[refusal] += 1
        if not allowed:
            return []
        unknown = [
            item for item, known in zip(allowed.values(), self.store.known(list(allowed)), strict=True) if not known
        ]
        return [item for item in unknown if self._within_rules(item, now)]

    def _within_rules(self, item: Found, now: float) -> bool:
        address = item.address
        host = self._host(address.host)
        if host.known >= self.gates.max_urls_per_host and not item.flags & FLAG_SEED:
            self.refused[Reason.BUDGET] += 1
            return False
        if host.robots_until(address.scheme) > now and not self.robots.allows(
            address.scheme, address.host, address.url
        ):
            self.refused[Reason.ROBOTS] += 1
            return False
        return True

    def _row(self, item: Found, now: float) -> QueuedPage:
        address, depth, hops, via, priority, flags = item
        arrival = self._next_arrival(now)
        return QueuedPage(address.host, address.key, address.url, priority, arrival, depth, hops, via, 0, flags)

    def _next_arrival(self, now: float) -> int:
        self._arrival = max(self._arrival + 1, int(now * 1_000_000))
        return self._arrival

    def _host(self, name: str) -> Host:
        known = self.workbench.hosts.get(name)
        if known is not None:
            return known  # type: ignore[return-value]
        if (host := self._dirty.get(name)) is not None:  # left the workbench, its state not yet stored
            self.workbench.wait(host, host.next_free, work=False)
            self.workbench.hosts[name] = host
            return host
        packed = self.store.host(name)
        if packed is None:
            host = Host(name, self.conduct.start_delay_seconds)
            if not self._clean_start:
                # The last run may have asked this host in its last second without a trace in the store.
                host.next_free = self._started_at + host.delay_seconds
        else:
            host = Host.unpack(name, packed)
            if not self._clean_start:
                host.next_free = max(host.next_free, self._started_at + host.delay_seconds)
        self.workbench.hosts[name] = host
        self.workbench.wait(host, host.next_free, work=False)
        return host

    # --- out of it ------------------------------------------------------------------------------

    def next(self, now: float) -> Lease | Lookup | None:
        """The next thing to do for a host that is free now; None when every host waits."""
        while (turn := self.workbench.take(now)) is not None:
            host: Host = turn.host  # type: ignore[assignment]
            if not turn.address:
                return Lookup(host)
            lease = self._lease(host, turn.address, now)
            if lease is not None:
                return lease
        return None

    def looked_up(self, host: Host, address: str, address_until: float, now: float) -> Lease | None:
        """The resolver found the host; a lease when its address is free at once."""
        turn = self.workbench.found(host, address, address_until, now)
        return self._lease(host, turn.address, now) if turn is not None else None

    def _lease(self, host: Host, address: str, now: float) -> Lease | None:
        for _ in range(_REFUSALS_PER_TURN):
            row = self._first_row(host)
            if row is None:
                break
            refusal = self.gates.refusal_again(row, now)
            if refusal is None and not row.flags & FLAG_ROBOTS:
                scheme = row.url.partition(":")[0]
                until = host.robots_until(scheme)
                if -until > now and host.other_scheme_good(scheme, now):
                    self._let_others_first(row, host, now)
                    continue
                if until <= now:
                    return self._handed_out(self._robots_row(host, scheme, now), host, address, now, stored=False)
                if not self.robots.allows(scheme, host.name, row.url):
                    refusal = Reason.ROBOTS
            if refusal is None:
                return self._handed_out(row, host, address, now, stored=True)
            self._decide(row, host, PageRecord(row.url, refusal, 0, now))
            self.refused[refusal] += 1
        wait = now + _UNSTORED_WAIT_SECONDS if row is None and host.unstored else now
        self.workbench.release(host, now, wait, work=host.waiting_urls > 0)
        return None

    def _let_others_first(self, row: QueuedPage, host: Host, now: float) -> None:
        """A page whose scheme cannot be reached goes behind those of the scheme that can; in the end it is refused."""
        if row.tries + 1 >= FAILURES[Reason.ROBOTS_UNREACHABLE].max_tries:
            self._decide(row, host, PageRecord(row.url, Reason.ROBOTS_UNREACHABLE, 0, now))
            self.refused[Reason.ROBOTS_UNREACHABLE] += 1
            return
        host.taken.add(row.arrival)
        self.waiting_urls -= 1
        self._queue_again(row._replace(priority=LAST), host, now, replaces=row)
        self._dirty[host.name] = host

    def _first_row(self, host: Host) -> QueuedPage | None:
        taken = host.taken
        for row in self.store.head(host.name, len(taken) + 1):
            if row.arrival not in taken:
                return row
        if not host.unstored and host.waiting_urls:
            self.waiting_urls -= host.waiting_urls
            host.rows = len(taken)  # counts of a torn run: the rows themselves are the truth
        return None

    def _robots_row(self, host: Host, scheme: str, now: float) -> QueuedPage:
        origin = f"{scheme}://{host.name}"
        url = origin + "/robots.txt"
        return QueuedPage(
            host.name, parse(url).key, url, 0, self._next_arrival(now), 0, "P", "", 0, FLAG_ROBOTS, origin
        )

    def _handed_out(self, row: QueuedPage, host: Host, address: str, now: float, *, stored: bool) -> Lease:
        self.leased += 1
        if stored:
            host.taken.add(row.arrival)
            self.waiting_urls -= 1
        return Lease(row, host, address, now, host.delay_seconds, stored)

    # --- the end of a lease ---------------------------------------------------------------------

    def finish(self, lease: Lease, ending: Ending, record: PageRecord, body: bytes, now: float) -> None:
        """A lease's end: the page's fate is decided (or it goes back), the host's clock starts.

        ``body`` matters for a robots.txt only. The fate reaches the store with the next ``apply``.
        """
        self.leased -= 1
        lease.ended = True
        host = lease.host
        host.fetched += 1 if ending.status else 0
        before = host.delay_seconds
        if lease.is_robots and ending.status is None:
            scheme = lease.row.note.partition(":")[0]
            ending = replace(ending, other_scheme_good=host.other_scheme_good(scheme, now))
        verdict = self.conduct.after(host, ending, now, self._rng)
        if lease.is_robots:
            self._robots_answered(lease, ending, body, now)
        if lease.stored and verdict.again and not lease.is_robots:
            self._queue_again(lease.row, host, now)
        elif lease.stored:
            self._decide(lease.row, host, record, leased=True)
        self._dirty[host.name] = host
        host.delay_seconds = self.conduct.delay_seconds(host)
        now += _SERVERS_VIEW_SECONDS
        host.pace_free = max(now + self.conduct.jittered(host.delay_seconds, self._rng), host.rest_until)
        next_free = max(host.pace_free, host.held_until)
        if verdict.give_up and not host.given_up:
            host.given_up = True
            self.given_up_hosts += 1
            self.waiting_urls -= host.waiting_urls
        self.workbench.ended(host, now, next_free, work=host.waiting_urls > 0 and not host.given_up)
        if ending.trouble or lease.is_robots or host.delay_seconds > before:
            # A promise that grew must survive even a crash within the next beat.
            self._store_now(host)

    def _store_now(self, host: Host) -> None:
        """Store what must survive even a crash within the next beat; without room it waits for the beat."""
        with suppress(StorageError):
            self.store.apply(Changes(hosts=[(host.name, host.pack())]))

    def put_back(self, lease: Lease, now: float) -> None:
        """End a lease without a fate: its row waits again as if it had never been taken."""
        self.leased -= 1
        lease.ended = True
        host = lease.host
        if lease.stored:
            host.taken.discard(lease.row.arrival)
            self.waiting_urls += 1
        self.workbench.ended(host, now, now + host.delay_seconds, work=host.waiting_urls > 0)

    def _decide(self, row: QueuedPage, host: Host, record: PageRecord, *, leased: bool = False) -> None:
        if not leased:
            host.taken.add(row.arrival)
            self.waiting_urls -= 1
        self._changes.removed.append(row)
        self._changes.pages.append((row.key, record))
        self._dirty[host.name] = host

    def _queue_again(self, row: QueuedPage, host: Host, now: float, *, replaces: QueuedPage | None = None) -> None:
        self._changes.removed.append(replaces or row)
        self._changes.queued.append(row._replace(arrival=self._next_arrival(now), tries=row.tries + 1))
        host.unstored += 1
        self.waiting_urls += 1

    # --- robots.txt -----------------------------------------------------------------------------

    def _robots_answered(self, lease: Lease, ending: Ending, body: bytes, now: float) -> None:
        origin = lease.row.note
        follow = ending.location and len(lease.row.hops) <= MAX_REDIRECTS
        if follow and self._robots_redirected(lease, origin, ending.location, now):
            return
        outcome = self.robots.answered(origin, ending.status, body, ending.reason, now)
        scheme, _, name = origin.partition("://")
        host = self._host(name)
        self._redirected_robots.pop(origin, None)
        spare = host.other_scheme_good(scheme, now)
        ask_again = 0.0 if outcome.usable else self.conduct.robots_unreachable(host, now, self._rng, spare=spare)
        host.set_robots_until(scheme, outcome.good_until if outcome.usable else -ask_again)
        if outcome.usable:
            host.floor_seconds = outcome.floor_seconds
            host.delay_seconds = self.conduct.delay_seconds(host)
        if outcome.record is not None:
            self._changes.robots.append((origin, outcome.record))
            host.robots_unstored |= {scheme}
        self._dirty[host.name] = host
        self._store_now(host)
        if host is not lease.host:
            self._wake(host, max(now, ask_again))

    def _robots_redirected(self, lease: Lease, origin: str, location: str, now: float) -> bool:
        """Queue the redirect's target at its own host; the origin's host waits for the answer."""
        try:
            target = parse(location)
        except UrlRefused:
            return False
        waits = lease.host
        if self._redirected_robots.get(origin, 0.0) <= now or lease.stored:
            self._redirected_robots[origin] = now + _REDIRECTED_ROBOTS_SECONDS
            host = self._host(target.host)
            if self.gates.excluded(target, now):
                return False
            key, hops = parse(origin + "/robots.txt").key, lease.row.hops + "R"
            arrival = self._next_arrival(now)
            row = QueuedPage(host.name, key, target.url, 0, arrival, 0, hops, lease.row.url, 0, FLAG_ROBOTS, origin)
            # With the commit, not at once: a crash that cuts off the redirect's capture must forget its target too.
            self._changes.queued.append(row)
            host.unstored += 1
            self._dirty[host.name] = host
            self.waiting_urls += 1
            self.workbench.add(host)
        if not lease.stored:
            # Within the host it is the next turn's page, once a commit has stored it.
            same = target.host == waits.name
            waits.held_until = now + (_UNSTORED_WAIT_SECONDS if same else _REDIRECTED_ROBOTS_SECONDS)
        return True

    def _wake(self, host: Host, at: float) -> None:
        """Let a host that waited for another's robots.txt go on, at its own pace."""
        host.held_until = 0.0
        if host.stage in (Stage.WAITING, Stage.IDLE):
            self.workbench.wait(host, max(at + host.delay_seconds, host.rest_until), work=host.waiting_urls > 0)

    # --- commit ---------------------------------------------------------------------------------

    def take_changes(self) -> Changes:
        """Everything decided since the last call, to be applied once its archive bytes are durable."""
        changes, self._changes = self._changes, Changes()
        return changes

    def apply(self, changes: Changes, facts: list[tuple[str, bytes]]) -> None:
        """Commit ``changes`` and ``facts`` atomically. On StorageError nothing has changed; call again later."""
        self._settle(changes, 1)
        dirty, self._dirty = self._dirty, {}
        changes.hosts = [(name, host.pack()) for name, host in dirty.items()]
        changes.facts = facts
        try:
            if changes:
                self.store.apply(changes)
            for origin, _ in changes.robots:
                self.robots.stored(origin)
        except StorageError:
            self._settle(changes, -1)
            dirty.update(self._dirty)
            self._dirty = dirty
            self.take_back(changes)
            raise

    def take_back(self, changes: Changes) -> None:
        """Put changes that could not be committed in front of those that came since."""
        later, self._changes = self._changes, changes
        changes.removed.extend(later.removed)
        changes.queued.extend(later.queued)
        changes.pages.extend(later.pages)
        changes.robots.extend(later.robots)

    def _settle(self, changes: Changes, sign: int) -> None:
        for row in changes.removed:
            host = self._host(row.host)
            host.rows -= sign
            if sign > 0:
                host.taken.discard(row.arrival)
            else:
                host.taken.add(row.arrival)
            self._dirty[host.name] = host
        for origin, _ in changes.robots:
            scheme, _, name = origin.partition("://")
            host = self._host(name)
            host.robots_unstored = host.robots_unstored - {scheme} if sign > 0 else host.robots_unstored | {scheme}
            self._dirty[name] = host
        for row in changes.queued:
            host = self._host(row.host)
            host.rows += sign
            host.unstored -= sign
            self._dirty[host.name] = host

    # --- looking on -----------------------------------------------------------------------------

    def hosts(self) -> Iterator[Host]:
        """Every host in memory."""
        yield from self.workbench.hosts.values()  # type: ignore[misc]

    def only_rests(self, now: float, patience_seconds: float) -> bool:
        """Whether nothing can be fetched for ``patience_seconds`` because every host with work rests for longer."""
        if self.leased:
            return False
        wake = self.workbench.wake_at()
        if wake is not None and wake <= now + patience_seconds:
            return False
        return all(
            not host.work or host.rest_until > now + patience_seconds
            for host in self.hosts()
            if host.stage in (Stage.WAITING, Stage.IDLE)
        ) and not any(host.stage in (Stage.LOOKED_UP, Stage.IN_LINE) for host in self.hosts())
