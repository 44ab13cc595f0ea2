"""Out of the frontier: whose turn it is, and with which page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crawlerproject.errors import StorageError
from crawlerproject.frontier.books import Books
from crawlerproject.frontier.embeds import Embed, Embeds
from crawlerproject.frontier.gates import Gates
from crawlerproject.frontier.host import Host
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.renders import LINE_SECONDS, Renders
from crawlerproject.reasons import Reason
from crawlerproject.rules.backoff import FAILURES
from crawlerproject.rules.priority import LAST
from crawlerproject.rules.urls import parse
from crawlerproject.stores.protocols import FLAG_RENDER, FLAG_ROBOTS, PageRecord, QueuedPage

# Rows of one host that may be refused in a single turn before others get theirs (ours: 20 refusals cost 1 ms).
_REFUSALS_PER_TURN = 20
# A row that the next commit stores cannot be leased before: look again after a beat (COMMIT_SECONDS) and a bit.
UNSTORED_WAIT_SECONDS = 1.3
# Rows looked at for a page that needs no browser while the browser is busy: one read of the store.
_ROWS_BEHIND = 20
# A host that may not be asked now, since its partition is about to change hands, is looked at again after this.
_LEAVING_SECONDS = 1.0


class Lookup(NamedTuple):
    """A host whose name must be resolved before its turn."""

    host: Host


class Turns:
    """Leases: robots.txt first, then the host's queue in its order."""

    def __init__(self, books: Books, gates: Gates, renders: Renders, embeds: Embeds) -> None:
        self._books = books
        self._embeds = embeds
        self._gates = gates
        self._renders = renders

    def next(self, now: float) -> Lease | Lookup | None:
        """The next thing to do for a host that is free now; None when every host waits. StorageError: not now."""
        while (turn := self._books.workbench.take(now)) is not None:
            if not turn.address:
                return Lookup(turn.host)
            lease = self._lease(turn.host, turn.address, now)
            if lease is not None:
                return lease
        return None

    def address_for(self, host: Host, addresses: Sequence[str], now: float) -> str:
        """Of a host's addresses the least busy one that has not refused to connect; of all when all have."""
        left = [address for address in addresses if address not in host.dead_addresses]
        if not left:
            host.dead_addresses, left = frozenset(), list(addresses)
        host.spare_addresses = len(left) - 1
        return self._books.workbench.least_busy(left, host.address, now)

    def looked_up(self, host: Host, address: str, address_until: float, now: float) -> Lease | None:
        """The resolver found the host; a lease when its address is free at once."""
        if self._books.workbench.hosts.get(host.name) is not host:
            return None  # it went to another worker meanwhile
        turn = self._books.workbench.found(host, address, address_until, now)
        return self._lease(host, turn.address, now) if turn is not None else None

    def _lease(self, host: Host, address: str, now: float) -> Lease | None:
        try:
            return self._lease_of(host, address, now)
        except StorageError:  # its queue cannot be read now: the host waits, and is asked another time
            self._books.workbench.release(host, now, now + UNSTORED_WAIT_SECONDS, work=True)
            raise

    def _lease_of(self, host: Host, address: str, now: float) -> Lease | None:
        if host.given_up or not self._books.territory.may_ask(host.name):
            self._embeds.refuse_all(host, Reason.HOST_PARKED if host.given_up else Reason.RENDER_PACE)
            self._pass_by(host, now)
            return None
        if host.embeds and (lease := self._embed(host, address, now)) is not None:
            return lease
        for _ in range(_REFUSALS_PER_TURN):
            row = self._first_row(host)
            if row is not None and row.flags & FLAG_RENDER and self._no_place(host):
                if self._renders.closed:
                    self._keep_for_later(row, host)
                    continue
                row = self._row_without_browser(host)
                if row is None:
                    self._line_up(host, now)
                    return None
            if row is None:
                break
            refusal = self._gates.refusal_again(row, now)
            if refusal is None and not row.flags & FLAG_ROBOTS:
                scheme = row.url.partition(":")[0]
                until = host.robots_until(scheme)
                if -until > now and self._other_scheme(host, scheme, now):
                    self._let_others_first(row, host, now)
                    continue
                if until <= now:
                    robots = robots_row(host, scheme, self._books.next_arrival(host, now))
                    return self._handed_out(robots, host, address, now, stored=False)
                rules = self._books.robots.rules(f"{scheme}://{host.name}")
                if not rules.allowed(row.url):
                    refusal = Reason.ROBOTS
                elif rules.visit_times and (closed := rules.seconds_until_open(now)):
                    self._stay_away(host, now, now + closed)
                    return None
            if refusal is not None:
                self._refuse(row, host, refusal, now)
            elif row.flags & FLAG_RENDER and self._renders.given_up(row.url, host.name):
                self._books.leave_plain(row, host)
            else:
                return self._handed_out(row, host, address, now, stored=True)
        self._nothing_now(host, now, stored=row is not None or not host.unstored)
        return None

    def _no_place(self, host: Host) -> bool:
        """Whether no page of the host can go into the browser now; one at a time does."""
        return bool(self._renders.closed or self._renders.full or host.rendering)

    def _embed(self, host: Host, address: str, now: float) -> Lease | None:
        """This turn's lease when a page in the browser waits for it: for its sub-request, or for robots.txt first."""
        while (embed := self._embeds.next(host, now)) is not None:
            scheme = embed.address.scheme
            until = host.robots_until(scheme)
            if -until > now:
                self._embeds.refuse_first(host, Reason.ROBOTS_UNREACHABLE)
            elif until <= now:
                robots = robots_row(host, scheme, self._books.next_arrival(host, now))
                return self._handed_out(robots, host, address, now, stored=False)
            elif self._books.robots.rules(f"{scheme}://{host.name}").seconds_until_open(now):
                self._embeds.refuse_first(host, Reason.RENDER_PACE)
            elif self._embeds.take(host) is not None:
                row = _embed_row(embed, host, self._books.next_arrival(host, now))
                lease = self._handed_out(row, host, address, now, stored=False)
                lease.embed = embed
                return lease
        return None

    def _nothing_now(self, host: Host, now: float, *, stored: bool) -> None:
        """All that was looked at is refused, or what waits is not ``stored`` yet."""
        again = now if stored else now + UNSTORED_WAIT_SECONDS
        self._books.workbench.release(host, now, again, work=host.waiting_urls > 0)

    def _pass_by(self, host: Host, now: float) -> None:
        """It was given up while it stood in its address's line; else its partition goes, or may be gone."""
        again = now if host.given_up else now + _LEAVING_SECONDS
        self._books.workbench.release(host, now, again, work=not host.given_up)

    def _refuse(self, row: QueuedPage, host: Host, refusal: Reason, now: float) -> None:
        self._books.refused[refusal] += 1
        if row.flags & FLAG_RENDER:
            self._books.leave_plain(row, host)
        else:
            self._books.decide(row, host, PageRecord(row.url, refusal, 0, now))

    def _line_up(self, host: Host, now: float) -> None:
        """All that is left here waits for the browser, which is busy, or for the host's page that is in it."""
        if not host.rendering:
            self._renders.line_up(host)
        self._books.workbench.release(host, now, now if host.embeds else now + LINE_SECONDS, work=True)

    def _stay_away(self, host: Host, now: float, until: float) -> None:
        """robots.txt names the hours of visits."""
        host.closed_until = until
        self._books.workbench.release(host, now, until, work=True)

    def _other_scheme(self, host: Host, scheme: str, now: float) -> bool:
        """Whether there is something to ask over the other of http and https while this one cannot be reached."""
        return host.other_scheme_good(scheme, now) or self._books.other_scheme_waits(host, scheme)

    def _let_others_first(self, row: QueuedPage, host: Host, now: float) -> None:
        """A page whose scheme cannot be reached goes behind those of the scheme that can; in the end it is refused."""
        if row.tries + 1 >= FAILURES[Reason.ROBOTS_UNREACHABLE].max_tries:
            self._books.decide(row, host, PageRecord(row.url, Reason.ROBOTS_UNREACHABLE, 0, now))
            self._books.refused[Reason.ROBOTS_UNREACHABLE] += 1
            return
        host.taken.add(row.arrival)
        self._books.waits(host, -1)
        self._books.queue_again(row._replace(priority=LAST), host, now, replaces=row)
        self._books.dirty[host.name] = host

    def _first_row(self, host: Host) -> QueuedPage | None:
        taken = host.taken
        for row in self._books.store.head(host.name, len(taken) + 1):
            if row.arrival not in taken:
                return row
        if not host.unstored and host.waiting_urls:
            self._books.waits(host, -host.waiting_urls)
            host.rows = len(taken)  # counts of a torn run: the rows themselves are the truth
            self._books.dirty[host.name] = host
        return None

    def _keep_for_later(self, row: QueuedPage, host: Host) -> None:
        """Nothing can be rendered in this run: the row stays in its queue, untouched, for the next one."""
        host.taken.add(row.arrival)
        self._books.waits(host, -1)
        self._renders.kept += 1

    def _row_without_browser(self, host: Host) -> QueuedPage | None:
        taken = host.taken
        rows = self._books.store.head(host.name, len(taken) + _ROWS_BEHIND)
        return next((row for row in rows if row.arrival not in taken and not row.flags & FLAG_RENDER), None)

    def _handed_out(self, row: QueuedPage, host: Host, address: str, now: float, *, stored: bool) -> Lease:
        self._books.leased += 1
        if stored:
            host.taken.add(row.arrival)
            self._books.waits(host, -1)
        promised = max(host.delay_seconds, host.promised_seconds)
        if row.flags & FLAG_RENDER:
            self._renders.started()
            host.rendering = True
            # It asks the host for nothing itself: its document is here, and what that loads has turns of its own.
            self._books.workbench.release(host, now, now, work=host.waiting_urls > 0)
        return Lease(row, host, address, now, promised, stored)


def robots_row(host: Host, scheme: str, arrival: int) -> QueuedPage:
    """The row of a host's robots.txt, which no queue holds: the host's turn makes it up."""
    origin = f"{scheme}://{host.name}"
    url = origin + "/robots.txt"
    return QueuedPage(host.name, parse(url).key, url, 0, arrival, 0, "P", "", 0, FLAG_ROBOTS, origin)


def _embed_row(embed: Embed, host: Host, arrival: int) -> QueuedPage:
    """The row of a sub-request, which no queue holds either."""
    address, page = embed.address, embed.page
    return QueuedPage(host.name, address.key, address.url, 0, arrival, page.depth + 1, "E", page.url)
