"""Caches scripts and data files that several pages of a crawl need: each is fetched once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple


class Embedded(NamedTuple):
    """The response to a sub-request, as it is passed to the browser."""

    status: int
    headers: dict[str, str]  # lower-case names
    body: bytes  # decoded
    keep: bool = True  # it may serve other pages


class SharedCache:
    """Responses by URL, least recently used out first. A request for one that is being fetched waits for that fetch."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, Embedded] = OrderedDict()
        self._coming: dict[str, asyncio.Future[Embedded | None]] = {}

    async def get(
        self,
        url: str,
        fetch: Callable[[], Awaitable[Embedded]],
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> tuple[Embedded, bool]:
        """The response, and whether the cache had it; ``fetch`` is called if it is neither here nor being fetched.

        ``waiting`` is entered while another page's fetch is under way.
        """
        while (coming := self._coming.get(url)) is not None:
            with waiting():
                found = await asyncio.shield(coming)
            if found is not None:
                return found, True
        kept = self._kept.get(url)
        if kept is not None:
            self._kept.move_to_end(url)
            return kept, True
        coming = self._coming[url] = asyncio.get_running_loop().create_future()
        answer: Embedded | None = None
        try:
            answer = await fetch()
            if answer.keep:
                self._keep(url, answer)
            return answer, False
        finally:
            del self._coming[url]
            coming.set_result(answer if answer is not None and answer.keep else None)

    def _keep(self, url: str, answer: Embedded) -> None:
        if len(answer.body) > self._max_bytes:
            return
        self._kept[url] = answer
        self._bytes += len(answer.body)
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._kept.popitem(last=False)[1].body)
