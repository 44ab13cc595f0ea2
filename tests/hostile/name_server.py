"""A DNS server in a thread of the test: it answers as the test says, and knows what it was asked for, and when."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset


class NameServer(asyncio.DatagramProtocol):
    """One address for each name, or none: there is no such name then."""

    def __init__(self, address_of: Callable[[str], str]) -> None:
        self.asked: dict[str, float] = {}  # when first; c-ares asks again when this thread waits for its turn
        self.datagrams = 0
        self._address_of = address_of
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A question."""
        query = dns.message.from_wire(data)
        name = query.question[0].name.to_text().lower().rstrip(".")
        self.datagrams += 1
        self.asked.setdefault(name, time.monotonic())
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        if address := self._address_of(name):
            kind = dns.rdatatype.to_text(query.question[0].rdtype)
            answer.answer.append(dns.rrset.from_text(name + ".", 300, "IN", kind, address))
        else:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        self.transport.sendto(answer.to_wire(), addr)


@contextmanager
def name_server(address_of: Callable[[str], str]) -> Iterator[tuple[NameServer, str]]:
    """The server, and where it listens. ``address_of`` a name: "" when there is no such name."""
    loop, server = asyncio.new_event_loop(), NameServer(address_of)
    transport, _ = loop.run_until_complete(loop.create_datagram_endpoint(lambda: server, local_addr=("127.0.0.1", 0)))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server, "{}:{}".format(*transport.get_extra_info("sockname"))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        transport.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
