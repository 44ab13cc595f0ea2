"""Sub-requests of pages in the browser: each waits for a turn of its host, as every page does, and is leased.

A host's turn goes to a sub-request of its own pages before it goes to its queue. What another site's page asks for, or
a page that only another site named, comes behind all that the host has of its own, is charged to the other site as its
links are, and finds the host's door closed after trouble: a page elsewhere must not hold up a site's crawl.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crawlerproject.frontier.frontier_state import FrontierState
from crawlerproject.frontier.hosts.host import Host, Stage
from crawlerproject.frontier.hosts.table import LEFT_ALONE
from crawlerproject.frontier.passage import caused_externally, of_other_domain
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.urls import Address
from crawlerproject.stores.protocols import QueuedPage


@dataclass(slots=True, eq=False)
class Subrequest:
    """One sub-request, and what is called: first ``refused`` or ``granted``, and after the latter ``answered``."""

    address: Address
    page: QueuedPage  # that is in the browser
    until: float  # epoch seconds; of no use to the page if its turn comes later
    own: bool  # it goes to the page's own site
    headers: Mapping[str, str]
    proxy: str  # "" for none
    timeout_seconds: float
    refused: Callable[[Reason], None]
    granted: Callable[[], None]  # it is sent now
    answered: Callable[[Any], None]  # with a Response, or the exception that there is instead

    @property
    def foreign(self) -> bool:
        """Whether the page is of another registered domain than the host that is asked."""
        return not self.own and of_other_domain(self.page.host, self.address.host)

    @property
    def external(self) -> bool:
        """Whether only another site led to it: the page is that site's, or one that only that site named."""
        return self.foreign or caused_externally(self.page)


class Subrequests:
    """Those that wait, by host."""

    def __init__(self, state: FrontierState, filters: UrlFilters) -> None:
        self._state = state
        self._hosts = state.hosts
        self._filters = filters
        self._waiting: dict[str, deque[Subrequest]] = {}

    def ask(self, subrequest: Subrequest, now: float) -> Reason | None:
        """Wait for a turn; a Reason when it will never come, or not in time. No callback is called from here."""
        address = subrequest.address
        if not self._state.ownership.mine(address.host):
            return Reason.RENDER_PACE  # another worker's host: its clock is there
        if (refusal := self._filters.subresource_refusal(address, now)) is not None:
            return refusal
        named_by = bounded_domain(subrequest.page.host) if subrequest.foreign else ""
        if (refusal := self._filters.port_refusal(self._hosts.ports, address.host, named_by)) is not None:
            return refusal
        host = self._hosts.of(address.host)
        if host.state:
            return LEFT_ALONE[host.state]
        if self._spent(subrequest, host, now):
            return Reason.EXTERNAL_BUDGET
        if -host.robots_until(address.scheme) > now:
            return Reason.ROBOTS_UNREACHABLE
        if host.robots_until(address.scheme) > now and (refusal := self._by_rules(subrequest)) is not None:
            return refusal
        # Not ``next_free``: that may be when its queue is looked at again, whatever the host's pace.
        free = max(now, host.pace_free, host.rest_until, 0.0 if host.at_door else host.held_until)
        if host.ports is not None:
            free = max(free, host.ports.free_at(host))
        ahead = sum(subrequest.external or not other.external for other in self._waiting.get(host.name, ()))
        ahead += host.stage == Stage.IN_FLIGHT
        if free + ahead * host.delay_seconds > subrequest.until:
            return Reason.RENDER_PACE
        if _too_late(subrequest, host):
            return Reason.EXTERNAL_DOOR
        self._waiting.setdefault(host.name, deque()).append(subrequest)
        host.subrequests += 1
        if host.at_door and not subrequest.external:
            self._state.go_on(host)
        elif host.stage == Stage.IDLE or (host.stage == Stage.WAITING and not host.at_door):
            self._state.workbench.wait(host, free, work=True)
        return None

    def ask_again(self, subrequest: Subrequest) -> None:
        """Put a sub-request first in line again: its lease ends before anything was sent."""
        host = self._hosts.of(subrequest.address.host)
        self._waiting.setdefault(host.name, deque()).appendleft(subrequest)
        host.subrequests += 1

    def withdraw(self, subrequest: Subrequest) -> None:
        """Remove a sub-request that its page no longer needs; nothing happens when it does not wait."""
        line = self._waiting.get(subrequest.address.host)
        if line is not None and subrequest in line:
            line.remove(subrequest)
            self._left(self._hosts.of(subrequest.address.host), line)

    def refuse_all(self, host: Host, reason: Reason) -> None:
        """Refuse all that wait for the host."""
        for subrequest in list(self._waiting.get(host.name, ())):
            self.refuse(subrequest, reason)

    def door_closed(self, host: Host) -> None:
        """Refuse those for which the host's door opens too late."""
        for subrequest in list(self._waiting.get(host.name, ())):
            if _too_late(subrequest, host):
                self.refuse(subrequest, Reason.EXTERNAL_DOOR)

    def next(self, host: Host, now: float, *, external: bool) -> Subrequest | None:
        """The first that is still of use, of those that are ``external`` or are not; it goes on waiting until ``take``.

        What is too late, or has spent its budget, is refused on the way; a closed door lets nothing external through.
        """
        for subrequest in list(self._waiting.get(host.name, ())):
            if subrequest.until < now:
                self.refuse(subrequest, Reason.RENDER_PACE)
            elif subrequest.external is not external or (external and host.door.until > now):
                continue
            elif self._spent(subrequest, host, now):
                self.refuse(subrequest, Reason.EXTERNAL_BUDGET)
            else:
                return subrequest
        return None

    def take(self, subrequest: Subrequest) -> bool:
        """Give the turn to one that ``next`` has shown; False: robots.txt forbids it, and it is refused."""
        if (refusal := self._by_rules(subrequest)) is not None:
            self.refuse(subrequest, refusal)
            return False
        self.withdraw(subrequest)
        return True

    def refuse(self, subrequest: Subrequest, reason: Reason) -> None:
        """Refuse one that waits."""
        self.withdraw(subrequest)
        subrequest.refused(reason)

    def _spent(self, subrequest: Subrequest, host: Host, now: float) -> bool:
        """Whether the domain of the page has had as much of the host as another site may."""
        return subrequest.foreign and self._filters.external_spent(host.name, bounded_domain(subrequest.page.host), now)

    def _by_rules(self, subrequest: Subrequest) -> Reason | None:
        address = subrequest.address
        if self._hosts.of(address.host).left_alone:
            return Reason.ROBOTS
        robots = self._state.robots
        return robots.refusal(address.url, robots.rules(f"{address.scheme}://{address.host}"))

    def _left(self, host: Host, line: deque[Subrequest]) -> None:
        host.subrequests -= 1
        if not line:
            del self._waiting[host.name]


def _too_late(subrequest: Subrequest, host: Host) -> bool:
    """Whether the host's door opens when the page has no more use of it."""
    return subrequest.external and host.door.until > subrequest.until
