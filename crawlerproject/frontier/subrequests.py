"""Sub-requests of pages in the browser: each waits for a turn of its host, as every page does, and is leased.

A host's turn goes to a sub-request before it goes to the host's queue. What another site's page asks for gets only
every second turn of a host that has pages of its own waiting: a page elsewhere must not hold up a site's crawl.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crawlerproject.frontier.hosts.holds import LEFT_ALONE
from crawlerproject.frontier.workbench import Stage
from crawlerproject.reasons import Reason

if TYPE_CHECKING:
    from crawlerproject.frontier.gates import Gates
    from crawlerproject.frontier.hosts.host import Host
    from crawlerproject.frontier.state import FrontierState
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


class Subrequests:
    """Those that wait, by host."""

    def __init__(self, state: FrontierState, gates: Gates) -> None:
        self._state = state
        self._hosts = state.hosts
        self._gates = gates
        self._waiting: dict[str, deque[Subrequest]] = {}
        self._served: set[str] = set()  # hosts whose last turn went to another site's page

    def ask(self, embed: Subrequest, now: float) -> Reason | None:
        """Wait for a turn; a Reason when it will never come, or not in time. No callback is called from here."""
        address = embed.address
        if not self._state.ownership.may_ask(address.host):
            return Reason.RENDER_PACE  # another worker's host: its clock is there
        if (refusal := self._gates.embed_refusal(address, now)) is not None:
            return refusal
        if self._hosts.ports.full(address.host):
            return Reason.TOO_MANY_PORTS
        host = self._hosts.of(address.host)
        if host.given_up:
            return LEFT_ALONE[host.held]
        if -host.robots_until(address.scheme) > now:
            return Reason.ROBOTS_UNREACHABLE
        if host.robots_until(address.scheme) > now and not self._allowed(embed):
            return Reason.ROBOTS
        # Not ``next_free``: that may be when its queue is looked at again, whatever the host's pace.
        free = max(now, host.pace_free, host.rest_until, host.held_until)
        if host.ports is not None:
            free = max(free, host.ports.free_at(host))
        issuer = len(self._waiting.get(host.name, ())) + (host.stage == Stage.IN_FLIGHT)
        if free + issuer * host.delay_seconds > embed.until:
            return Reason.RENDER_PACE
        self._waiting.setdefault(host.name, deque()).append(embed)
        host.embeds += 1
        if host.stage in (Stage.WAITING, Stage.IDLE):
            self._state.workbench.wait(host, free, work=True)
        return None

    def ask_again(self, embed: Subrequest) -> None:
        """Put a sub-request first in line again: its lease ends before anything was sent."""
        host = self._hosts.of(embed.address.host)
        self._waiting.setdefault(host.name, deque()).appendleft(embed)
        host.embeds += 1

    def withdraw(self, embed: Subrequest) -> None:
        """Remove a sub-request that its page no longer needs; nothing happens when it does not wait."""
        line = self._waiting.get(embed.address.host)
        if line is not None and embed in line:
            line.remove(embed)
            self._left(self._hosts.of(embed.address.host), line)

    def refuse_all(self, host: Host, reason: Reason) -> None:
        """Refuse all that wait for the host."""
        while (embed := self._pop(host)) is not None:
            embed.refused(reason)

    def next(self, host: Host, now: float) -> Subrequest | None:
        """The first that is still of use, if this turn of the host is for one; it goes on waiting until ``take``."""
        line = self._waiting.get(host.name)
        while line and line[0].until < now:
            line.popleft().refused(Reason.RENDER_PACE)
            self._left(host, line)
        if not line:
            return None
        if host.name in self._served and host.waiting_urls > 0 and not line[0].own:
            self._served.discard(host.name)
            return None
        return line[0]

    def take(self, host: Host) -> Subrequest | None:
        """The first has its turn, unless robots.txt forbids it."""
        embed = self._pop(host)
        assert embed is not None  # ``next`` has shown it
        if not self._allowed(embed):
            embed.refused(Reason.ROBOTS)
            return None
        if embed.own:
            self._served.discard(host.name)
        else:
            self._served.add(host.name)
        return embed

    def refuse_first(self, host: Host, reason: Reason) -> None:
        """Refuse the first in the host's line."""
        embed = self._pop(host)
        if embed is not None:
            embed.refused(reason)

    def _allowed(self, embed: Subrequest) -> bool:
        address = embed.address
        if self._hosts.of(address.host).left_alone:
            return False
        return self._state.robots.allows(address.scheme, address.host, address.url)

    def _pop(self, host: Host) -> Subrequest | None:
        line = self._waiting.get(host.name)
        if not line:
            return None
        embed = line.popleft()
        self._left(host, line)
        return embed

    def _left(self, host: Host, line: deque[Subrequest]) -> None:
        host.embeds -= 1
        if not line:
            del self._waiting[host.name]
