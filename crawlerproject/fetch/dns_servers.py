"""Asks DNS servers for the addresses of a name, with aiodns: imported by the first question, which many crawls have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any

import aiodns
from aiodns.error import ARES_EBADNAME, ARES_ENODATA, ARES_ENONAME, ARES_ENOTFOUND, ARES_ETIMEOUT, DNSError
from pycares import AAAARecordData, ARecordData, PTRRecordData

# The longest wait for one datagram's answer: a third of the time that a look-up has. c-ares waits for less where its
# server was quick of late (five times as long as it took, 250 ms at least; 1.34, ares_metrics.c).
_OF_THE_TIME = 1 / 3
# Before a server is asked again, doubled each time: one that is busy for a second answers then.
_AGAIN_SECONDS = 0.5
_NO_SUCH_NAME = frozenset((ARES_ENOTFOUND, ARES_EBADNAME, ARES_ENONAME))
# Each server may fail so often to find an answer (SERVFAIL, REFUSED), as with c-ares' own default of two tries or more.
_TRIES = 2

MaySend = Callable[[], Awaitable[object]]


class NoAnswer(Exception):
    """Of the servers. ``wrong_name``: there is no such name, or it cannot be one."""

    def __init__(self, detail: str, *, wrong_name: bool) -> None:
        super().__init__(detail)
        self.detail = detail
        self.wrong_name = wrong_name


class DnsServers:
    """Those given as addresses, or the system's.

    Each has a channel of its own, which sends one datagram a question: of itself c-ares would ask every server, and
    each again, which no rate could count.
    """

    def __init__(self, servers: Sequence[str], timeout_seconds: float) -> None:
        self._servers = tuple(servers)
        self._try_seconds = timeout_seconds * _OF_THE_TIME
        self._channels: list[aiodns.DNSResolver] = []
        self._first = 0  # of the channels, the one that answered last

    async def addresses(self, name: str, kind: str, may_send: MaySend) -> tuple[tuple[str, ...], float]:
        """Addresses of one kind (A, AAAA; PTR: names) and the smallest TTL on the way (CNAMEs included), in seconds.

        Asks until there is an answer or the caller's time is over; ``may_send`` is awaited before each datagram.
        Raises NoAnswer.
        """
        try:
            result = await self._ask(name, kind, may_send)
        except (DNSError, ValueError, OSError) as error:  # ValueError: a name that is not ASCII
            number = error.args[0] if error.args else None
            if isinstance(error, DNSError) and number == ARES_ENODATA:
                return (), 0.0
            wrong_name = isinstance(error, ValueError) or number in _NO_SUCH_NAME
            raise NoAnswer(str(error.args[-1]) if error.args else "", wrong_name=wrong_name) from error
        found = [record.data for record in result.answer]
        addresses = tuple(data.addr for data in found if isinstance(data, (ARecordData, AAAARecordData)))
        names = tuple(data.dname.lower().rstrip(".") for data in found if isinstance(data, PTRRecordData))
        return addresses or names, min((float(record.ttl) for record in result.answer), default=0.0)

    async def _ask(self, name: str, kind: str, may_send: MaySend) -> Any:
        """One server after the other, that which answered last first; once more where none of them has an answer."""
        if not self._channels:
            servers = self._servers or tuple(aiodns.DNSResolver().nameservers)
            for server in servers or (None,):
                given = None if server is None else [server]
                self._channels.append(aiodns.DNSResolver(given, timeout=self._try_seconds, tries=1))
        channels = self._channels
        for rounds in count(1):
            failed: DNSError | None = None
            for at in (*range(self._first, len(channels)), *range(self._first)):
                await may_send()
                try:
                    answer = await channels[at].query_dns(name, kind)
                except DNSError as error:
                    number = error.args[0] if error.args else None
                    if number == ARES_ETIMEOUT:
                        continue
                    if number in _NO_SUCH_NAME or number == ARES_ENODATA:
                        self._first = at
                        raise
                    failed = error
                else:
                    self._first = at
                    return answer
            if failed is not None and rounds >= _TRIES:
                raise failed
            if failed is None:
                await asyncio.sleep(_AGAIN_SECONDS * 2 ** (rounds - 1))

    async def close(self) -> None:
        """Give up all questions."""
        for channel in self._channels:
            await channel.close()
        self._channels = []
