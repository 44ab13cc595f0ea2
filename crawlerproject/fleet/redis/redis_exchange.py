"""Between workers over Redis: which partitions this one holds, and the URLs and messages that it sends and receives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

from crawlerproject.errors import StorageError
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.other_workers import Changed, Links, Message, pack_message, unpack_message
from crawlerproject.rules.url.urls import Address
from crawlerproject.runtime.clock import since_boot
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.buffer.store import BufferedStore
from crawlerproject.stores.redis.store import TO_LISTENER

# URLs that are looked up and queued as one.
_URLS_AT_A_TIME = 5_000
# Of these, judged and queued in one turn of the loop: some 10 ms.
_URLS_A_TURN = 250
# Links in one message, and messages of one partition that are read before one commit.
_LINKS_A_MESSAGE = 500
_MESSAGES = 50
# Workers' ideas of the store's time differ by no more, or by what their way to Redis takes (on one machine 1 ms).
LEAST_DOUBT_SECONDS = 0.025


class HeldPartitions:
    """The ``HostOwnership`` of a worker. Moments are seconds since boot where nothing else is said."""

    def __init__(self, store: BufferedStore, answer_seconds: float) -> None:
        """``answer_seconds``: no request takes longer, so none is begun when its lease could end before it."""
        self.doubt_seconds = LEAST_DOUBT_SECONDS
        self.leaving: set[int] = set()  # they are given back once nothing of them is unfinished
        self.sent = False  # a message to another worker, since this was last reset
        self._store = store
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
        partition = self._store.store.partition(host)
        return partition in self._unsure_until and partition not in self.leaving

    def may_ask(self, host: str) -> bool:
        """Whether an answer will surely come before another worker may ask the host."""
        return self.mine(host) and self.ask_until(host) >= since_boot() + self._answer_seconds

    def crowded(self) -> bool:
        """Whether the next write has much to send already."""
        return self._store.outbox.crowded

    def ask_until(self, host: str) -> float:
        """Until when an answer must be complete."""
        return self._valid_until.get(self._store.store.partition(host), 0.0)

    def unsure_until(self, host: str) -> float:
        """Before then (epoch seconds) a former holder may have asked the host without a trace; 0: none has."""
        return self._unsure_until.get(self._store.store.partition(host), 0.0)

    def send(self, host: str, message: Message) -> None:
        """Write to the worker that decides about the host."""
        self.sent = True
        self._store.outbox.post(self._store.store.partition(host), pack_message(message))

    def write_to_listener(self, message: Message) -> None:
        """Write to the worker that hubs reach."""
        self.sent = True
        self._store.outbox.post(TO_LISTENER, pack_message(message))

    def add_messages(self, changes: Changes) -> None:
        """They are in the store's own outbox."""


class MessageExchange:
    """A message is gone from its inbox only with the commit that holds what came of it. For one event loop."""

    def __init__(self, store: BufferedStore, held: HeldPartitions) -> None:
        self.outbox: list[DiscoveredUrl] = []
        self.changed: list[tuple[Address, float]] = []  # known pages, by our lists; with the moment, epoch seconds
        self.moved = False  # something came or went since this was last reset
        self._store = store
        self._held = held
        self._answered: dict[int, int] = {}  # by partition: messages read, whose effects are in no commit yet

    async def deliver(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Queue what was found here for hosts of ours; send what was found for others'.

        To be called between the beginning of a commit and its end: what pages of the commit name goes with it.
        """
        found, self.outbox = self.outbox, []
        try:
            while found:
                await self._queue(frontier, found[:_URLS_AT_A_TIME], clock)
                del found[:_URLS_AT_A_TIME]
                self.moved = True
                if found:
                    await asyncio.to_thread(self._store.sync)
            while self.changed:
                some = self.changed[:_URLS_AT_A_TIME]
                await self._announce(frontier, some, clock)
                del self.changed[: len(some)]
                self.moved = True
        except StorageError:
            self.outbox = found + self.outbox
            raise

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be delivered."""
        return not self.outbox and not self.changed

    async def _announce(
        self, frontier: Frontier, pages: Sequence[tuple[Address, float]], clock: Callable[[], float]
    ) -> None:
        own = [page for page in pages if self._held.mine(page[0].host)]
        await asyncio.to_thread(self._look_up, own)
        for start in range(0, len(own), _URLS_A_TURN):
            frontier.changed(own[start : start + _URLS_A_TURN], clock())
            await asyncio.sleep(0)
        self._post_changed(page for page in pages if not self._held.mine(page[0].host))

    def _post_changed(self, pages: Iterable[tuple[Address, float]]) -> None:
        """Write of changed pages to the workers that hold their hosts."""
        by_partition: dict[int, list[tuple[Address, float]]] = {}
        for address, at in pages:
            by_partition.setdefault(self._store.store.partition(address.host), []).append((address, at))
        for partition, some in by_partition.items():
            for start in range(0, len(some), _LINKS_A_MESSAGE):
                self._store.outbox.post(partition, pack_message(Changed(some[start : start + _LINKS_A_MESSAGE])))

    async def _queue(self, frontier: Frontier, found: Sequence[DiscoveredUrl], clock: Callable[[], float]) -> None:
        own = [item for item in found if self._held.mine(item.address.host)]
        await asyncio.to_thread(self._store.look_up, list(_keys_of(own)))
        foreign = [item for item in found if not self._held.mine(item.address.host)]
        for some in _slices(own):
            frontier.add(some, clock())
            await asyncio.sleep(0)
        by_partition: dict[int, list[DiscoveredUrl]] = {}
        for some in _slices(foreign):
            for item in frontier.admission.allowed(some, clock(), elsewhere=True):
                by_partition.setdefault(self._store.store.partition(item.address.host), []).append(item)
            await asyncio.sleep(0)
        for partition, items in by_partition.items():
            for start in range(0, len(items), _LINKS_A_MESSAGE):
                self._store.outbox.post(partition, pack_message(Links(items[start : start + _LINKS_A_MESSAGE])))

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Take in what other workers wrote. To be called before a commit begins: it holds what comes of it."""
        ours = [partition for partition in self._held.staying() if partition not in self._answered]
        inboxes = await asyncio.to_thread(self._store.outbox.unread, ours, _MESSAGES)
        if not inboxes:
            return
        self.moved = True
        read = await asyncio.to_thread(self._unpacked, inboxes)
        for partition, messages in read.items():
            for message in messages:
                frontier.read(message, clock())
                await asyncio.sleep(0)
            self._answered[partition] = len(messages)

    def settle(self) -> None:
        """The commit that holds what came of the messages is applied: with it they are gone from the inboxes."""
        for partition, count in self._answered.items():
            self._store.outbox.messages_read(partition, count)
        self._answered.clear()

    def forget(self, partition: int) -> None:
        """Another worker reads the partition's messages from now on."""
        self._answered.pop(partition, None)

    def deliver_now(self, frontier: Frontier, now: float) -> None:
        """As ``deliver``, before a commit that nothing may come between. Blocking.

        StorageError: all of it waits for the next commit. What was done already is done twice then, to no effect.
        """
        own = [item for item in self.outbox if self._held.mine(item.address.host)]
        self._store.look_up(list(_keys_of(own)))
        frontier.add(own, now)
        theirs = [item for item in self.outbox if not self._held.mine(item.address.host)]
        for item in frontier.admission.allowed(theirs, now, elsewhere=True):
            self._store.outbox.post(self._store.store.partition(item.address.host), pack_message(Links([item])))
        self.outbox = []
        mine = [page for page in self.changed if self._held.mine(page[0].host)]
        self._look_up(mine)
        frontier.changed(mine, now)
        self._post_changed(page for page in self.changed if not self._held.mine(page[0].host))
        self.changed = []

    def _unpacked(self, inboxes: dict[int, list[bytes]]) -> dict[int, list[Message]]:
        """The messages; the store has looked up the pages in them. In a thread."""
        read = {partition: [unpack_message(message) for message in messages] for partition, messages in inboxes.items()}
        every = [message for messages in read.values() for message in messages]
        self._store.look_up([page for message in every for page in _pages_of(message)])
        changed = [page for message in every if isinstance(message, Changed) for page in message.pages]
        self._look_up(changed)
        return read

    def _look_up(self, changed: Sequence[tuple[Address, float]]) -> None:
        """Prefetch what is known of these pages and their hosts. In a thread."""
        hosts = {address.host for address, _ in changed}
        if changed:
            self._store.at_hand(hosts, [(address.key, address.host) for address, _ in changed])


def _slices(found: Sequence[DiscoveredUrl]) -> Iterator[Sequence[DiscoveredUrl]]:
    return (found[first : first + _URLS_A_TURN] for first in range(0, len(found), _URLS_A_TURN))


def _pages_of(message: Message) -> Iterable[tuple[bytes, str]]:
    return _keys_of(message.found) if isinstance(message, Links) else []


def _keys_of(found: Iterable[DiscoveredUrl]) -> Iterator[tuple[bytes, str]]:
    """The keys by which the frontier looks up what was found, each with its host."""
    for item in found:
        yield item.address.key, item.address.host
        if item.kind.is_external:
            yield item.queue_key, item.address.host
