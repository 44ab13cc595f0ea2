"""Between workers of a local fleet: whose a host is, what this one finds for others', what they find for its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from sys import maxsize

from crawlerproject.fleet.link_exchange import FleetExchange, FleetHosts, Unread, take_in
from crawlerproject.fleet.messaging.message_delivery import Incoming, Outgoing
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.protocols import Messages

# Of other workers, taken in before one commit: half a second at most, in slices.
_URLS_A_COMMIT = 5_000
# Of messages that were left for hosts which are this worker's by now, read from the store at a time.
_LEFT_BYTES = 64 << 10


class LocalHosts(FleetHosts):
    """Those of such a worker: the plan does not change while it runs. What is written goes with the next commit."""

    def __init__(self, plan: FleetPlan, worker: str, unsure_until: float = 0.0) -> None:
        """``unsure_until``: as ``frontier.frontier_state.unsure_until`` says."""
        super().__init__(partial(partition_of, partitions=plan.partitions))
        self.partitions = plan.held(worker)
        self._unsure_before = unsure_until

    def mine(self, host: str) -> bool:
        """Whether this worker decides about the host: then no other one asks it in this run."""
        return self.partition(host) in self.partitions


class LocalExchange(FleetExchange):
    """For one event loop. What is read takes effect in the changes of the commit that follows."""

    def __init__(
        self, messages: Messages, hosts: LocalHosts, incoming: Incoming, outgoing: Sequence[Outgoing] = ()
    ) -> None:
        super().__init__(hosts)
        self._messages = messages
        self._incoming = incoming
        self._outgoing = outgoing
        # Written for others' partitions that a new plan has made ours.
        self._left = deque(box for box in messages.boxes() if box.partition in hosts.partitions)
        self._left_behind = 0  # of the first of these: taken in up to here
        self._applied = messages.applied

    @property
    def left(self) -> bool:
        """Whether the own store has messages for hosts of ours: they come before all that may be sent."""
        return bool(self._left)

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be read, or to be written with the next commit."""
        return not (self._left or self._hosts.writing) and self._incoming.empty

    def take(self, found: Iterable[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        """Queue those of own hosts; the next commit sends the others, but for seeds: every worker is given them."""
        mine = self._hosts.mine
        kept = [item for item in found if item.hops or not item.kind.is_seed or mine(item.address.host)]
        return super().take(kept, frontier, now)

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Take in some of what other workers have written. To be called before a commit begins. StorageError."""
        for outgoing in () if self.keeps_delivered else self._outgoing:
            frontier.state.changes.delivered += outgoing.take_delivered()
        most = _URLS_A_COMMIT
        while most > 0 and self._left:
            most -= self._read_left(frontier, clock())
            await asyncio.sleep(0)
        waiting = len(self._incoming.unread)  # what comes meanwhile has time
        while most > 0 and waiting > 0:
            some, urls = take_in(islice(self._incoming.unread, waiting), frontier, clock())
            self.moved = True
            self._incoming.read(some)
            waiting -= len(some)
            most -= max(urls, 1)
            await asyncio.sleep(0)

    def settle(self) -> None:
        """The commit that holds what was read and written is applied."""
        self._incoming.applied()
        if self._messages.applied != self._applied:
            self._applied = self._messages.applied
            self.moved = True

    def _read_left(self, frontier: Frontier, now: float) -> int:
        """Some of the first box that was left: read, with what says so, and removed; how many URLs."""
        box, mail = self._left[0], self._messages
        found = mail.of(box, self._left_behind, maxsize, _LEFT_BYTES)
        if not found:
            self._left.popleft()
            self._left_behind = 0
            return 0
        done, urls = mail.read_up_to(box), 0
        up_to = found[-1][0]
        if unread := [Unread(box, number, packed) for number, packed in found if number > done]:
            some, urls = take_in(unread, frontier, now)
            up_to = some[-1].number
        frontier.state.changes.delivered += ((box, number) for number, _ in found if number <= up_to)
        self._left_behind = up_to
        self.moved = True
        return max(urls, 1)
