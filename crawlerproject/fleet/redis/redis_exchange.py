"""Between workers over Redis: which partitions this one holds, and the URLs and messages that it sends and receives.

What comparing pages will ask of Redis is asked for many of them together, while the event loop goes on.

One question a page on the loop would make the way to Redis the crawl's pace: at 20 ms there and back 34 requests a
second of 152, at 100 ms 9 (``benchmarks/redis_latency.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

from crawlerproject.errors import StorageError
from crawlerproject.fleet.link_exchange import ChangedPage, FleetExchange, FleetHosts
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.other_workers import Changed, Links, Message, unpack_message
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.runtime.clock import since_boot
from crawlerproject.stores.protocols import Comparison
from crawlerproject.stores.redis.buffer.buffered_store import BufferedStore

# URLs that are looked up and queued as one.
_URLS_AT_A_TIME = 5_000
# Of these, judged and queued in one turn of the loop: some 10 ms.
_URLS_A_TURN = 250
# Messages of one partition that are read before one commit.
_MESSAGES = 250
# Workers' ideas of the store's time differ by no more, or by what their way to Redis takes (on one machine 1 ms).
LEAST_DOUBT_SECONDS = 0.025


class HeldPartitions(FleetHosts):
    """Those of a worker over Redis. Moments are seconds since boot where nothing else is said."""

    doubt_seconds = LEAST_DOUBT_SECONDS

    def __init__(self, store: BufferedStore, answer_seconds: float) -> None:
        """``answer_seconds``: no request takes longer, so none is begun when its lease could end before it."""
        super().__init__(store.store.partition, store.outbox.post)
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
        partition = self.partition(host)
        return partition in self._unsure_until and partition not in self.leaving

    def may_ask(self, host: str) -> bool:
        """Whether an answer will surely come before another worker may ask the host."""
        return self.mine(host) and self.ask_until(host) >= since_boot() + self._answer_seconds

    def crowded(self) -> bool:
        """Whether the next write has much to send already."""
        return self._store.outbox.crowded

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


class RedisExchange(FleetExchange):
    """A message is gone from its inbox only with the commit that holds what came of it. For one event loop.

    What is for own hosts waits for the next commit: the store is asked about all of it together.
    """

    def __init__(self, store: BufferedStore, held: HeldPartitions) -> None:
        super().__init__(held)
        self.outbox: list[DiscoveredUrl] = []
        self.announced: list[ChangedPage] = []  # known pages that have changed, by our lists
        self._store = store
        self._held = held
        self._answered: dict[int, int] = {}  # by partition: messages read, whose effects are in no commit yet

    def _queue(self, own: list[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        self.outbox += own
        return 0

    def _announce(self, own: list[ChangedPage], frontier: Frontier, now: float) -> int:
        self.announced += own
        return 0

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be delivered."""
        return not (self.outbox or self.announced or self._held.writing)

    async def deliver(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Queue what waits; send what is for hosts that another worker holds by now."""
        found, self.outbox = self.outbox, []
        try:
            while found:
                own, others = self._held.parted(found[:_URLS_AT_A_TIME])
                await asyncio.to_thread(self._store.look_up, list(_keys_of(own)))
                for first in range(0, len(own), _URLS_A_TURN):
                    frontier.add(own[first : first + _URLS_A_TURN], clock())
                    await asyncio.sleep(0)
                self._held.send_links(others)
                del found[:_URLS_AT_A_TIME]
                self.moved = True
                if found:
                    await asyncio.to_thread(self._store.sync)
            while some := self.announced[:_URLS_AT_A_TIME]:
                pages = self._held.send_changed(some)
                await asyncio.to_thread(self._look_up, pages)
                for first in range(0, len(pages), _URLS_A_TURN):
                    frontier.changed(pages[first : first + _URLS_A_TURN], clock())
                    await asyncio.sleep(0)
                del self.announced[: len(some)]  # more may have come meanwhile
                self.moved = True
            self._held.flush()
        except StorageError:
            self.outbox = found + self.outbox
            raise

    def deliver_now(self, frontier: Frontier, now: float) -> None:
        """As ``deliver``, before a commit that nothing may come between. Blocking.

        StorageError: all of it waits for the next commit. What was done already is done twice then, to no effect.
        """
        own, others = self._held.parted(self.outbox)
        self._store.look_up(list(_keys_of(own)))
        frontier.add(own, now)
        self._held.send_links(others)
        self.outbox = []
        pages = self._held.send_changed(self.announced)
        self._look_up(pages)
        frontier.changed(pages, now)
        self.announced = []
        self._held.flush()

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

    def _unpacked(self, inboxes: dict[int, list[bytes]]) -> dict[int, list[Message]]:
        """The messages; the store has looked up the pages in them. In a thread."""
        read = {partition: [unpack_message(message) for message in messages] for partition, messages in inboxes.items()}
        every = [message for messages in read.values() for message in messages]
        self._store.look_up(
            [page for message in every if isinstance(message, Links) for page in _keys_of(message.found)]
        )
        changed = [page for message in every if isinstance(message, Changed) for page in message.pages]
        self._look_up(changed)
        return read

    def _look_up(self, changed: Sequence[ChangedPage]) -> None:
        """Prefetch what is known of these pages and their hosts. In a thread."""
        hosts = {address.host for address, _ in changed}
        if changed:
            self._store.at_hand(hosts, [(address.key, address.host) for address, _ in changed])


def _keys_of(found: Iterable[DiscoveredUrl]) -> Iterator[tuple[bytes, str]]:
    """The keys by which the frontier looks up what was found, each with its host."""
    for item in found:
        yield item.address.key, item.address.host
        if item.kind.is_external:
            yield item.queue_key, item.address.host


# A page that has no answer by then asks by itself, as without this (ours).
_PATIENCE_SECONDS = 2.0
# Between two questions, as of texts (fleet/text_questions.py).
_GATHER_SECONDS = 0.01
# Pages in one question.
_AT_A_TIME = 256

Waiting = tuple[Comparison, "asyncio.Future[None]"]


class ContentAhead:
    """For one event loop; one question is under way at a time."""

    def __init__(self, fetch: Callable[[Sequence[Comparison]], None]) -> None:
        """``fetch`` is called in a thread, and may raise StorageError."""
        self._fetch = fetch
        self._waiting: list[Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, page: Comparison) -> None:
        """Until what the page is compared with is at hand, or Redis does not say."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append((page, future))
        if self._task is None:
            self._task = loop.create_task(self._run())
        await asyncio.wait([future], timeout=_PATIENCE_SECONDS)

    async def _run(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(_GATHER_SECONDS)
                some, self._waiting = self._waiting[:_AT_A_TIME], self._waiting[_AT_A_TIME:]
                try:
                    await asyncio.to_thread(self._fetch, [page for page, _ in some])
                except StorageError:
                    pass  # the commit that fails likewise says so; such pages are compared with what is known here
                finally:
                    for _, future in some:
                        future.set_result(None)
        finally:
            self._task = None
