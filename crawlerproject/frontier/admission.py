"""Into the frontier: a page's links, the operator's seeds, and what an earlier run left."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import NamedTuple

import orjson

from crawlerproject import native
from crawlerproject.errors import StorageError
from crawlerproject.frontier.frontier_state import FrontierState
from crawlerproject.frontier.hosts.host import Host, PortsClock, Stage
from crawlerproject.frontier.hosts.names_and_domains import DomainHostCounts
from crawlerproject.frontier.known_seeds import MOVES_FACT, SCOPE_FACT, moves_of
from crawlerproject.frontier.other_workers import ScopeWidened
from crawlerproject.frontier.passage import DiscoveredUrl, caused_externally
from crawlerproject.frontier.url_filters import HostsAtOnce, UrlFilters
from crawlerproject.reasons import Reason
from crawlerproject.rules.robots.matcher import MatcherIndex
from crawlerproject.rules.robots.policy import RobotsRules
from crawlerproject.rules.row_kinds import (
    FLAG_LISTED,
    FLAG_SEED,
    OUTSIDE_BUDGET,
    ROW_KINDS,
    Budget,
    by_rank,
    of_external,
    of_later_list,
)
from crawlerproject.rules.url.scope import comes_back
from crawlerproject.rules.url.urls import Address, host_key, host_name
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage

logger = logging.getLogger(__name__)

_new = tuple.__new__  # of a NamedTuple, at a third of the cost
Joining = dict[str, tuple[int, int]]
"""By host key: rows that are to be queued, and of them pages that count for the host."""
LessImportant = Callable[[str], float | None]
"""The share of all that is linked that ranks below a URL; None when it is in no rank."""


class _Settled(NamedTuple):
    """What a host has room for, and allows."""

    front: str  # its URLs begin with this
    room: int  # of them its name may have, beside those that are known
    rules: RobotsRules | None  # None: they are not known yet
    natively: bool  # ``matcher`` has all that they say of a page
    matcher: MatcherIndex | None  # None: anything is allowed


class Admission:
    """Queues what is new and allowed."""

    def __init__(
        self,
        state: FrontierState,
        filters: UrlFilters,
        domains: DomainHostCounts,
        less_important: LessImportant | None = None,
    ) -> None:
        self._state = state
        self._hosts = state.hosts
        self._domains = domains
        self._less_important = less_important
        self._filters = filters
        self._refused_adds: list[DiscoveredUrl] = []  # found while the store had no room
        self._recent = state.recent
        self._copies = state.hosts.copies

    def allowed(self, found: Iterable[DiscoveredUrl], now: float, *, elsewhere: bool = False) -> list[DiscoveredUrl]:
        """The URLs that pass the filters, each once; ``elsewhere``: only filters that need no state of the host."""
        filters, hosts = self._filters, HostsAtOnce()

        def judged(item: DiscoveredUrl) -> bytes | None:
            refusal = filters.refusal(item, now, elsewhere=elsewhere, hosts=hosts)
            if refusal is None:
                return item.queue_key if item.flags & OUTSIDE_BUDGET else item.address.key
            self._state.refused.add(refusal, item.address.url, item.flags)
            return None

        if (page := native.reader) is not None:
            scope = filters.scope
            bounds = filters.extensions, scope.max_depth, scope.max_url_length
            return list(page.allowed(found, hosts, judged, *bounds).values())
        kept: dict[bytes, DiscoveredUrl] = {}
        for item in found:
            if (key := judged(item)) is not None:
                kept.setdefault(key, item)
        return list(kept.values())

    def add(self, found: Iterable[DiscoveredUrl], now: float) -> int:
        """Queue what is new and allowed, as one atomic change. Returns how many were queued."""
        recent, names, new = self._recent, self._hosts.names, list[DiscoveredUrl]()
        self._hosts.clock.now = now
        try:
            if names.later:
                found = list(found)
                self._bring_forward(found, now)
            if (page := native.reader) is not None:
                fresh, flags = page.news(found, recent.younger, recent.older)
            else:
                fresh = [item for item in found if item.address.key not in recent]
                flags = reduce(or_, [item.flags for item in fresh], 0)
            if flags & OUTSIDE_BUDGET:
                fresh = [item.owned() for item in fresh]
                fresh = [item for item in fresh if not item.flags & OUTSIDE_BUDGET or item.queue_key not in recent]
            if names.spent:
                fresh = [item for item in fresh if not self._one_name_too_many(item.address.host, item.named_by)]
            if not (unknown := self._unknown(self.allowed(fresh, now))):
                return 0
            if flags & OUTSIDE_BUDGET and any(item.flags & OUTSIDE_BUDGET for item in unknown):
                unknown = self._not_waiting(unknown)
            if not (new := self._within_bounds(unknown, now)):
                return 0
            rows, joining = self._rows(new, now)
            self._queue(Changes(queued=rows, facts=self._widened(new) if flags & FLAG_SEED else []), joining, now)
        except StorageError:
            self._refused_adds.extend(new)
            raise
        finally:
            self._copies.clear()
        recent.add_new([row.key for row in rows])
        return len(rows)

    def _unknown(self, allowed: list[DiscoveredUrl]) -> list[DiscoveredUrl]:
        """Those that the store does not know. StorageError."""
        known = self._state.store.known([item.address.key for item in allowed])
        if not any(known):
            return allowed
        self._recent.add([item.address.key for item, is_known in zip(allowed, known, strict=True) if is_known])
        return [item for item, is_known in zip(allowed, known, strict=True) if not is_known]

    def add_again(self, now: float) -> None:
        """Queue what was found while the store had no room."""
        found, self._refused_adds = self._refused_adds, []
        self.add(found, now)

    def again(self, found: Iterable[tuple[DiscoveredUrl, PageRecord]], now: float) -> int:
        """Queue known pages once more, those that are still allowed; each record says from now on that it waits."""
        try:
            allowed = [
                (item, record)
                for item, record in found
                if self._filters.refusal_known(item, now) is None and self._within_rules(item, item.named_by, now)
            ]
            for item, _ in allowed:
                self._count_for_domain(item.address.host)
            rows, joining = self._rows([item for item, _ in allowed], now)
            if rows:
                pages = [(item.address.key, record) for item, record in allowed]
                of_known = {name: (count, 0) for name, (count, _) in joining.items()}
                self._queue(Changes(queued=rows, pages=pages), of_known, now)
            return len(rows)
        finally:
            self._copies.clear()

    def _queue(self, changes: Changes, joining: Joining, now: float) -> None:
        """Store rows together with the states and the lists of their hosts. StorageError: nothing has changed."""
        rows, on_disk = changes.queued, self._hosts.on_disk
        hosts: dict[str, Host] = {}
        for name in joining:
            host = hosts[name] = self._host(name)
            if ":" in name and name in self._copies and not host.on_disk:
                self._hosts.ports.add(host)
        counts = on_disk.counted()
        for host in hosts.values():
            if host.on_disk:
                counts.add(host, -1)
        for name, (count, known) in joining.items():
            hosts[name].rows += count
            hosts[name].known += known
        try:
            on_disk.more_rows(hosts.values(), self._state.workbench, changes, counts, now)
            on_disk.apply(changes, counts, hosts.values())
        except StorageError:
            for name, (count, known) in joining.items():
                hosts[name].rows -= count
                hosts[name].known -= known
            raise
        for name, host in hosts.items():
            count, known = joining[name]
            if (clock := self._clock(host)) is not None:
                clock.known += known
            if not host.state:
                self._hosts.waits(host, count)
                begins = not host.on_disk and (not host.work or host.stage == Stage.IDLE)
                if begins:
                    self._state.workbench.add(host)
                more_of_it = host.at_door and not host.on_disk and [row for row in rows if row.host == name][begins:]
                if more_of_it and not all(map(caused_externally, more_of_it)):
                    self._state.go_on(host)

    def _host(self, name: str, named_by: str | None = None) -> Host:
        """The host in memory, or a copy that serves until what was found is queued.

        ``named_by`` as ``to_queue``; None: the link at hand was taken into account before.
        """
        table, copy = self._hosts, self._copies.get(name)
        if copy is None:
            known = table.workbench.hosts.get(name) if named_by is None else None
            host = known or table.to_queue(name, named_by or "")
        elif name in table.dirty or name in table.workbench.hosts:  # another port of its name came to it meanwhile
            host = table.of(name)
            host.arrival = max(host.arrival, copy.arrival)
            del self._copies[name]
        else:
            return copy
        if name not in table.workbench.hosts:
            self._copies[name] = host
        return host

    def _clock(self, host: Host) -> PortsClock | None:
        """The clock that the host shares with other ports of its name, be it but a copy."""
        return host.ports if host.name not in self._copies else self._state.workbench.names.get(host_name(host.name))

    def _within_bounds(self, unknown: list[DiscoveredUrl], now: float) -> list[DiscoveredUrl]:
        """Those for which there is room and which robots.txt allows, with their final priorities."""
        new: list[DiscoveredUrl] = []
        coming: dict[str, int] = {}  # by host name: of these, on their way into its budget
        settled: dict[str, _Settled] = {}  # by host name: that of the last URL
        page, place = native.reader, 0
        while place < len(unknown):
            item = unknown[place]
            address = item.address
            host, url = address.host, address.url
            own, name = not item.flags & ~FLAG_LISTED and (url[-1] != "/" or not address.is_front), host_name(host)
            last, taken = settled.get(name), coming.get(name, 0)
            if last is None and own and (last := self._known_host(address, now)) is not None:
                settled[name] = last
            if last is not None and own and url.startswith(last.front):  # as most links of a page
                if page is not None and last.natively:
                    alike = page.settled(unknown, place, last.front, last.room - taken, last.matcher)
                    if alike:
                        coming[name] = taken + alike
                        new += unknown[place : place + alike]
                        place += alike
                        continue
                place += 1
                refusal = Reason.BUDGET if taken >= last.room else None
                if refusal is None and last.rules is not None:
                    refusal = self._state.robots.refusal(url[len(last.front) - 1 :], last.rules)
                if refusal is not None:
                    self._state.refused.counts[refusal] += 1
                    continue
                coming[name] = taken + 1
                new.append(item)
                continue
            place += 1
            kind, named_by, before = ROW_KINDS[item.flags], item.named_by, coming.get(name)
            settled.pop(name, None)
            if not self._within_rules(item, named_by, now, before):
                continue
            if kind.budget is not Budget.NONE:
                if (refusal := self._filters.room_refusal(item, now)) is not None:
                    self._state.refused.counts[refusal] += 1
                    continue
                if kind.budget is Budget.EXTERNAL:  # what the host names comes before what others name
                    item = item._replace(priority=of_external(item.priority))
                elif kind.budget is Budget.LISTS and self._filters.list_comes_later(host):
                    item = item._replace(priority=of_later_list(item.priority))
            if before is None:
                self._count_for_domain(host, named_by)
            coming[name] = (before or 0) + kind.in_page_budget
            new.append(item)
            if own:
                settled[name] = self._settled(address, now)
        return new

    def _known_host(self, address: Address, now: float) -> _Settled | None:
        """``_settled`` of a host that none of the other bounds can be against, as a page's own."""
        host = self._state.workbench.hosts.get(address.host)
        known = host is not None and host.fetched and host.ever_queued and not host.left_alone
        return self._settled(address, now) if known else None

    def _settled(self, address: Address, now: float) -> _Settled:
        """What ``_within_rules`` finds for URLs of a host that is known, or of which it has let one in."""
        host, origin = self._host(address.host, ""), f"{address.scheme}://{address.host}"
        clock = self._clock(host)
        room = self._filters.max_urls_per_host - (host.known if clock is None else clock.known)
        if host.robots_until(address.scheme) <= now:
            return _Settled(origin + "/", room, None, True, None)
        rules = self._state.robots.rules(origin)
        asks_more = self._state.robots.asks_more(rules)
        return _Settled(origin + "/", room, rules, not asks_more, None if asks_more else rules.index())

    def _not_waiting(self, unknown: list[DiscoveredUrl]) -> list[DiscoveredUrl]:
        """Drop external URLs and requisites that are queued: until then the store knows them by their queue keys.

        A requisite that is named as a page at the same time is a page.
        """
        recent = self._recent
        pages = {item.address.key for item in unknown if not item.kind.is_requisite}
        unknown = [item for item in unknown if not item.kind.is_requisite or item.address.key not in pages]
        keys = [key for item in unknown if item.flags & OUTSIDE_BUDGET and (key := item.queue_key) not in recent]
        waiting = [key for key, is_known in zip(keys, self._state.store.known(keys), strict=True) if is_known]
        recent.add(waiting)
        return [item for item in unknown if item.queue_key not in recent]

    def _count_for_domain(self, name: str, named_by: str = "") -> None:
        """A URL of the host will be queued: the first of it counts for its domain."""
        if not self._host(name).ever_queued and not self._hosts.ports.knows(name):
            self._domains.taken_up(name, named_by)

    def _within_rules(self, item: DiscoveredUrl, named_by: str, now: float, coming: int | None = None) -> bool:
        """``coming``: of its host's name, on their way into its budget; None: it is the first."""
        address, kind, ports = item.address, ROW_KINDS[item.flags], self._hosts.ports
        if ":" in address.host and not kind.is_seed and self._filters.port_refusal(ports, address.host, named_by):
            self._state.refused.counts[Reason.TOO_MANY_PORTS] += 1
            return False
        if kind.counts_for_host and coming is None and self._one_host_too_many(address.host, now, named_by):
            self._domains.refused(address.host)
            self._state.refused.counts[Reason.TOO_MANY_HOSTS] += 1
            return False
        if named_by and coming is None and self._one_name_too_many(address.host, named_by):
            return False
        host = self._host(address.host, named_by)
        known = host.known if (clock := self._clock(host)) is None else clock.known
        if kind.counts_for_host and kind.in_page_budget and known + (coming or 0) >= self._filters.max_urls_per_host:
            self._state.refused.counts[Reason.BUDGET] += 1
            return False
        if host.robots_until(address.scheme) > now:
            robots, origin = self._state.robots, f"{address.scheme}://{address.host}"
            refusal = None if host.left_alone else robots.refusal(address.url, robots.rules(origin))
            if host.left_alone or refusal is not None:
                self._state.refused.add(refusal or Reason.ROBOTS, address.url, item.flags)
                return False
        return True

    def _one_host_too_many(self, name: str, now: float, named_by: str) -> bool:
        """Whether a URL is the first of its host, whose domain may have no host more."""
        known, domains = self._state.workbench.hosts.get(name), self._domains
        if (known is not None and known.ever_queued) or not domains.full(name, named_by):
            return False
        return not (self._hosts.ports.knows(name) or self._filters.any_hosts(domains.domain_of(name), now))

    def _bring_forward(self, found: Iterable[DiscoveredUrl], now: float) -> None:
        """Hosts that wait since the domain that named them has named many others: this page's domain names them too.

        The URL may be the same, and no news.
        """
        names = self._hosts.names
        for item in found:
            if item.address.host in names.later:
                named_by = item.owned().named_by
                if names.ready(named_by, now):
                    self._hosts.to_queue(item.address.host, named_by)

    def _one_name_too_many(self, host: str, named_by: str) -> bool:
        """Whether a URL is the first of its host, and who names it has named too many that have no address."""
        names = self._hosts.names
        if not named_by or not names.full(named_by) or self._hosts.ports.knows(host):
            return False
        names.refused(named_by)
        self._state.refused.counts[Reason.TOO_MANY_NAMES] += 1
        return True

    def _widened(self, new: list[DiscoveredUrl]) -> list[tuple[str, bytes]]:
        """The scope with the hosts that seeds have moved to (example.com to www.example.com), to be stored."""
        scope, seeds = self._filters.scope, [item for item in new if item.kind.is_seed]
        seeds = [item for item in seeds if not (item.via and comes_back(item.via, item.address.url))]
        ruled = [item for item in seeds if item.via and scope.governs(host_key(item.via))]
        moves = [(item.via, item.address.url) for item in ruled if scope.move(item.via, item.address.url)]
        moved = {item.address.host for item in seeds if not scope.governs(item.address.host)}
        widened = [host for host in moved if scope.widen(host)]
        if (moves or widened) and not self._state.ownership.sole:
            self._state.moved.append(ScopeWidened(widened, moves))
        return self._facts_of(moves, widened)

    def scope_widened(self, message: ScopeWidened) -> None:
        """Another worker has widened the scope: here too, from now on and over restarts. StorageError."""
        scope = self._filters.scope
        moves = [(before, after) for before, after in message.moves if scope.move(before, after)]
        if facts := self._facts_of(moves, [host for host in message.hosts if scope.widen(host)]):
            self._state.store.apply(Changes(facts=facts))

    def _facts_of(self, moves: list[tuple[str, str]], widened: list[str]) -> list[tuple[str, bytes]]:
        facts: list[tuple[str, bytes]] = []
        if moves:
            places = ", ".join(sorted({after for _, after in moves}))
            logger.info("What seeds say of their place holds at %s too, where they have moved to", places)
            facts.append((MOVES_FACT, orjson.dumps([*moves_of(self._state.store), *moves])))
        if widened:
            logger.info("The scope takes in %s, where a seed has moved to", ", ".join(sorted(widened)))
            known = self._state.store.fact(SCOPE_FACT) or b""
            facts.append((SCOPE_FACT, b"\n".join([*known.split(), *(host.encode() for host in widened)])))
        return facts

    def _rows(self, found: list[DiscoveredUrl], now: float) -> tuple[list[QueuedPage], Joining]:
        """Their rows, and how many of them each host gets."""
        rows: list[QueuedPage] = []
        hosts: dict[str, Host] = {}
        joining: Joining = {}
        page, place, less_important = native.reader, 0, self._less_important
        while place < len(found):
            (url, key, name, _), depth, hops, via, priority, flags, note = found[place]
            host = hosts.get(name) or hosts.setdefault(name, self._host(name))
            count, known = joining.get(name, (0, 0))
            arrival = self._state.next_arrival(host, now)
            if page is not None and not flags and less_important is None:  # as most: those of a host in one go
                alike = page.rows(found, place, arrival, QueuedPage)
                self._state.skip_arrivals(host, len(alike) - 1)
                rows += alike
                place += len(alike)
                joining[name] = count + len(alike), known + len(alike)
                continue
            if less_important is not None and (share := less_important(url)) is not None:
                priority = by_rank(priority, share)
            key = ROW_KINDS[flags].swapped(key) if flags else key
            rows.append(_new(QueuedPage, (name, key, url, priority, arrival, depth, hops, via, 0, flags, note)))
            place += 1
            joining[name] = count + 1, known + (not flags & OUTSIDE_BUDGET)
        return rows, joining
