"""Rows that a host's turn refuses: decided in the store at once, since no capture belongs to them.

A row that was leased waits for the next commit, together with its capture. One that is refused has no capture: to let
it stand among the taken ones until a commit would make every look at a long queue longer than the look before.
"""

from __future__ import annotations

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.learned.revisits import unseen
from crawlerproject.frontier.state import FrontierState, decided_key
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.backoff import FAILURES
from crawlerproject.rules.revisits.history import History
from crawlerproject.rules.url.priority import LAST
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage

# A row that the next commit stores cannot be leased before: look again after a commit (COMMIT_SECONDS) and a bit.
UNSTORED_WAIT_SECONDS = 1.3
# Added to the arrival of a row that a later run shall have: it sorts behind all others of its host. Microseconds since
# the epoch reach this in 146,000 years.
_KEPT = 1 << 62


def is_kept(row: QueuedPage) -> bool:
    """Whether the row was kept for a later run, in this one or an earlier one: nothing but such rows comes after it."""
    return row.arrival >= _KEPT


def _was_put_last(row: QueuedPage, since: float) -> bool:
    """Whether the row was put behind all others at ``since`` (epoch seconds) or later."""
    return row.tries > 0 and row.priority == LAST and since <= row.arrival / 1_000_000 < _KEPT / 1_000_000


class Refusals:
    """Rows of one host's queue, in one turn; ``store`` makes one atomic change of them."""

    __slots__ = (
        "_host",
        "_kept",
        "_others",
        "_pages",
        "_queued",
        "_refused",
        "_removed",
        "_state",
        "put_off",
        "robots",
    )

    def __init__(self, state: FrontierState, host: Host) -> None:
        self._state = state
        self._host = host
        self._removed: list[QueuedPage] = []
        self._queued: list[QueuedPage] = []
        self._pages: list[tuple[bytes, PageRecord]] = []
        self._refused: list[tuple[QueuedPage, Reason]] = []
        self._kept = 0
        self.put_off = False  # whether other rows wait for the next commit
        self.robots: list[QueuedPage] = []  # refused rows of robots.txt files that other hosts wait for
        self._others: dict[str, bool] = {}  # scheme that cannot be reached -> whether there is work over the other

    def __bool__(self) -> bool:
        return bool(self._removed)

    def refuse(self, row: QueuedPage, reason: Reason, now: float) -> None:
        """Refuse a row; a page that was to be rendered keeps the record of its plain answer."""
        self._removed.append(row)
        self._refused.append((row, reason))
        if row.kind.is_robots:
            self.robots.append(row)
        if not row.kind.is_render:
            self._pages.append((decided_key(row, reason), self._record(row, reason, now)))

    def _record(self, row: QueuedPage, reason: Reason, now: float) -> PageRecord:
        """What is known of the page from now on: what its visits have shown, or that it waits for its first.

        Else no recrawl would choose it when it is allowed.
        """
        known = self._state.store.page(row.key, row.host) if row.kind.is_recrawl else None
        history = History() if known is None else History.unpack(known.history)
        if known is None or not history.visits:
            return unseen(row, PageRecord(row.url, reason, 0, now), known)
        history = history._replace(queued_at=0.0)
        return known._replace(reason=reason, fetched_at=now, history=history.pack())

    def leave_plain(self, row: QueuedPage) -> None:
        """Drop a row whose page keeps its record: it is not rendered, or the host itself has named it meanwhile."""
        self._removed.append(row)

    def refuse_by_rules(self, row: QueuedPage, now: float) -> None:
        """Refuse by robots.txt; rules that are not committed yet and what they refuse are committed together."""
        state, host = self._state, self._host
        if row.url.partition(":")[0] not in host.robots_unstored:
            self.refuse(row, Reason.ROBOTS, now)
            return
        state.refused.add(Reason.ROBOTS, row.url, row.flags)
        state.take(row, host)
        if row.kind.is_render:
            state.leave_plain(row, host)
        else:
            state.decide(row, host, self._record(row, Reason.ROBOTS, now))
        if row.kind.is_robots:
            self.robots.append(row)
        self.put_off = True

    def others_first(self, scheme: str, now: float) -> bool:
        """Whether pages of the other of http and https wait while this scheme cannot be reached."""
        if scheme not in self._others:
            good = self._host.other_scheme_good(scheme, now)
            self._others[scheme] = good or self._state.other_scheme_waits(self._host, scheme)
        return self._others[scheme]

    def put_last(self, row: QueuedPage, now: float) -> None:
        """A page whose scheme cannot be reached goes behind those of the scheme that can; in the end it is refused."""
        if _was_put_last(row, now - UNSTORED_WAIT_SECONDS):
            self.put_off = True  # once a commit: its scheme has some time to come back
            return
        if row.tries + 1 >= FAILURES[Reason.ROBOTS_UNREACHABLE].max_tries:
            self.refuse(row, Reason.ROBOTS_UNREACHABLE, now)
            return
        self._removed.append(row)
        arrival = self._state.next_arrival(self._host, now)
        self._queued.append(row._replace(priority=LAST, arrival=arrival, tries=row.tries + 1))

    def keep(self, row: QueuedPage) -> None:
        """Nothing can be rendered in this run: it stays queued for the next, where no other row waits behind it."""
        self._removed.append(row)
        self._queued.append(row._replace(priority=LAST, arrival=row.arrival + _KEPT))
        self._kept += 1

    def store(self) -> int:
        """Decide all of it; how many rows were kept. On StorageError nothing has changed."""
        if self._removed:
            changes = Changes(queued=self._queued, removed=self._removed, pages=self._pages)
            self._state.decide_now(self._host, changes)
            self._state.hosts.waits(self._host, -self._kept)
            self._host.kept += self._kept
            for row, reason in self._refused:
                self._state.refused.add(reason, row.url, row.flags)
        return self._kept
