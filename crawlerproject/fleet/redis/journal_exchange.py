"""Between workers whose frontiers are on their own disks: what one finds for others' hosts goes through Redis' inboxes.

A message is a row of its sender's frontier until its effect is in the journal of the partition that it is about
(``stores/rocks/giving_store.py``). It takes effect once: the receiver's frontier knows how far it has read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from crawlerproject.fleet.link_exchange import FleetExchange, FleetHosts, Unread, take_in
from crawlerproject.fleet.questions import asked
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.other_workers import Message
from crawlerproject.runtime.clock import since_boot
from crawlerproject.stores.protocols import Box
from crawlerproject.stores.redis.journals import Inbox, Posted
from crawlerproject.stores.rocks.journaled_store import JournaledStore

# Messages of one partition that are read before one commit.
_MESSAGES = 250
# Workers' ideas of the store's time differ by no more, or by what their way to Redis takes (on one machine 1 ms).
LEAST_DOUBT_SECONDS = 0.025


class LeasedPartitions(FleetHosts):
    """Those of a worker over Redis. What is written goes with the next commit.

    Moments are seconds since boot where nothing else is said.
    """

    doubt_seconds = LEAST_DOUBT_SECONDS

    def __init__(self, partition: Callable[[str], int], answer_seconds: float) -> None:
        """``answer_seconds``: no request takes longer, so none is begun when its lease could end before it."""
        super().__init__(partition)
        self.leaving: set[int] = set()  # they are given back once nothing of them is unfinished
        self.sent = False  # a message to another worker, since this was last reset
        self._answer_seconds = answer_seconds
        self._unsure_until: dict[int, float] = {}  # by partition, epoch seconds; 0: none may have been asked
        self._valid_until: dict[int, float] = {}

    def __contains__(self, partition: int) -> bool:
        return partition in self._unsure_until

    def staying(self) -> list[int]:
        """Those that are not on their way to another worker."""
        return [partition for partition in self._unsure_until if partition not in self.leaving]

    def take(self, partition: int, valid_until: float, unsure_until: float) -> None:
        """A lease was granted; before ``unsure_until`` (epoch seconds) hosts may have been asked without a trace."""
        self._valid_until[partition] = valid_until
        self._unsure_until[partition] = unsure_until

    def renewed(self, valid_until: float) -> None:
        """All leases were renewed."""
        self._valid_until = dict.fromkeys(self._unsure_until, valid_until)

    def drop(self, partition: int) -> None:
        """A lease was given back."""
        self.leaving.discard(partition)
        del self._unsure_until[partition]
        self._valid_until.pop(partition, None)

    def all(self) -> list[int]:
        """Every partition that is held."""
        return list(self._unsure_until)

    # --- of hosts -------------------------------------------------------------------------------

    def mine(self, host: str) -> bool:
        """Whether this worker decides about the host now."""
        partition = self.partition(host)
        return partition in self._unsure_until and partition not in self.leaving

    def may_ask(self, host: str) -> bool:
        """Whether an answer will surely come before another worker may ask the host."""
        return self.mine(host) and self.ask_until(host) >= since_boot() + self._answer_seconds

    def ask_until(self, host: str) -> float:
        """Until when an answer must be complete."""
        return self._valid_until.get(self.partition(host), 0.0)

    def unsure_until(self, host: str) -> float:
        """Before then (epoch seconds) a former holder may have asked the host without a trace; 0: none has."""
        return self._unsure_until.get(self.partition(host), 0.0)

    def send_to(self, partition: int, message: Message) -> None:
        """Write to the worker that holds the partition (``TO_LISTENER``: that hubs reach), with the next batch."""
        self.sent = True
        super().send_to(partition, message)


class JournalExchange(FleetExchange):
    """For one event loop. What is read takes effect in the changes of the commit that follows."""

    def __init__(self, store: JournaledStore, held: LeasedPartitions) -> None:
        super().__init__(held)
        self._store = store
        self._held = held
        self._answered: dict[int, Inbox] = {}  # read, with effects that are in no commit yet
        self._unread: dict[int, Inbox] | None = None  # what was asked for last
        self._done: dict[Box, int] = {}  # the same, message by message: an inbox that was not read to its end, too

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be committed."""
        return not (self._answered or self._held.writing)

    async def ask(self) -> None:
        """Fetch what other workers wrote: for ``read``, which asks itself otherwise."""
        ours = [partition for partition in self._held.staying() if partition not in self._answered]
        self._unread = await asked(self._store.unread, ours, _MESSAGES)

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Take in what other workers wrote. To be called before a commit begins: it holds what comes of it."""
        if self._unread is None:
            await self.ask()
        inboxes, self._unread = self._unread or {}, None
        for partition, inbox in inboxes.items():
            self.moved = True
            following, unread = self._following(partition, inbox)
            while unread:
                some, _ = take_in(unread, frontier, clock())
                self._done |= {each.box: each.number for each in some}
                del unread[: len(some)]
                await asyncio.sleep(0)
            self._answered[partition] = Inbox(inbox.removed + len(inbox.messages) - len(following), following)

    def _following(self, partition: int, inbox: Inbox) -> tuple[list[Posted], list[Unread]]:
        """What follows what was read of its box, and of that what was not read."""
        following, unread, done = list[Posted](), list[Unread](), dict[Box, int]()
        for each in inbox.messages:
            box = Box(partition, each.outbox)
            known = done.get(box) or self._done.get(box) or self._store.messages.read_up_to(box)
            if each.after > known:
                continue  # Redis has lost what came before: its sender will find out, and post all of it again
            following.append(each)
            if each.number > known:
                done[box] = each.number
                unread.append(Unread(box, each.number, each.packed))
        return following, unread

    def settle(self) -> None:
        """The commit that holds what came of the messages is applied."""
        for partition, inbox in self._answered.items():
            self._store.read(partition, inbox)
        self._answered.clear()
        self._done.clear()

    def forget(self, partition: int) -> None:
        """Another worker reads the partition's messages from now on."""
        self._answered.pop(partition, None)
