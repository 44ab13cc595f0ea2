"""Messages between the workers of a local fleet: each posts to inboxes that their supervisor keeps, and fetches there.

The supervisor may be stopped, so nothing waits for it. When it has exited its workers end, and post all again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from crawlerproject.errors import StorageError
from crawlerproject.fleet.link_exchange import FleetExchange, FleetHosts
from crawlerproject.fleet.local.supervisor_link import MAIL, Ask
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.outboxes import Outboxes
from crawlerproject.stores.protocols import Box, FrontierStore, Inbox, Messages, Posted

WINDOW_BYTES = 1 << 20
"""Posted for a worker and not read, with the message that exceeds it: some 8,000 links, more than it takes in between
two of its commits."""
# A supervisor that is not stopped has answered by then; what it answers later is read before the next commit.
_PATIENCE_SECONDS = 0.1


class LocalHosts(FleetHosts):
    """Those of such a worker: the plan does not change while it runs. What is written goes with the next commit."""

    def __init__(self, plan: FleetPlan, worker: str, unsure_until: float = 0.0) -> None:
        """``unsure_until``: as ``frontier.frontier_state.unsure_until`` says."""
        super().__init__(partial(partition_of, partitions=plan.partitions))
        self.partitions = plan.held(worker)
        self._staying = sorted(self.partitions)
        self._unsure_before = unsure_until

    def mine(self, host: str) -> bool:
        """Whether this worker decides about the host: then no other one asks it in this run."""
        return self.partition(host) in self.partitions

    def staying(self) -> Sequence[int]:
        """All."""
        return self._staying

    def parted(self, found: Iterable[DiscoveredUrl]) -> tuple[list[DiscoveredUrl], list[DiscoveredUrl]]:
        """As of any fleet, but for the operator's seeds of other hosts: every worker is given its own."""
        own, others = super().parted(found)
        return own, [item for item in others if item.hops or not item.kind.is_seed]


class LocalMail:
    """For one event loop."""

    def __init__(self, store: FrontierStore, ask: Ask, plan: FleetPlan) -> None:
        """All that the store has is durable."""
        self._messages = messages = store.messages
        self._ask = ask
        self._plan = plan
        self._outboxes = Outboxes(messages, receiver=self._receiver, window_bytes=WINDOW_BYTES)
        self._delivered: list[tuple[Box, int]] = []
        self._read: deque[tuple[int, int, Inbox]] = deque()  # by the change that they are in, with their partition
        self._wanted: Sequence[int] = ()  # partitions, to be asked for with the next question
        self._fetched: dict[int, Inbox] = {}
        self._asking: asyncio.Task[None] | None = None

    @property
    def quiet(self) -> bool:
        """Whether nothing waits here: to be read, to be said to have been read, or to be synced and posted."""
        return not (self._fetched or self._read) and self._messages.durable.last >= self._messages.applied.last

    def unread(self) -> list[str]:
        """The workers that have not read all that is, or is to be, posted for them."""
        return self._outboxes.unread_by()

    def take_delivered(self) -> list[tuple[Box, int]]:
        """Messages whose rows may go."""
        delivered, self._delivered = self._delivered, []
        return delivered

    async def fetch(self, partitions: Sequence[int]) -> dict[int, Inbox]:
        """The oldest messages to partitions. StorageError: those of others cannot be read here."""
        self._wanted = partitions
        self.turn()
        if self._asking is not None:
            await asyncio.wait([self._asking], timeout=_PATIENCE_SECONDS)
        fetched, self._fetched = self._fetched, {}
        return fetched

    def answered(self, partition: int, inbox: Inbox) -> None:
        """What came of the messages is applied."""
        self._read.append((self._messages.applied.changes, partition, inbox))

    def turn(self) -> None:
        """Post what is durable, say what was read, and fetch what ``fetch`` wants. StorageError."""
        messages = self._messages
        if messages.durable.last >= messages.applied.last:
            self._outboxes.wrote()
        if self._asking is not None:
            return
        waiting = self._outboxes.waiting(WINDOW_BYTES)
        self._outboxes.are_posted(waiting)
        posts = [(partition, each.outbox.hex(), each.number, each.packed.decode()) for partition, each in waiting]
        boxes = self._outboxes.unread()
        named = [(partition, outbox.hex()) for partition, outbox in boxes]
        exchange = self._exchange(boxes, posts, self._durably_read(), named, self._wanted)
        self._wanted = ()
        self._asking = asyncio.get_running_loop().create_task(exchange)

    def close(self) -> None:
        """Take no answer any more. Harmless when done twice."""
        if self._asking is not None:
            self._asking.cancel()

    async def _exchange(self, boxes: Sequence[Box], *question: Any) -> None:
        try:
            numbers, inboxes = await self._ask(MAIL, *question)
        except StorageError:
            return  # the commit loop sees that the supervisor has exited
        finally:
            self._asking = None
        for box, up_to in zip(boxes, numbers, strict=True):
            self._delivered += self._outboxes.forget(box, up_to)
        for partition, removed, rows in inboxes:
            some = [Posted(bytes.fromhex(outbox), number, packed.encode()) for outbox, number, packed in rows]
            self._fetched[partition] = Inbox(removed, some)

    def _receiver(self, box: Box) -> str:
        return self._plan.workers[self._plan.holders[box.partition]]

    def _durably_read(self) -> list[tuple[int, int, list[tuple[str, int]]]]:
        """For each partition how many messages may leave its inbox, as ``Inbox.removed`` counts, and of which boxes."""
        durable, read = self._messages.durable.changes, list[tuple[int, int, list[tuple[str, int]]]]()
        while self._read and self._read[0][0] <= durable:
            _, partition, (removed, messages) = self._read.popleft()
            marks = {each.outbox.hex(): each.number for each in messages}
            read.append((partition, removed + len(messages), list(marks.items())))
        return read


class LocalExchange(FleetExchange):
    """A local worker's: what was delivered leaves the store."""

    def __init__(self, hosts: LocalHosts, messages: Messages, mail: LocalMail) -> None:
        super().__init__(hosts, messages, mail.fetch, mail.answered)
        self._mail = mail
        self._applied = messages.applied

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Take in some of what other workers have written, and let go what they have read. StorageError."""
        if not self.keeps_delivered:
            frontier.state.changes.delivered += self._mail.take_delivered()
        await super().read(frontier, clock)

    def settle(self) -> None:
        """The commit that holds what was read and written is applied."""
        super().settle()
        if self._messages.applied != self._applied:
            self._applied = self._messages.applied
            self.moved = True
