"""A worker's end of the connections to all others of its local fleet: it listens, connects, sends and acknowledges."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from crawlerproject.errors import FrontierDamaged, OperatorError, StorageError
from crawlerproject.fleet.messaging import message_delivery
from crawlerproject.fleet.messaging.local_exchange import LocalExchange, LocalHosts
from crawlerproject.fleet.messaging.message_delivery import BrokenConnection, FrameKind, Hello, Incoming, Outgoing
from crawlerproject.runtime.unix_sockets import connected, listening
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.protocols import Box, FrontierStore

logger = logging.getLogger(__name__)

# Between two tries to connect to a worker that is not there: some 30 µs each.
_AGAIN_SECONDS = 0.25


class _Receiver:
    """Another worker, as this one sends to it."""

    def __init__(self, name: str, folder: CrawlDir, outgoing: Outgoing) -> None:
        self.name = name
        self.socket = folder.mail_socket
        self.outgoing = outgoing
        self.wake = asyncio.Event()  # there may be something to send


class PeerLinks:
    """For one event loop. ``hosts`` is the frontier's ownership, ``exchange`` what its commits call.

    An error of the disk's, or of ours, that ends a part of its work is raised by ``synced``.
    """

    def __init__(
        self, store: FrontierStore, crawl: CrawlDir, worker: str, plan: FleetPlan, unsure_until: float = 0.0
    ) -> None:
        """``crawl``: its folder, in which the workers of ``plan`` have theirs; ``unsure_until``: as for LocalHosts."""
        self._store = store
        self._worker = worker
        self._plan = plan
        self._socket = CrawlDir(crawl / worker).mail_socket
        self._receivers = self._others(crawl)
        self.hosts = LocalHosts(plan, worker, unsure_until)
        self._incoming = Incoming(store.messages, self.hosts.partitions)
        outgoing = [receiver.outgoing for receiver in self._receivers.values()]
        self.exchange = LocalExchange(store.messages, self.hosts, self._incoming, outgoing)
        self._server: asyncio.Server | None = None
        self._to_listen = False  # from the start on, until it does
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()  # frames may be taken from connections
        self._error: BaseException | None = None

    def _others(self, crawl: CrawlDir) -> dict[str, _Receiver]:
        mail, boxes = self._store.messages, defaultdict[str, list[Box]](list)
        for box in mail.boxes():
            boxes[self._holder(box.partition)].append(box)
        names = [name for name in self._plan.workers if name != self._worker]
        return {name: _Receiver(name, CrawlDir(crawl / name), Outgoing(mail, boxes[name])) for name in names}

    def _holder(self, partition: int) -> str:
        return self._plan.workers[self._plan.holders[partition]]

    # --- for the crawl --------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to send and to listen. Raises StorageError, and OperatorError where there can be no socket."""
        await asyncio.to_thread(self._store.sync)  # what an earlier process of this worker left is sent, too
        for receiver in self._receivers.values():
            self._begin(self._keep_sending(receiver))
        self._to_listen = True
        self._listen_when_ready()

    async def stop(self) -> None:
        """End all connections: what is on its way comes again after the next start. Harmless when done twice."""
        tasks = list(self._tasks)
        self.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """As ``stop``, without waiting: the store is asked nothing more."""
        self._to_listen = False
        if self._server is not None:
            self._server.close()
            self._server = None
            with suppress(OSError):
                self._socket.unlink()
        for task in self._tasks:
            task.cancel()

    def synced(self) -> None:
        """To be called after each commit: what is applied and synced is sent and acknowledged."""
        mail = self._store.messages
        if mail.durable.last >= mail.applied.last:
            for partition in mail.take_changed():
                receiver = self._receivers[self._holder(partition)]
                receiver.outgoing.more(Box(partition, mail.outbox))
                receiver.wake.set()
        self._incoming.synced()
        if not self._incoming.full:
            self._room.set()
        self._listen_when_ready()
        if self._error is not None:
            raise self._error

    def unread(self) -> list[str]:
        """The workers that have not acknowledged all that was sent, or is to be sent, to them."""
        return [name for name, receiver in self._receivers.items() if not receiver.outgoing.empty]

    @property
    def quiet(self) -> bool:
        """Whether nothing waits here: to be read, to be written, or to be synced and sent."""
        mail = self._store.messages
        return self.exchange.empty and mail.durable.last >= mail.applied.last

    # --- sending --------------------------------------------------------------------------------

    async def _keep_sending(self, receiver: _Receiver) -> None:
        while True:
            with _until_broken(receiver.name):
                reader, writer = await asyncio.open_unix_connection(sock=connected(receiver.socket, 0.0))
                with _aborting(writer):
                    writer.write(message_delivery.hello_frame(Hello(self._worker, receiver.name)))
                    self._require(await _frame(reader, FrameKind.HELLO), receiver.name)
                    await self._send_until_broken(receiver, reader, writer)
            receiver.outgoing.lost()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _send_until_broken(
        self, receiver: _Receiver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Send and read until the connection is broken."""
        receiving = asyncio.create_task(self._receive_acks(receiver, reader))

        def ended(_: object) -> None:
            writer.transport.abort()
            receiver.wake.set()

        receiving.add_done_callback(ended)
        try:
            while not receiving.done():
                posts = receiver.outgoing.next()
                if posts:
                    writer.write(message_delivery.posts_frame(posts))
                    await writer.drain()
                    await asyncio.sleep(0)  # one slice a turn
                else:
                    receiver.wake.clear()
                    await receiver.wake.wait()
            receiving.result()
        finally:
            receiving.cancel()

    async def _receive_acks(self, receiver: _Receiver, reader: asyncio.StreamReader) -> None:
        while True:
            for box, up_to in message_delivery.acks_of(await _frame(reader, FrameKind.ACKS)):
                receiver.outgoing.acknowledged(box, up_to)
            receiver.wake.set()

    # --- receiving ------------------------------------------------------------------------------

    def _listen_when_ready(self) -> None:
        """Once what was left for hosts of ours is read: it is older than what may be sent for the same partitions."""
        if not self._to_listen or self.exchange.left:
            return
        self._to_listen = False
        try:
            here = listening(self._socket)
        except OSError as error:
            raise OperatorError(
                f"{self._socket} cannot be made ({error.strerror}); set CRAWL_DIR to a folder on this machine's disk."
            ) from error
        self._begin(self._listen(here))

    async def _listen(self, here: socket.socket) -> None:
        self._server = await asyncio.start_unix_server(lambda *both: self._begin(self._serve(*both)), sock=here)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with _until_broken("another worker"), _aborting(writer):
            hello = message_delivery.hello_of(await _frame(reader, FrameKind.HELLO))
            self._require(hello, hello.sender if hello.sender in self._receivers else "a worker of this crawl")
            writer.write(message_delivery.hello_frame(Hello(self._worker, hello.sender)))

            def acknowledge() -> None:
                if not writer.is_closing():
                    writer.write(message_delivery.acks_frame(connection.take_acks()))

            connection = self._incoming.begin(partial(asyncio.get_running_loop().call_soon, acknowledge))
            try:
                while True:
                    body = await _frame(reader, FrameKind.POSTS)
                    self._incoming.take(connection, message_delivery.posts_of(body))
                    while self._incoming.full:
                        self._room.clear()
                        await self._room.wait()
            finally:
                self._incoming.end(connection)

    # --- both -----------------------------------------------------------------------------------

    def _require(self, greeting: bytes | Hello, sender: str) -> None:
        """Raise BrokenConnection unless the other side is this worker, and speaks to us in our format."""
        hello = greeting if isinstance(greeting, Hello) else message_delivery.hello_of(greeting)
        if hello != Hello(sender, self._worker):
            raise BrokenConnection(f"instead of {sender} there is {hello}")

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error


@contextmanager
def _aborting(writer: asyncio.StreamWriter) -> Iterator[None]:
    """What is not sent yet comes again over the next connection."""
    try:
        yield
    finally:
        writer.transport.abort()


async def _frame(reader: asyncio.StreamReader, wanted: FrameKind) -> bytes:
    """The content of the next frame. Raises OSError, EOFError, BrokenConnection."""
    kind, size = message_delivery.head_of(await reader.readexactly(message_delivery.HEAD.size))
    if kind is not wanted:
        raise BrokenConnection(f"{kind.name} instead of {wanted.name}")
    return await reader.readexactly(size)


@contextmanager
def _until_broken(whose: str) -> Iterator[None]:
    """What ends a connection, and nothing else: the other worker is not there, has died, or is of another version.

    So does an own frontier that is closed for want of room: it is asked again later.
    """
    try:
        yield
    except FrontierDamaged:
        raise
    except BrokenConnection as error:
        logger.warning("A connection to %s begins anew: %s", whose, error)
    except (OSError, EOFError, StorageError) as error:
        logger.debug("No connection to %s: %s", whose, error)
