"""Out of the frontier: whose turn it is, and with which page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

from crawlerproject.errors import StorageError
from crawlerproject.frontier.discovered import caused_externally
from crawlerproject.frontier.hosts.host import EMPTY, Host
from crawlerproject.frontier.hosts.ip_clocks import UNRESOLVED
from crawlerproject.frontier.hosts.suspensions import LEFT_ALONE, HostSuspensions
from crawlerproject.frontier.learned.renders import LINE_SECONDS, Renders
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.refusals import UNSTORED_WAIT_SECONDS, Refusals, is_kept
from crawlerproject.frontier.robots_responses import RobotsResponses
from crawlerproject.frontier.state import FrontierState
from crawlerproject.frontier.subrequests import Subrequest, Subrequests
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import (
    FLAG_ROBOTS,
    FLAG_SUBREQUEST,
    ROW_KINDS,
    RowKind,
)
from crawlerproject.rules.url.priority import LAST_EXTERNAL, REQUISITE_PLACES
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import FrontierReader, QueuedPage

# Rows of one host that one turn looks at before others get theirs: what is refused of them is one change of the store.
# A row costs some 20 µs, and at most 100 against the worst robots.txt.
_ROWS_PER_TURN = 64
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


class LeaseIssuer:
    """Leases: robots.txt first, then the host's queue in its order."""

    def __init__(
        self,
        state: FrontierState,
        filters: UrlFilters,
        renders: Renders,
        embeds: Subrequests,
        robots_responses: RobotsResponses,
    ) -> None:
        self._state = state
        self._hosts = state.hosts
        self._embeds = embeds
        self._filters = filters
        self._renders = renders
        self._robots_responses = robots_responses

    def next(self, now: float, enough: Callable[[], bool] = never) -> Lease | Lookup | None:
        """The next thing to do for a host that is free now; None when every host waits. StorageError: not now.

        ``enough`` is asked after each turn that led to nothing: True ends the search though hosts may be free.
        """
        while (turn := self._state.workbench.take(now)) is not None:
            if not turn.address:
                if self._hosts.suspensions and self._held(turn.host):
                    self._embeds.refuse_all(turn.host, LEFT_ALONE[turn.host.state])
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
        try:
            return self._lease_of(host, address, now)
        except StorageError:  # its queue cannot be read now: the host waits, and is asked another time
            self._state.workbench.release(host, now, now + UNSTORED_WAIT_SECONDS, work=True)
            raise

    def _lease_of(self, host: Host, address: str, now: float) -> Lease | None:
        if (self._hosts.suspensions and self._held(host)) or not self._state.ownership.may_ask(host.name) or host.state:
            self._embeds.refuse_all(host, LEFT_ALONE[host.state] if host.state else Reason.RENDER_PACE)
            again = now if host.state else now + _LEAVING_SECONDS
            self._state.workbench.release(host, now, again, work=not host.state)
            return None
        if host.pace_free > now:  # a robots.txt asked for a longer pause while the host stood in its address's line
            self._state.workbench.release(host, now, host.pace_free, work=True)
            return None
        if host.at_door:
            host.at_door, host.held_until = False, 0.0
        if host.embeds and (lease := self._embed(host, address, now, strange=False)) is not None:
            return lease
        down = Refusals(self._state, host)
        act = self._look(host, address, now, down)
        self._renders.kept += down.store()
        for row in down.robots:
            self._robots_responses.refused(row, now)
        return act()

    def _held(self, host: Host) -> bool:
        """Whether the host is paused or has had its share, so that it is left with its queue."""
        why = self._hosts.suspensions.why(host)
        if not why or (
            self._filters.fetches_requisites and _is_spared(host, self._hosts.suspensions, self._state.store)
        ):
            return False
        if not host.state:
            self._hosts.hold(host, why)
        return True

    def _look(self, host: Host, address: str, now: float, down: Refusals) -> Callable[[], Lease | None]:
        """The action of this turn, to be called once the rows that it refuses are stored.

        What only other sites led to comes behind all of the host's own: sub-requests of their pages, then rows.
        """
        renders = self._renders
        # Whether rows wait for the browser, all that are left wait for another run, or strangers' rows wait.
        busy = kept = behind = False
        for row in self._rows(host, now):
            kind = ROW_KINDS[row.flags]
            if (host.embeds or host.door.until > now) and caused_externally(row):
                behind = True
            elif kind.is_render and (renders.closed or renders.full or host.rendering):
                kept = bool(renders.closed) and is_kept(row)
                if kept:
                    break
                if renders.closed:
                    down.keep(row)
                busy = True
            elif kind.may_be_known and self._is_known(row):
                down.leave_plain(row)
            elif (refusal := self._filters.refusal_again(row, now)) is not None:
                down.refuse(row, refusal, now)
            elif (act := self._by_robots(row, kind, host, address, now, down)) is not None:
                if act:
                    return act
            elif kind.is_render and renders.given_up(row.url, host.name):
                down.leave_plain(row)
            else:
                return partial(self._handed_out, row, host, address, now)
        if host.embeds and not down and (lease := self._embed(host, address, now, strange=True)) is not None:
            return lambda: lease
        if down and not self._hosts.ownership.crowded():
            return partial(self._release, host, now, now + _BETWEEN_SECONDS)  # there may be more
        if down or down.put_off:
            return partial(self._release, host, now, now + UNSTORED_WAIT_SECONDS)
        if busy:
            return partial(self._line_up, host, now)
        return (
            partial(self._at_door, host, now)
            if behind or host.embeds
            else partial(self._nothing_now, host, now, kept=kept)
        )

    def _by_robots(
        self, row: QueuedPage, kind: RowKind, host: Host, address: str, now: float, down: Refusals
    ) -> Callable[[], Lease | None] | Literal[False] | None:
        """The action that the row's robots.txt calls for; None when the row may be fetched, False when it is refused.

        A redirected robots.txt needs no other one's leave when it is its host's own, or requested on its behalf.
        """
        if kind.is_robots and (
            row.url.partition("://")[2] == f"{row.host}/robots.txt" or row.note.partition("://")[2] == row.host
        ):
            return None
        scheme = row.url.partition(":")[0]
        until = host.robots_until(scheme)
        if -until > now and kind.is_robots:
            down.refuse(row, Reason.ROBOTS_UNREACHABLE, now)
            return False
        if -until > now and down.others_first(scheme, now):
            down.put_last(row, now)
            return False
        if until <= now:
            return partial(self._robots_first, scheme, host, address, now)
        rules = self._state.robots.rules(f"{scheme}://{host.name}")
        if host.left_alone or not rules.allowed(row.url):
            down.refuse_by_rules(row, now)
            return False
        if rules.visit_times and (closed := rules.seconds_until_open(now)):
            return partial(self._stay_away, host, now, now + closed)
        return None

    def _stay_away(self, host: Host, now: float, until: float) -> None:
        """robots.txt names the hours of visits."""
        host.closed_until = until
        self._state.workbench.release(host, now, until, work=True)

    def _embed(self, host: Host, address: str, now: float, *, strange: bool) -> Lease | None:
        """The turn's lease when a page in the browser waits for it: for its sub-request, or for robots.txt first."""
        while (embed := self._embeds.next(host, now, strange=strange)) is not None:
            scheme = embed.address.scheme
            until = host.robots_until(scheme)
            if -until > now:
                self._embeds.refuse(embed, Reason.ROBOTS_UNREACHABLE)
            elif until <= now:
                return self._robots_first(scheme, host, address, now)
            elif self._state.robots.rules(f"{scheme}://{host.name}").seconds_until_open(now):
                self._embeds.refuse(embed, Reason.RENDER_PACE)
            elif self._embeds.take(embed):
                row = _embed_row(embed, host, self._state.next_arrival(host, now))
                lease = self._lent(row, host, address, now, stored=False)
                lease.embed = embed
                return lease
        return None

    def _rows(self, host: Host, now: float) -> Iterator[QueuedPage]:
        """Rows in order that are not leased: the first, which nearly every turn is about, then some that follow."""
        if self._filters.fetches_requisites and self._hosts.suspensions and self._hosts.suspensions.why(host):
            yield from _requisite_rows(host, self._state.store)  # it has had its pages
            return
        taken, store = host.taken, self._state.store
        before = len(taken)
        first = next((row for row in store.head(host.name, before + 1) if row.arrival not in taken), None)
        if first is None:
            return
        yield first
        rows = store.head(host.name, before + _ROWS_PER_TURN)
        if host.door.until > now and len(rows) == before + _ROWS_PER_TURN:  # the host's own may come after strangers'
            last = max((rows[-1].priority, rows[-1].arrival), (LAST_EXTERNAL, _LAST_ARRIVAL))
            rows += store.head(host.name, before + _ROWS_PER_TURN, last)
        for row in rows:
            if row.arrival not in taken and row.arrival != first.arrival:
                yield row

    def _nothing_now(self, host: Host, now: float, *, kept: bool) -> None:
        """Nothing that is stored waits for this run. The rows themselves are the truth, whatever was counted."""
        left = host.rows - len(host.taken)
        if kept:
            self._hosts.waits(host, host.kept - left)
            self._renders.kept += left - host.kept
            host.kept = left
        elif not host.unstored and host.waiting_urls:
            self._hosts.waits(host, -host.waiting_urls)
            host.rows, host.kept = len(host.taken), 0
            self._hosts.dirty[host.name] = host
        self._release(host, now, now + UNSTORED_WAIT_SECONDS if host.unstored else now)

    def _at_door(self, host: Host, now: float) -> None:
        """What is left here is strangers', and waits until the host's door opens or a row of its own comes."""
        until = max(host.door.until, now)
        host.at_door = until > now
        if host.unstored:
            until = min(until, now + UNSTORED_WAIT_SECONDS)
        elif host.at_door:
            host.held_until = until
        self._release(host, now, until)

    def _release(self, host: Host, now: float, again: float) -> None:
        """End the turn without a request; the host is looked at again at ``again``."""
        self._state.workbench.release(host, now, again, work=host.waiting_urls > 0)

    def _is_known(self, row: QueuedPage) -> bool:
        """Whether the host itself has named a stranger's URL meanwhile, or a requisite is named as a page, or known."""
        if row.kind.is_render or not self._state.store.known([row.page_key], [row.host])[0]:
            return False
        if not row.kind.is_requisite:
            return True
        record = self._state.store.page(row.page_key, row.host)
        return record is None or record.reason != Reason.LOST  # else it waits for the sake of its lost capture

    def _line_up(self, host: Host, now: float) -> None:
        """All that is left here waits for the browser, which is busy, or for the host's page that is in it."""
        if not host.rendering:
            self._renders.line_up(host)
        again = now + LINE_SECONDS
        if host.embeds:  # they are strangers', at its door
            again = max(now, min(again, host.door.until))
        self._state.workbench.release(host, now, again, work=True)

    def _robots_first(self, scheme: str, host: Host, address: str, now: float) -> Lease:
        row = robots_row(host, scheme, self._state.next_arrival(host, now))
        return self._lent(row, host, address, now, stored=False)

    def _handed_out(self, row: QueuedPage, host: Host, address: str, now: float) -> Lease:
        self._state.take(row, host)
        kind = row.kind
        if kind.ends_news:
            self._state.recent.add([row.page_key])
        lease = self._lent(row, host, address, now, stored=True)
        if kind.is_render:
            self._renders.started()
            host.rendering = True
            # It asks the host for nothing itself: its document is here, and what that loads has turns of its own.
            self._release(host, now, now)
        return lease

    def _lent(self, row: QueuedPage, host: Host, address: str, now: float, *, stored: bool) -> Lease:
        self._state.leased += 1
        return Lease(row, host, address, now, host.promise_seconds, stored)


def _is_spared(host: Host, suspensions: HostSuspensions, store: FrontierReader) -> bool:
    """Whether a host that has had its pages is asked for what they need."""
    return suspensions.only_pages(host) and next(_requisite_rows(host, store), None) is not None


def _requisite_rows(host: Host, store: FrontierReader) -> Iterator[QueuedPage]:
    """Rows of requisites that are not leased, wherever they stand in the queue."""
    for place in REQUISITE_PLACES:
        for row in store.head(host.name, len(host.taken) + _ROWS_PER_TURN, (place - 1, _LAST_ARRIVAL)):
            if row.priority != place:
                break
            if row.kind.is_requisite and row.arrival not in host.taken:
                yield row


def robots_row(host: Host, scheme: str, arrival: int) -> QueuedPage:
    """The row of a host's robots.txt, which no queue holds: the host's turn makes it up."""
    origin = f"{scheme}://{host.name}"
    url = origin + "/robots.txt"
    return QueuedPage(host.name, parse(url).key, url, 0, arrival, 0, "P", "", 0, FLAG_ROBOTS, origin)


def _embed_row(embed: Subrequest, host: Host, arrival: int) -> QueuedPage:
    """The row of a sub-request, which no queue holds either."""
    address, page = embed.address, embed.page
    depth, hop = page.depth + 1, "E"
    return QueuedPage(host.name, address.key, address.url, 0, arrival, depth, hop, page.url, flags=FLAG_SUBREQUEST)
