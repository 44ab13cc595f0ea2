"""Out of the frontier: whose turn it is, with which page, and which rows are refused on the way.

A row that is leased waits for the next commit, together with its capture. One that is refused has no capture: to let it
stand among the taken ones until a commit would make every look at a long queue longer than the look before. So what a
turn refuses is decided in the store at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from crawlerproject.errors import StorageError
from crawlerproject.frontier.frontier_state import LATER_RUN, UNSTORED_WAIT_SECONDS, FrontierState, Refusals
from crawlerproject.frontier.hosts.host import EMPTY, Host, HostState
from crawlerproject.frontier.hosts.ip_clocks import UNRESOLVED
from crawlerproject.frontier.hosts.table import LEFT_ALONE
from crawlerproject.frontier.learned.render_gains import LINE_SECONDS, Renders
from crawlerproject.frontier.passage import Lease, caused_externally
from crawlerproject.frontier.robots_responses import RobotsResponses
from crawlerproject.frontier.subrequests import Subrequests
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.address_turns import LONG_APART, LONGEST_APART_SECONDS
from crawlerproject.rules.row_kinds import (
    FLAG_ROBOTS,
    FLAG_SUBREQUEST,
    HOP_EMBED,
    HOP_PREREQUISITE,
    LAST_EXTERNAL,
    REQUISITE_PLACES,
    ROW_KINDS,
    RowKind,
)
from crawlerproject.rules.url.urls import host_key, parse
from crawlerproject.stores.protocols import QueuedPage

# Rows of one host that one turn looks at before others get theirs: what is refused of them is one change of the store.
# A row costs some 20 µs, and at most 100 against the worst robots.txt.
_ROWS_PER_TURN = 64
# Hosts that external requests held for long are remembered; then those whose time is over are forgotten (ours).
_MOST_LONG = 1_000
# Until the next such turn of the host: its queue takes a fifth of the processor at most, 100,000 rows eight seconds.
_BETWEEN_SECONDS = 0.005
_LAST_ARRIVAL = 2**64 - 1  # stores/row_codec.py
# A host that may not be asked now, since its partition is about to change hands, is looked at again after this.
_LEAVING_SECONDS = 1.0


def never() -> bool:
    """There is no end of time."""
    return False


class Lookup(NamedTuple):
    """A host whose name must be resolved before its turn."""

    host: Host


class _ByRobots(Enum):
    """What robots.txt says of a row."""

    ALLOWED = 0
    REFUSED = 1
    UNKNOWN = 2  # it must be fetched first
    CLOSED = 3  # it names the hours of visits


class LeaseIssuer:
    """Leases: robots.txt first, then the host's queue in its order."""

    def __init__(
        self,
        state: FrontierState,
        filters: UrlFilters,
        renders: Renders,
        subrequests: Subrequests,
        robots: RobotsResponses,
    ) -> None:
        self._state, self._hosts = state, state.hosts
        self._filters, self._renders, self._subrequests, self._robots_responses = filters, renders, subrequests, robots
        self._external_until: dict[str, float] = {}  # by host: ``external_took``

    def next(self, now: float, enough: Callable[[], bool] = never) -> Lease | Lookup | None:
        """The next thing to do for a host that is free now; None when every host waits. StorageError: not now.

        ``enough`` is asked after each turn that led to nothing: True ends the search though hosts may be free.
        """
        self._hosts.clock.now = now
        self._hosts.on_disk.tend(now)
        while (turn := self._state.workbench.take(now)) is not None:
            if not turn.address:
                if self._hosts.suspensions and self._held(turn.host):
                    self._subrequests.refuse_all(turn.host, LEFT_ALONE[turn.host.state])
                    self._state.workbench.turn_away(turn.host, now)
                    continue
                return Lookup(turn.host)
            lease = self._lease(turn.host, turn.address, now)
            if lease is not None or enough():
                return lease
        return None

    def address_for(self, host: Host, addresses: Sequence[str], now: float) -> str:
        """Of a host's addresses the least busy one that has not refused to connect; of all when all have."""
        left = [address for address in addresses if address not in host.dead_addresses]
        if not left:
            host.dead_addresses, left = EMPTY, list(addresses)
        host.spare_addresses = len(left) - 1
        return self._state.workbench.ips.least_busy(left, host.address, now)

    def looked_up(self, host: Host, address: str, address_until: float, now: float) -> Lease | None:
        """The resolver found the host; a lease when its address is free at once."""
        if self._state.workbench.hosts.get(host.name) is not host:
            return None  # it went to another worker meanwhile
        self._hosts.names.looked_up(host, found=not address.startswith(UNRESOLVED))
        turn = self._state.workbench.found(host, address, address_until, now)
        return self._lease(host, turn.address, now) if turn is not None else None

    def _lease(self, host: Host, address: str, now: float) -> Lease | None:
        """A lease for a host whose turn it is at its address; without one the turn is over."""
        bench = self._state.workbench
        try:
            held = bool(self._hosts.suspensions) and self._held(host)
            ownership = self._state.ownership
            if held or host.state or not (ownership.sole or ownership.may_ask(host.name)):
                if held or host.state or not self._state.ownership.mine(host.name):  # else its lease is soon renewed
                    self._subrequests.refuse_all(host, LEFT_ALONE[host.state] if host.state else Reason.RENDER_PACE)
                bench.release(host, now, now if host.state else now + _LEAVING_SECONDS, work=not host.state)
                return None
            if host.pace_free > now:  # a robots.txt asked for a longer pause while the host stood in its address's line
                bench.release(host, now, host.pace_free, work=True)
                return None
            if host.at_door:
                host.at_door, host.held_until = False, 0.0
            if host.subrequests and (lease := self._subrequest(host, address, now, external=False)) is not None:
                return lease
            return self._look(host, address, now)
        except StorageError:  # its queue cannot be read now: the host waits, and is asked another time
            bench.release(host, now, now + UNSTORED_WAIT_SECONDS, work=True)
            raise

    def _held(self, host: Host) -> bool:
        """Whether the host is paused or has had its share, so that it is left with its queue."""
        suspensions = self._hosts.suspensions
        why = suspensions.why(host)
        # A host that has had its pages is still asked for what they need.
        if why and self._filters.fetches_requisites and suspensions.only_pages(host):
            why = why if next(self._requisite_rows(host), None) is None else HostState.ASKED
        if why:
            self._hosts.hold(host, why)
        return bool(why)

    def _look(self, host: Host, address: str, now: float) -> Lease | None:
        """The turn's lease from the host's queue. The rows that it refuses are stored first.

        What only other sites led to comes behind all of the host's own: sub-requests of their pages, then rows.
        """
        renders, down = self._renders, Refusals(self._state, host)
        # Whether rows wait for the browser, all that are left wait for another run, or external rows wait.
        busy = kept = behind = False
        for row in self._rows(host, now):
            kind = ROW_KINDS[row.flags]
            if (host.subrequests or host.door.until > now) and caused_externally(row):
                behind = True
            elif kind.is_render and (renders.closed or renders.full or host.rendering):
                kept = bool(renders.closed) and row.arrival >= LATER_RUN  # nothing but such rows comes after it
                if kept:
                    break
                if renders.closed:
                    down.keep(row)
                busy = True
            elif kind.may_be_known and self._is_known(row):
                down.leave_plain(row)
            elif (refusal := self._filters.refusal_again(row, now)) is not None:
                down.refuse(row, refusal, now)
            elif (robots := self._by_robots(row, kind, host, now, down)) is _ByRobots.REFUSED:
                continue
            elif robots is _ByRobots.ALLOWED and kind.is_render and renders.given_up(row.url, host.name):
                down.leave_plain(row)
            else:
                if down.removed or down.robots:
                    self._decide(down, now)
                if robots is _ByRobots.ALLOWED:
                    return self._handed_out(row, host, address, now)
                if robots is _ByRobots.UNKNOWN:
                    return self._robots_first(row.url.partition(":")[0], host, address, now)
                self._state.workbench.release(host, now, host.closed_until, work=True)
                return None
        if (
            host.subrequests
            and not down.removed
            and (lease := self._subrequest(host, address, now, external=True)) is not None
        ):
            self._decide(down, now)
            return lease
        self._decide(down, now)
        if down.removed:
            again = now + _BETWEEN_SECONDS  # there may be more
        elif down.put_off:
            again = now + UNSTORED_WAIT_SECONDS
        elif busy:
            self._line_up(host, now)
            return None
        else:
            again = self._at_door(host, now) if behind or host.subrequests else self._nothing_now(host, now, kept=kept)
        self._state.workbench.release(host, now, again, work=host.waiting_urls > 0)
        return None

    def _decide(self, down: Refusals, now: float) -> None:
        """Store what the turn refuses. Raises StorageError: nothing has changed."""
        if down.removed:
            self._renders.kept += down.store()
        for row in down.robots:
            self._robots_responses.refused(row, now)

    def _by_robots(self, row: QueuedPage, kind: RowKind, host: Host, now: float, down: Refusals) -> _ByRobots:
        """What the row's robots.txt says of it.

        A redirected robots.txt needs no other one's leave when it is its host's own, or requested on its behalf.
        """
        if kind.is_robots and (
            row.url.partition("://")[2] == f"{row.host}/robots.txt" or row.note.partition("://")[2] == row.host
        ):
            return _ByRobots.ALLOWED
        scheme = row.url.partition(":")[0]
        until = host.robots_until(scheme)
        if -until > now and kind.is_robots:
            down.refuse(row, Reason.ROBOTS_UNREACHABLE, now)
            return _ByRobots.REFUSED
        if -until > now and down.others_first(scheme, now):
            down.put_last(row, now)
            return _ByRobots.REFUSED
        origin = f"{scheme}://{host.name}"
        # What another host waits for must not wait for our documents, which may be that one's.
        if until <= now and not (kind.is_robots and self._state.robots.knows(origin, now)):
            return _ByRobots.UNKNOWN
        rules = self._state.robots.rules(origin)
        if host.left_alone or kind.is_robots:  # words on use are not about the documents that have them
            refusal = Reason.ROBOTS if host.left_alone or not rules.allowed(row.url) else None
        else:
            refusal = self._state.robots.refusal(row.url, rules)
        if refusal is not None:
            down.refuse_by_rules(row, refusal, now)
            return _ByRobots.REFUSED
        if rules.visit_times and (closed := rules.seconds_until_open(now)):
            host.closed_until = now + closed
            return _ByRobots.CLOSED
        return _ByRobots.ALLOWED

    def _subrequest(self, host: Host, address: str, now: float, *, external: bool) -> Lease | None:
        """The turn's lease when a page in the browser waits for it: for its sub-request, or for robots.txt first."""
        while (subrequest := self._subrequests.next(host, now, external=external)) is not None:
            scheme = subrequest.address.scheme
            until = host.robots_until(scheme)
            if -until > now:
                self._subrequests.refuse(subrequest, Reason.ROBOTS_UNREACHABLE)
            elif until <= now:
                return self._robots_first(scheme, host, address, now)
            elif self._state.robots.rules(f"{scheme}://{host.name}").seconds_until_open(now):
                self._subrequests.refuse(subrequest, Reason.RENDER_PACE)
            elif self._subrequests.take(subrequest):
                # A row that no queue holds either.
                arrival, target, page = self._state.next_arrival(host, now), subrequest.address, subrequest.page
                place = (host.name, target.key, target.url, 0, arrival, page.depth + 1, HOP_EMBED, page.url)
                lease = self._lent(QueuedPage(*place, flags=FLAG_SUBREQUEST), host, address, now, stored=False)
                lease.subrequest = subrequest
                return lease
        return None

    def _rows(self, host: Host, now: float) -> Iterator[QueuedPage]:
        """Rows in order that are not leased: the first, which nearly every turn is about, then some that follow."""
        if self._filters.fetches_requisites and self._hosts.suspensions and self._hosts.suspensions.why(host):
            yield from self._requisite_rows(host)  # it has had its pages
            return
        taken, store = host.taken, self._state.store
        before, first = len(taken), -1
        for row in store.head(host.name, before + 1):
            if row.arrival not in taken:
                first = row.arrival
                yield row
                break
        if first < 0:
            return
        rows = store.head(host.name, before + _ROWS_PER_TURN)
        if host.door.until > now and len(rows) == before + _ROWS_PER_TURN:  # its own may come after external ones
            last = max((rows[-1].priority, rows[-1].arrival), (LAST_EXTERNAL, _LAST_ARRIVAL))
            rows += store.head(host.name, before + _ROWS_PER_TURN, last)
        for row in rows:
            if row.arrival not in taken and row.arrival != first:
                yield row

    def _requisite_rows(self, host: Host) -> Iterator[QueuedPage]:
        """Rows of requisites that are not leased, wherever they stand in the queue."""
        for place in REQUISITE_PLACES:
            after = (place - 1, _LAST_ARRIVAL)
            for row in self._state.store.head(host.name, len(host.taken) + _ROWS_PER_TURN, after):
                if row.priority != place:
                    break
                if row.kind.is_requisite and row.arrival not in host.taken:
                    yield row

    def _nothing_now(self, host: Host, now: float, *, kept: bool) -> float:
        """Nothing that is stored waits for this run: when the host is looked at again.

        The rows themselves are the truth, whatever was counted.
        """
        left = host.rows - len(host.taken)
        if kept:
            self._hosts.waits(host, host.kept - left)
            self._renders.kept += left - host.kept
            host.kept = left
        elif not host.unstored and host.waiting_urls:
            self._hosts.waits(host, -host.waiting_urls)
            host.rows, host.kept = len(host.taken), 0
            self._hosts.dirty[host.name] = host
        return now + UNSTORED_WAIT_SECONDS if host.unstored else now

    def _at_door(self, host: Host, now: float) -> float:
        """What is left here is external, and waits until the host's door opens or a row of its own comes."""
        until = max(host.door.until, now)
        host.at_door = until > now
        if host.unstored:
            return min(until, now + UNSTORED_WAIT_SECONDS)
        if host.at_door:
            host.held_until = until
        return until

    def _is_known(self, row: QueuedPage) -> bool:
        """Whether the host itself has named an external URL meanwhile, or a requisite is named as a page, or known."""
        if row.kind.is_render or not self._state.store.known([row.page_key], [row.host])[0]:
            return False
        if not row.kind.is_requisite:
            return True
        record = self._state.store.page(row.page_key, row.host)
        return record is None or record.reason != Reason.LOST  # else it waits for the sake of its lost capture

    def _line_up(self, host: Host, now: float) -> None:
        """All that is left here waits for the browser, which is busy, or for the host's page that is in it."""
        if not host.rendering:
            self._renders.line.append(host)
        again = now + LINE_SECONDS
        if host.subrequests:  # they are external, at its door
            again = max(now, min(again, host.door.until))
        self._state.workbench.release(host, now, again, work=True)

    def _robots_first(self, scheme: str, host: Host, address: str, now: float) -> Lease | None:
        origin = f"{scheme}://{host.name}"
        # Of a host that has never answered nothing is known: the store, which may be far away, is not asked.
        number, url = self._state.robots.next_document(origin, now) if host.fetched else (0, origin + "/robots.txt")
        if number and host_key(url) != host.name:
            until = self._robots_responses.elsewhere(host, origin, number, url, now)
            again = until if until > now else max(host.pace_free, now + _BETWEEN_SECONDS)
            self._state.workbench.release(host, now, again, work=host.waiting_urls > 0)
            return None
        row = robots_row(host, scheme, self._state.next_arrival(host, now), number, url)
        return self._lent(row, host, address, now, stored=False)

    def _handed_out(self, row: QueuedPage, host: Host, address: str, now: float) -> Lease:
        self._state.take(row, host)
        kind = ROW_KINDS[row.flags]
        if kind.ends_news:
            self._state.recent.add([row.page_key])
        lease = self._lent(row, host, address, now, stored=True)
        if self._external_until and not (kind.is_render or caused_externally(row)):
            self._close_door(host, now)
        if kind.is_render:
            self._renders.started()
            host.rendering = True
            # It asks the host for nothing itself: its document is here, and what that loads has turns of its own.
            self._state.workbench.release(host, now, now, work=host.waiting_urls > 0)
        return lease

    def external_took(self, host: Host, seconds: float, now: float) -> None:
        """What only other sites led to has held the host for long: no more of it is asked for many times as long.

        Unless nothing else waits in that time: what the host has of its own closes the door.
        """
        found = self._external_until
        found[host.name] = now + min(LONG_APART * seconds, LONGEST_APART_SECONDS)
        if len(found) > _MOST_LONG:
            self._external_until = {name: until for name, until in found.items() if until > now}

    def _close_door(self, host: Host, now: float) -> None:
        """A page of the host's own is asked for: what elsewhere is wanted of it may have held it up."""
        until = self._external_until.pop(host.name, 0.0)
        if until > max(now, host.door.until):
            host.door = host.door._replace(until=until)
            self._hosts.dirty[host.name] = host
            if host.subrequests:
                self._subrequests.door_closed(host)

    def _lent(self, row: QueuedPage, host: Host, address: str, now: float, *, stored: bool) -> Lease:
        self._state.leased += 1
        return Lease(row, host, address, now, host.promise_seconds, stored)


def robots_row(host: Host, scheme: str, arrival: int, number: int = 0, url: str = "") -> QueuedPage:
    """The row of a host's robots.txt, which no queue holds: the host's turn makes it up.

    Or of a document beside it, at ``url``: the hops of such a row say its ``number``.
    """
    origin = f"{scheme}://{host.name}"
    url = url or origin + "/robots.txt"
    hops = HOP_PREREQUISITE * (number + 1)
    return QueuedPage(host.name, parse(url).key, url, 0, arrival, 0, hops, "", 0, FLAG_ROBOTS, origin)
