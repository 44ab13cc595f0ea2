"""What the frontier has decided and not stored yet: changes for the next commit.

Links become durable at once (one atomic store change a page). A lease is only remembered in memory: its
queue row stays in the store until ``apply`` commits the page's fate together with the archive's durable
length. So a crash at any instant returns every unfinished lease to its queue and forgets nothing. Rows that a
turn refuses have no capture, and wait for no commit (``Refusals``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from crawlerproject.errors import StorageError
from crawlerproject.frontier.hosts.host import EMPTY, Host, Stage
from crawlerproject.frontier.hosts.table import HostTable
from crawlerproject.frontier.learned.revisits import unseen
from crawlerproject.frontier.other_workers import Message, ScopeWidened
from crawlerproject.frontier.robots_cache import RobotsCache
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pauses import FAILURES
from crawlerproject.rules.revisits.history import History
from crawlerproject.rules.row_kinds import LAST, ROW_KINDS
from crawlerproject.rules.url.urls import host_name
from crawlerproject.stores.poison import NO_MARK, Waiting
from crawlerproject.stores.protocols import IN_MEMORY, Changes, FrontierStore, PageRecord, QueuedPage

if TYPE_CHECKING:
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.passage import DiscoveredUrl
    from crawlerproject.rules.url.urls import Address

LATER_RUN = 1 << 62
"""Added to the arrival of a row that a later run shall have: it sorts behind all others of its host. Microseconds since
the epoch reach this in 146,000 years."""

# Rows of a queue that are looked through for one of the other scheme (ours; a host with both has few of either first).
_LOOKED_THROUGH = 50

# A row that the next commit stores cannot be leased before: look again after a commit (COMMIT_SECONDS) and a bit.
UNSTORED_WAIT_SECONDS = 1.3

_MOST = 65_536  # keys of each of the two generations; some 120 bytes each, so 16 MB at most
_NEW_SHARE = 8  # of a generation such a part is of URLs found for the first time: those of hundreds of pages (ours)
_UNSURE_FACT = "unsure-until"

# Refused seeds that are kept between two commits; their count goes on.
_MAX_SEEDS = 1000
# Reasons that refuse a row, not its page.
_OF_THE_ROW = frozenset({Reason.EXTERNAL_BUDGET, Reason.REQUISITE_BUDGET})


class RecentKeys:
    """Keys of URLs that were found lately and are known: most links of a page repeat those of the page before.

    When the younger generation is full it becomes the older one, whose keys are dropped.
    """

    __slots__ = ("_most", "older", "younger")

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self.younger: set[bytes] = set()
        self.older: set[bytes] = set()

    def __contains__(self, key: bytes) -> bool:
        return key in self.younger or key in self.older

    def add(self, keys: Iterable[bytes]) -> None:
        """Remember keys, which must be in the store: what is remembered is never asked of it."""
        self.younger.update(keys)
        if len(self.younger) > self._most:
            self.older, self.younger = self.younger, set()

    def add_new(self, keys: Iterable[bytes]) -> None:
        """The same for the first time: only some, for most links of a broad crawl are named once."""
        if len(self.younger) < self._most // _NEW_SHARE:
            self.add(keys)


@dataclass(slots=True, eq=False)
class RefusedUrls:
    """What was refused since the last commit: counted by reason; seeds are kept by name, for the operator."""

    counts: Counter[str] = field(default_factory=Counter)
    _seeds: list[tuple[str, Reason]] = field(default_factory=list)

    def add(self, reason: Reason, url: str, flags: int) -> None:
        """Count a refusal."""
        self.counts[reason] += 1
        if ROW_KINDS[flags].is_seed and len(self._seeds) < _MAX_SEEDS:
            self._seeds.append((url, reason))

    def take(self) -> Counter[str]:
        """The counts by reason since the last call."""
        counts, self.counts = self.counts, Counter()
        return counts

    def take_seeds(self) -> list[tuple[str, Reason]]:
        """Seeds that were refused since the last call, by URL; of very many the first."""
        seeds, self._seeds = self._seeds, []
        return seeds


def _decided_key(row: QueuedPage, reason: str) -> bytes:
    """The key of the record of a row's fate: the page's, unless the row was refused for the site that named it.

    What is refused for another site may still be named by the host itself, and a requisite that is refused as a page.
    """
    return row.key if reason in _OF_THE_ROW else row.page_key


class HostOwnership:
    """Whose a host is that a page may name: all are ours in a crawl of one process. Workers override what differs."""

    sole = True  # there is no other worker
    doubt_seconds = 0.0  # by so much the clock of the process that stored a host's state may have been behind ours

    def __init__(self, unsure_until: float = 0.0) -> None:
        """``unsure_until``: as the function of that name says."""
        self._unsure_before = unsure_until

    def mine(self, host: str) -> bool:
        """Whether this worker decides about the host now."""
        return True

    def may_ask(self, host: str) -> bool:
        """Whether an answer will surely come before another worker may ask the host."""
        return self.mine(host)

    def ask_until(self, host: str) -> float | None:
        """Until when (seconds since boot) an answer must be complete; None: it may take as long as it takes."""
        return None

    def unsure_until(self, host: str) -> float:
        """Before this moment (epoch seconds) the host may have been asked without a trace; 0: it was not."""
        return self._unsure_before

    def send(self, host: str, message: Message) -> None:
        """Write to the worker that decides about the host; it arrives after this commit, maybe twice."""
        raise AssertionError(f"no other worker decides about {host}")

    def add_messages(self, changes: Changes) -> None:
        """Put what is written to other workers, and not on its way by itself, into the changes of the next commit."""


ChangedPage = tuple["Address", float]
"""A known page that has changed, with the moment (epoch seconds)."""


class Exchange:
    """How what is found reaches the frontier that decides about it: here the only one. Workers override what differs.

    All may raise StorageError.
    """

    keeps_delivered = False
    """While a backup of all workers is made, rows stay of messages that others have acknowledged."""

    def take(self, found: Iterable[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        """Queue what was found, or send it to whose it is; how many were new here."""
        return frontier.admission.add(found, now)

    def changed(self, pages: Iterable[ChangedPage], frontier: Frontier, now: float) -> int:
        """Take the news that known pages have changed, or hand it on; how many are believed here."""
        return frontier.changed(pages, now)

    def settle(self) -> None:
        """The commit that holds what came of the messages is applied."""


def unsure_until(store: FrontierStore, started_at: float, *, clean_start: bool) -> float:
    """Until then an earlier process may have asked any host without a trace in the store; 0.0 when none has.

    Kept, since a clean start may follow soon after an unclean one.
    """
    if clean_start:
        return min(float(store.fact(_UNSURE_FACT) or 0.0), started_at)  # the clock may have been set back since
    store.apply(Changes(facts=[(_UNSURE_FACT, repr(started_at).encode())]))
    return started_at


class FrontierState:
    """Shared by what takes URLs in, leases them and ends leases; ``now`` is epoch seconds everywhere."""

    def __init__(self, hosts: HostTable, robots: RobotsCache, waiting: Waiting = NO_MARK) -> None:
        """``waiting`` is entered while the store is waited for at the end of a page."""
        self._waiting = waiting
        self.hosts = hosts
        self.store, self.workbench, self.ownership = hosts.store, hosts.workbench, hosts.ownership
        self.robots = robots
        self.recent = RecentKeys()
        self.refused = RefusedUrls()
        self.leased = 0
        self.announced = 0  # known pages that were believed to have changed, since it was last counted
        self.moved: list[ScopeWidened] = []  # by what was queued here, since it was last sent to others
        self.changes = Changes()
        self._arrival = 0

    def next_arrival(self, host: Host, now: float) -> int:
        """A number that orders rows by when they came: ascending, and of one host unique whatever the clock says.

        A clock may have been set back since an earlier run, or be another machine's: the host's state, which is stored
        with its rows, remembers the last. Two rows with one place in a queue would be one.
        """
        last = self._arrival if self._arrival > host.arrival else host.arrival  # once a link
        moment = int(now * 1_000_000)
        self._arrival = host.arrival = moment if moment > last else last + 1
        return self._arrival

    def skip_arrivals(self, host: Host, count: int) -> None:
        """The next ``count`` numbers behind the host's last are taken."""
        host.arrival += count
        self._arrival = host.arrival

    def other_scheme_waits(self, host: Host, scheme: str) -> bool:
        """Whether pages of the other of http and https wait, whose robots.txt was never asked for."""
        other = "http" if scheme == "https" else "https"
        if host.robots_until(other):
            return False
        rows = self.store.head(host.name, _LOOKED_THROUGH)
        return any(row.url.startswith(other + ":") and row.arrival not in host.taken for row in rows)

    def go_on(self, host: Host) -> None:
        """Let a host that was held for another's answer, or for its door, go on at its own pace."""
        host.held_until, host.at_door = 0.0, False
        if host.stage in (Stage.WAITING, Stage.IDLE):
            work = host.waiting_urls > 0 and not host.state
            self.workbench.wait(host, max(host.pace_free, host.rest_until), work=work)

    def decide(self, row: QueuedPage, host: Host, record: PageRecord, *, apart: bool = False) -> None:
        """The fate of a row that was taken; it leaves its queue with the next commit. ``apart``: not the page's."""
        changes = self.changes
        changes.removed.append(row)
        own = apart or not row.flags  # the row's key and the page's are one
        changes.pages.append((row.key if own else _decided_key(row, record.reason), record))
        self.hosts.dirty[host.name] = host

    def queue_again(self, row: QueuedPage, host: Host, now: float, **changed: Any) -> None:
        """A row that was taken goes back behind its equals, with the next commit and these fields changed."""
        self.changes.removed.append(row)
        self.changes.queued.append(row._replace(arrival=self.next_arrival(host, now), **changed))
        host.unstored += 1
        self.hosts.waits(host, 1)

    def take(self, row: QueuedPage, host: Host) -> None:
        """A row is leased, or waits for the next commit: it is handed out no more."""
        host.taken.add(row.arrival)
        self.hosts.waits(host, -1)

    def store_now(self, host: Host) -> None:
        """Store what must survive a crash before the next commit; without room it waits for that."""
        states = [(host.name, host.pack())]
        name = host_name(host.name)
        if (
            name != host.name and (first := self.hosts.dirty.get(name)) is not None
        ):  # that this port is one of its name's
            states.append((name, first.pack()))
        with suppress(StorageError), self._waiting:
            self.store.apply(Changes(hosts=states))

    # --- commit ---------------------------------------------------------------------------------

    @property
    def uncommitted(self) -> int:
        """Rows that were decided and hosts that changed since the last commit: what the next one encodes."""
        return len(self.changes.removed) + len(self.hosts.dirty)

    def take_changes(self) -> Changes:
        """Everything decided since the last call, to be applied once its archive bytes are durable."""
        changes, self.changes = self.changes, Changes()
        changes.due.extend(self.hosts.unlisted)
        self.hosts.unlisted.clear()
        self.ownership.add_messages(changes)
        return changes

    def apply(self, changes: Changes, facts: list[tuple[str, bytes]]) -> None:
        """Commit ``changes`` and ``facts`` atomically. On StorageError nothing has changed; call again later."""
        self._settle(changes, 1)
        dirty = self.hosts.dirty.copy()
        # What has ended since these changes were taken is in the next commit: until then its host is not forgotten.
        self.hosts.dirty.clear()
        for row in (*self.changes.removed, *self.changes.queued):
            if row.host in dirty:
                self.hosts.dirty[row.host] = dirty[row.host]
        for origin, _ in self.changes.robots:
            if (name := origin.partition("://")[2]) in dirty:
                self.hosts.dirty[name] = dirty[name]
        on_disk, moved = self.hosts.on_disk, changes.due
        changes.hosts, changes.due = [], [*moved]
        for name, host in dirty.items():
            changes.hosts.append((name, host.pack()))
            if not host.on_disk and host.listed != (work := host.rows > 0):
                changes.due.append((name, IN_MEMORY if host.listed else None, IN_MEMORY if work else None))
        decided = changes.facts
        if changes or facts:
            changes.facts = [*decided, *facts, self.hosts.clock.fact()]
        try:
            on_disk.apply(changes, on_disk.counts, dirty.values())
            for origin, record in changes.robots:
                self.robots.stored(origin, record)
        except StorageError:
            self._settle(changes, -1)
            changes.due = moved
            self.hosts.dirty.update(dirty)
            changes.facts = decided
            self.take_back(changes)
            raise

    def take_back(self, changes: Changes) -> None:
        """Put changes that could not be committed in front of those that came since."""
        later, self.changes = self.changes, changes
        for each in fields(Changes):
            getattr(changes, each.name).extend(getattr(later, each.name))

    def _settle(self, changes: Changes, sign: int) -> None:
        for row in changes.removed:
            host = self.hosts.of(row.host)
            host.rows -= sign
            if sign > 0:
                host.taken.discard(row.arrival)
            else:
                host.taken.add(row.arrival)
            self.hosts.dirty[host.name] = host
        # Of these a newer record has come since: a document beside robots.txt has been answered.
        later = {origin for origin, _ in self.changes.robots}
        for origin, _ in changes.robots:
            if origin in later:
                continue
            scheme, _, name = origin.partition("://")
            host = self.hosts.of(name)
            unstored = host.robots_unstored
            host.robots_unstored = (unstored - {scheme} or EMPTY) if sign > 0 else unstored | {scheme}
            self.hosts.dirty[name] = host
        for row in changes.queued:
            host = self.hosts.of(row.host)
            host.rows += sign
            host.unstored -= sign
            self.hosts.dirty[host.name] = host


@dataclass(slots=True, eq=False, repr=False)
class Refusals:
    """Rows of one host's queue that one turn refuses; ``store`` makes one atomic change of them."""

    state: FrontierState
    host: Host
    put_off: bool = False  # whether other rows wait for the next commit
    robots: list[QueuedPage] = field(default_factory=list)  # refused, of robots.txt files that other hosts wait for
    removed: list[QueuedPage] = field(default_factory=list)
    _queued: list[QueuedPage] = field(default_factory=list)
    _pages: list[tuple[bytes, PageRecord]] = field(default_factory=list)
    _refused: list[tuple[QueuedPage, Reason]] = field(default_factory=list)
    _kept: int = 0
    _others: dict[str, bool] = field(default_factory=dict)  # unreachable scheme -> whether there is work over the other

    def refuse(self, row: QueuedPage, reason: Reason, now: float) -> None:
        """Refuse a row; a page that was to be rendered keeps the record of its plain answer."""
        self.removed.append(row)
        self._refused.append((row, reason))
        if row.kind.is_robots:
            self.robots.append(row)
        if not row.kind.is_render:
            self._pages.append((_decided_key(row, reason), self._record(row, reason, now)))

    def _record(self, row: QueuedPage, reason: Reason, now: float) -> PageRecord:
        """What is known of the page from now on: what its visits have shown, or that it waits for its first.

        Else no recrawl would choose it when it is allowed.
        """
        known = self.state.store.page(row.key, row.host) if row.kind.is_recrawl else None
        history = History() if known is None else History.unpack(known.history)
        if known is None or not history.visits:
            return unseen(row, PageRecord(row.url, reason, 0, now), known)
        history = history._replace(queued_at=0.0)
        return known._replace(reason=reason, fetched_at=now, history=history.pack())

    def leave_plain(self, row: QueuedPage) -> None:
        """Drop a row whose page keeps its record: it is not rendered, or the host itself has named it meanwhile."""
        self.removed.append(row)

    def refuse_by_rules(self, row: QueuedPage, reason: Reason, now: float) -> None:
        """Refuse by robots.txt; rules that are not committed yet and what they refuse are committed together."""
        state, host = self.state, self.host
        if row.url.partition(":")[0] not in host.robots_unstored:
            self.refuse(row, reason, now)
            return
        state.refused.add(reason, row.url, row.flags)
        state.take(row, host)
        if row.kind.is_render:
            state.changes.removed.append(row)
            state.hosts.dirty[host.name] = host
        else:
            state.decide(row, host, self._record(row, reason, now))
        if row.kind.is_robots:
            self.robots.append(row)
        self.put_off = True

    def others_first(self, scheme: str, now: float) -> bool:
        """Whether pages of the other of http and https wait while this scheme cannot be reached."""
        if scheme not in self._others:
            good = self.host.other_scheme_good(scheme, now)
            self._others[scheme] = good or self.state.other_scheme_waits(self.host, scheme)
        return self._others[scheme]

    def put_last(self, row: QueuedPage, now: float) -> None:
        """A page whose scheme cannot be reached goes behind those of the scheme that can; in the end it is refused."""
        lately = now - UNSTORED_WAIT_SECONDS <= row.arrival / 1_000_000 < LATER_RUN / 1_000_000
        if row.tries > 0 and row.priority == LAST and lately:
            self.put_off = True  # once a commit: its scheme has some time to come back
            return
        if row.tries + 1 >= FAILURES[Reason.ROBOTS_UNREACHABLE].max_tries:
            self.refuse(row, Reason.ROBOTS_UNREACHABLE, now)
            return
        self.removed.append(row)
        arrival = self.state.next_arrival(self.host, now)
        self._queued.append(row._replace(priority=LAST, arrival=arrival, tries=row.tries + 1))

    def keep(self, row: QueuedPage) -> None:
        """Nothing can be rendered in this run: it stays queued for the next, where no other row waits behind it."""
        self.removed.append(row)
        self._queued.append(row._replace(priority=LAST, arrival=row.arrival + LATER_RUN))
        self._kept += 1

    def store(self) -> int:
        """Decide all of it; how many rows were kept. On StorageError nothing has changed."""
        state, host, more = self.state, self.host, len(self._queued) - len(self.removed)
        host.rows += more
        states = [(host.name, host.pack())]
        try:
            state.store.apply(Changes(queued=self._queued, removed=self.removed, pages=self._pages, hosts=states))
        except StorageError:
            host.rows -= more
            raise
        state.hosts.waits(host, more - self._kept)
        state.hosts.dirty[host.name] = host
        host.kept += self._kept
        for row, reason in self._refused:
            state.refused.add(reason, row.url, row.flags)
        return self._kept
