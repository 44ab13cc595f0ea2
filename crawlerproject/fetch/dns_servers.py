"""Asks DNS servers for the addresses of a name, with aiodns: imported by the first question, which many crawls have."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any

import aiodns
from aiodns.error import ARES_EBADNAME, ARES_ENODATA, ARES_ENONAME, ARES_ENOTFOUND, ARES_ETIMEOUT, DNSError
from pycares import AAAARecordData, ARecordData

_TRIES = 2  # c-ares doubles the wait of each, so that the first gets a third of the time
# c-ares waits five times as long as its servers took of late, 250 ms at least (1.34, ares_metrics.c): after many quick
# answers its two tries are over in 0.75 s, and a server that is busy for a second would not be asked again.
_AGAIN_SECONDS = 0.5  # doubled each time
_NO_SUCH_NAME = frozenset((ARES_ENOTFOUND, ARES_EBADNAME, ARES_ENONAME))


class NoAnswer(Exception):
    """Of the servers. ``wrong_name``: there is no such name, or it cannot be one."""

    def __init__(self, detail: str, *, wrong_name: bool) -> None:
        super().__init__(detail)
        self.detail = detail
        self.wrong_name = wrong_name


class DnsServers:
    """Those given as addresses, or the system's."""

    def __init__(self, servers: Sequence[str], timeout_seconds: float) -> None:
        self._servers = tuple(servers)
        self._try_seconds = timeout_seconds / (2**_TRIES - 1)
        self._dns: aiodns.DNSResolver | None = None

    async def addresses(self, name: str, kind: str) -> tuple[tuple[str, ...], float]:
        """Addresses of one kind (A, AAAA) and the smallest TTL on the way (CNAMEs included), in seconds.

        Asks until there is an answer or the caller's time is over. Raises NoAnswer.
        """
        try:
            result = await self._ask(name, kind)
        except (DNSError, ValueError, OSError) as error:  # ValueError: a name that is not ASCII
            number = error.args[0] if error.args else None
            if isinstance(error, DNSError) and number == ARES_ENODATA:
                return (), 0.0
            wrong_name = isinstance(error, ValueError) or number in _NO_SUCH_NAME
            raise NoAnswer(str(error.args[-1]) if error.args else "", wrong_name=wrong_name) from error
        addresses = tuple(
            record.data.addr for record in result.answer if isinstance(record.data, (ARecordData, AAAARecordData))
        )
        return addresses, min((float(record.ttl) for record in result.answer), default=0.0)

    async def _ask(self, name: str, kind: str) -> Any:
        if self._dns is None:
            self._dns = aiodns.DNSResolver(self._servers or None, timeout=self._try_seconds, tries=_TRIES)
        for tries in count():
            try:
                return await self._dns.query_dns(name, kind)
            except DNSError as error:
                if not error.args or error.args[0] != ARES_ETIMEOUT:
                    raise
            await asyncio.sleep(_AGAIN_SECONDS * 2**tries)

    async def close(self) -> None:
        """Give up all questions."""
        if self._dns is not None:
            await self._dns.close()
