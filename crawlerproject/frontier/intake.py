"""Into the frontier: a page's links, the operator's seeds, and what an earlier run left."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from crawlerproject.errors import StorageError
from crawlerproject.frontier.books import Books
from crawlerproject.frontier.found import Found
from crawlerproject.frontier.gates import Gates
from crawlerproject.frontier.host import Host
from crawlerproject.frontier.recent import RecentKeys
from crawlerproject.frontier.workbench import Stage
from crawlerproject.reasons import Reason
from crawlerproject.rules.priority import by_rank
from crawlerproject.stores.protocols import FLAG_HUB, FLAG_RECRAWL, FLAG_SEED, Changes, PageRecord, QueuedPage

logger = logging.getLogger(__name__)

LessImportant = Callable[[str], float | None]
"""The share of all that is linked that ranks below a URL; None when it is in no rank."""

SCOPE_FACT = "scope"
"""Host keys that redirects of seeds have added to the scope, a line each."""

_BEYOND_BUDGET = FLAG_SEED | FLAG_RECRAWL | FLAG_HUB


class Intake:
    """Queues what is new and allowed."""

    def __init__(self, books: Books, gates: Gates, less_important: LessImportant | None = None) -> None:
        self._books = books
        self._less_important = less_important
        self._gates = gates
        self._refused_adds: list[Found] = []  # found while the store had no room
        self._recent = RecentKeys()
        self._copies: dict[str, Host] = {}  # of hosts that are not in memory, while what was found is queued

    def take_up(self, names: Iterable[str]) -> None:
        """Take up hosts that have work, as a whole and at once."""
        for name in names:
            host = self._books.host(name)
            if not host.rows:  # counts of a torn run: the rows themselves are the truth
                host.rows = 1
            host.given_up = False
            self._books.waits(host, host.waiting_urls)
            self._books.workbench.add(host)

    def let_go(self, mine: Callable[[str], bool]) -> list[str]:
        """Forget hosts that are not ours any more; those in flight stay until they have ended, and are named."""
        books, bench = self._books, self._books.workbench
        gone = [host for name, host in bench.hosts.items() if not mine(name)]
        staying = []
        for host in gone:
            if host.stage == Stage.IN_FLIGHT or host.taken or host.unstored:
                staying.append(host.name)
                continue
            books.waits(host, -host.waiting_urls)
            bench.drop(host)
        books.robots.forget(mine)
        return staying + [name for name in books.dirty if not mine(name)]

    def allowed(self, found: Iterable[Found], now: float, *, elsewhere: bool = False) -> list[Found]:
        """What passes the gates, each URL once; of hosts ``elsewhere`` those gates that know no host's state."""
        kept: dict[bytes, Found] = {}
        for item in found:
            refusal = self._gates.refusal(item, now, elsewhere=elsewhere)
            if refusal is None:
                kept.setdefault(item.address.key, item)
            else:
                self._books.refused[refusal] += 1
        return list(kept.values())

    def add(self, found: Iterable[Found], now: float) -> int:
        """Queue what is new and allowed, as one atomic change. Returns how many were queued."""
        self._copies.clear()
        new = self._new(found, now)
        if not new:
            return 0
        try:
            rows = [self._row(item, now) for item in new]
            queued = self._queue(Changes(queued=rows, facts=self._widened(new)), 1, now)
        except StorageError:
            self._refused_adds.extend(new)
            raise
        self._recent.add([item.address.key for item in new])
        return queued

    def again(self, found: Iterable[tuple[Found, PageRecord]], now: float) -> int:
        """Queue known pages once more, those that are still allowed; each record says from now on that it waits."""
        self._copies.clear()
        allowed = [
            (item, record)
            for item, record in found
            if self._gates.refusal_known(item, now) is None and self._within_rules(item, now)
        ]
        rows = [self._row(item, now) for item, _ in allowed]
        pages = [(item.address.key, record) for item, record in allowed]
        return self._queue(Changes(queued=rows, pages=pages), 0, now) if rows else 0

    def _queue(self, changes: Changes, new: int, now: float) -> int:
        """One atomic change; ``new`` is 1 when its rows' pages were unknown."""
        books, shelf, rows = self._books, self._books.shelf, changes.queued
        counts = shelf.counted() if shelf is not None else None
        hosts: dict[str, Host] = {}
        for row in rows:
            host = hosts.get(row.host)
            if host is None:
                host = hosts[row.host] = self._host(row.host)
                if host.on_disk and counts is not None:
                    counts.add(host, -1)
            host.rows += 1
            host.known += new
        try:
            if shelf is None or counts is None:
                changes.hosts = [(name, host.pack()) for name, host in hosts.items()]
            else:
                shelf.more_rows(hosts.values(), books.workbench, changes, counts, now)
                shelf.ready(changes, counts)
            books.store.apply(changes)
        except StorageError:
            for row in rows:
                hosts[row.host].rows -= 1
                hosts[row.host].known -= new
            raise
        if shelf is not None and counts is not None:
            shelf.stored(changes, counts, hosts.values())
        for row in rows:
            host = hosts[row.host]
            if not host.given_up:
                books.waits(host, 1)
                if not host.on_disk and (not host.work or host.stage == Stage.IDLE):
                    books.workbench.add(host)
        return len(rows)

    def _host(self, name: str) -> Host:
        """The host in memory, or a copy that serves until what was found is queued."""
        host = self._books.workbench.hosts.get(name) or self._copies.get(name)
        if host is None:
            host = self._books.to_queue(name)
            if name not in self._books.workbench.hosts:
                self._copies[name] = host
        return host

    def add_again(self, now: float) -> None:
        """Queue what was found while the store had no room."""
        found, self._refused_adds = self._refused_adds, []
        self.add(found, now)

    def _new(self, found: Iterable[Found], now: float) -> list[Found]:
        recent = self._recent
        allowed = self.allowed([item for item in found if item.address.key not in recent], now)
        if not allowed:
            return []
        keys = [item.address.key for item in allowed]
        known = self._books.store.known(keys)
        recent.add([key for key, is_known in zip(keys, known, strict=True) if is_known])
        unknown = [item for item, is_known in zip(allowed, known, strict=True) if not is_known]
        new: list[Found] = []
        coming: dict[str, int] = {}  # by host: of these, on their way into its budget
        for item in unknown:
            name = item.address.host
            before = coming.get(name, 0)
            if self._within_rules(item, now, before):
                coming[name] = before + 1
                new.append(item)
        return new

    def _within_rules(self, item: Found, now: float, coming: int = 0) -> bool:
        address = item.address
        host = self._host(address.host)
        if host.known + coming >= self._gates.max_urls_per_host and not item.flags & _BEYOND_BUDGET:
            self._books.refused[Reason.BUDGET] += 1
            return False
        if host.robots_until(address.scheme) > now and not self._books.robots.allows(
            address.scheme, address.host, address.url
        ):
            self._books.refused[Reason.ROBOTS] += 1
            return False
        return True

    def _widened(self, new: list[Found]) -> list[tuple[str, bytes]]:
        """The scope with the hosts that seeds have moved to (example.com to www.example.com), to be stored."""
        moved = {item.address.host for item in new if item.flags & FLAG_SEED}
        widened = [host for host in moved if self._gates.scope.widen(host)]
        if not widened:
            return []
        logger.info("The scope takes in %s, where a seed has moved to", ", ".join(sorted(widened)))
        known = self._books.store.fact(SCOPE_FACT) or b""
        return [(SCOPE_FACT, b"\n".join([*known.split(), *(host.encode() for host in widened)]))]

    def _row(self, item: Found, now: float) -> QueuedPage:
        address, depth, hops, via, priority, flags, note = item
        arrival = self._books.next_arrival(self._host(address.host), now)
        if self._less_important is not None and (share := self._less_important(address.url)) is not None:
            priority = by_rank(priority, share)
        return QueuedPage(address.host, address.key, address.url, priority, arrival, depth, hops, via, 0, flags, note)
