"""Links, news of changed pages and other messages between the workers of a fleet, whatever carries them.

A message is a row of its sender's frontier from the change that holds its cause until its effect is durable where it
went. Meanwhile it is in an inbox: in Redis (``stores/rocks/giving_store.py``), or in the memory of the supervisor
(``local/local_mail.py``). It may be posted there any number of times, and takes effect once: how far a box was read is
in the change that holds the effect. An inbox that is lost with whoever kept it is filled again by the senders.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.frontier.frontier_state import ChangedPage, Exchange, HostOwnership
from crawlerproject.frontier.other_workers import Changed, Links, Message, pack_message, unpack_message
from crawlerproject.frontier.passage import linking_domain
from crawlerproject.stores.protocols import Box, Changes, Inbox, Messages, Posted

if TYPE_CHECKING:
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.passage import DiscoveredUrl


LINKS_A_MESSAGE = 100
"""A frame of 16 MB takes as many of the longest URLs that settings may allow."""
_CHANGED_A_MESSAGE = 500
# Judged and queued in one turn of the loop, as one change of the store: below 10 ms (crawl/intake.py).
_URLS_A_TURN = 100
_Sent = tuple[bytes, int, str]
# Links that were sent, of each of two generations; some 280 bytes a link (measured), so 18 MB at most.
_MOST_SENT = 32_768
# A generation's time. What its worker refused it may take later, by another robots.txt or when there is room again; in
# a crawl of one process it is judged again each time.
_SENT_SECONDS = 600.0


class FleetHosts(HostOwnership):
    """Whose a host is, by its partition, and what is written to those who hold the others."""

    sole = False

    def __init__(self, partition: Callable[[str], int]) -> None:
        """``partition`` of a host key."""
        super().__init__()
        self.partition = partition
        self._links: defaultdict[int, list[DiscoveredUrl]] = defaultdict(list)  # of messages that are not full
        self._packed: list[tuple[int, bytes]] = []  # messages for the next commit, each with its partition

    def staying(self) -> Sequence[int]:
        """The partitions that this worker holds and keeps."""
        raise NotImplementedError

    @property
    def writing(self) -> bool:
        """Whether something waits for the next commit."""
        return bool(self._packed or self._links)

    def send(self, host: str, message: Message) -> None:
        """Write to the worker that decides about the host."""
        self.send_to(self.partition(host), message)

    def send_to(self, partition: int, message: Message) -> None:
        """As ``send``, to the worker that holds this partition."""
        self._packed.append((partition, pack_message(message)))

    def send_links(self, found: Iterable[DiscoveredUrl]) -> None:
        """As ``send``, each to its host's; up to so many to one holder are one message."""
        for item in found:
            partition = self.partition(item.address.host)
            links = self._links[partition]
            links.append(item)
            if len(links) == LINKS_A_MESSAGE:
                del self._links[partition]
                self.send_to(partition, Links(links))

    def add_messages(self, changes: Changes) -> None:
        """All that was written since, into the changes of a commit."""
        while self._links:
            partition, links = self._links.popitem()
            self.send_to(partition, Links(links))
        changes.messages += self._packed
        self._packed.clear()

    def send_changed(self, pages: Iterable[ChangedPage]) -> list[ChangedPage]:
        """Send the news of those that are others'; the own ones."""
        own: list[ChangedPage] = []
        others: defaultdict[int, list[ChangedPage]] = defaultdict(list)
        for page in pages:
            host = page[0].host
            (own if self.mine(host) else others[self.partition(host)]).append(page)
        for partition, some in others.items():
            for first in range(0, len(some), _CHANGED_A_MESSAGE):
                self.send_to(partition, Changed(some[first : first + _CHANGED_A_MESSAGE]))
        return own

    def parted(self, found: Iterable[DiscoveredUrl]) -> tuple[list[DiscoveredUrl], list[DiscoveredUrl]]:
        """Those of own hosts, and the others."""
        own: list[DiscoveredUrl] = []
        others: list[DiscoveredUrl] = []
        last, is_own = "", False
        for item in found:
            if (host := item.address.host) is not last:  # most links of a page have one host, and one text for it
                last, is_own = host, self.mine(host)
            (own if is_own else others).append(item)
        return own, others


class RecentlySentLinks:
    """Forgets by number and by time.

    Two links are the same when their worker would judge them alike at one moment: URL, kind, and who named it
    (rules/traps/budgets.py); where on whose pages they stand changes nothing about a URL that is known.
    """

    def __init__(self, most: int = _MOST_SENT, seconds: float = _SENT_SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._until = inf
        self._younger: set[_Sent] = set()
        self._older: set[_Sent] = set()

    def unsent(self, found: Iterable[DiscoveredUrl], now: float) -> list[DiscoveredUrl]:
        """Those that are not known to have been sent lately."""
        if now >= self._until:
            self._age()
            self._until = now + self._seconds if self._older else inf
        return [item for item in found if (key := _key(item)) not in self._younger and key not in self._older]

    def sent(self, found: Iterable[DiscoveredUrl], now: float) -> None:
        """These are in a message."""
        self._younger.update(map(_key, found))
        if self._until == inf:
            self._until = now + self._seconds
        if len(self._younger) > self._most:
            self._age()
            self._until = now + self._seconds

    def _age(self) -> None:
        self._older, self._younger = self._younger, set()


def _key(item: DiscoveredUrl) -> _Sent:
    return item.queue_key, item.flags, linking_domain(item.address.host, item.via, item.flags, item.note)


class Unread(NamedTuple):
    """A message that was fetched and has had no effect yet."""

    box: Box
    number: int
    packed: bytes


Fetch = Callable[[Sequence[int]], Awaitable[dict[int, Inbox]]]
"""The oldest messages to these partitions, as far as there are any. StorageError."""


class FleetExchange(Exchange):
    """For one event loop. What is for others' hosts is filtered and sent as it is found, the same link once in a while.

    What is read takes effect in the changes of the commit that follows.
    """

    def __init__(
        self, hosts: FleetHosts, messages: Messages, fetch: Fetch, answered: Callable[[int, Inbox], None]
    ) -> None:
        """``answered`` is called when what came of an inbox is applied: it may leave it once that is durable."""
        self.moved = False  # something came or went since this was last reset
        self.sent = 0  # links, since the start
        self.lately = RecentlySentLinks()
        self._hosts = hosts
        self._messages = messages
        self._fetch = fetch
        self._tell = answered
        self._answered: dict[int, Inbox] = {}  # read, with effects that are in no commit yet
        self._fetched: dict[int, Inbox] | None = None  # for the next ``read``
        self._done: dict[Box, int] = {}  # read, message by message: an inbox that was not read to its end, too

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be committed."""
        return not (self._answered or self._hosts.writing)

    # --- what is sent ---------------------------------------------------------------------------

    def take(self, found: Iterable[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        """Queue what is for own hosts, send the rest; how many are new here. StorageError."""
        own, others = self._hosts.parted(found)
        if others:
            allowed = frontier.admission.allowed(self.lately.unsent(others, now), now, elsewhere=True)
            self.lately.sent(allowed, now)
            self._hosts.send_links(allowed)
            self.sent += len(allowed)
        return frontier.add(own, now) if own else 0

    def changed(self, pages: Iterable[ChangedPage], frontier: Frontier, now: float) -> int:
        """Word of others' pages is sent."""
        return frontier.changed(self._hosts.send_changed(pages), now)

    # --- what comes -----------------------------------------------------------------------------

    async def ask(self) -> None:
        """Fetch what other workers wrote: for ``read``, which does so itself otherwise. StorageError."""
        self._fetched = await self._fetch([each for each in self._hosts.staying() if each not in self._answered])

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Take in what other workers wrote. To be called before a commit begins: it holds what comes of it."""
        if self._fetched is None:
            await self.ask()
        inboxes, self._fetched = self._fetched or {}, None
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
            known = done.get(box) or self._done.get(box) or self._messages.read_up_to(box)
            if each.after > known:
                continue  # what came before it is lost: its sender will find out, and post all of it again
            following.append(each)
            if each.number > known:
                done[box] = each.number
                unread.append(Unread(box, each.number, each.packed))
        return following, unread

    def settle(self) -> None:
        """The commit that holds what came of the messages is applied."""
        for partition, inbox in self._answered.items():
            self._tell(partition, inbox)
        self._answered.clear()
        self._done.clear()

    def forget(self, partition: int) -> None:
        """Another worker reads the partition's messages from now on."""
        self._answered.pop(partition, None)


def take_in(messages: Iterable[Unread], frontier: Frontier, now: float) -> tuple[list[Unread], int]:
    """Let some of the first of these take effect, links of several as one change; which, and how many URLs.

    What says that they are read goes with the same commit. StorageError: none has taken effect.
    """
    found: list[DiscoveredUrl] = []
    some: list[Unread] = []
    for each in messages:
        message = unpack_message(each.packed)
        if isinstance(message, Links):
            found += message.found
        elif some:
            break
        else:
            frontier.read(message, now)
        some.append(each)
        if len(found) >= _URLS_A_TURN or not isinstance(message, Links):
            break
    if found:
        frontier.read(Links(found), now)
    frontier.state.changes.read += ((each.box, each.number) for each in some)
    return some, len(found)
