"""Caches scripts and data files that several pages of a crawl need: each is fetched once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from time import monotonic
from typing import NamedTuple

from crawlerproject.rules.rendering.browser_limits import Reuse

# What an answer takes beside its body, its headers and its URL (some 600 bytes measured).
_ENTRY_BYTES = 1_000


class Subresource(NamedTuple):
    """The response to a sub-request, as it is passed to the browser."""

    status: int
    headers: dict[str, str]  # lower-case names
    body: bytes  # decoded
    reuse: Reuse | None = None  # None: it serves no other page


class CacheQuery(NamedTuple):
    """A sub-request, in all that its answer may depend on."""

    url: str
    origin: str | None  # as it is sent; None without one
    site: str  # of the page


_Key = tuple[str, bool, str | None, str | None]


class SharedCache:
    """Responses by what they depend on, least recently used out first.

    A request waits for one that is under way if the answer may serve both.
    """

    def __init__(self, max_bytes: int, clock: Callable[[], float] = monotonic) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._bytes = 0
        self._kept: OrderedDict[_Key, tuple[Subresource, float]] = OrderedDict()  # with the end of its use
        self._coming: dict[str | CacheQuery, asyncio.Future[bool]] = {}  # True: see _speaks_for_others

    async def get(
        self,
        wanted: CacheQuery,
        fetch: Callable[[], Awaitable[Subresource]],
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> tuple[Subresource, bool]:
        """The response, and whether the cache had it; ``fetch`` is called if it is neither here nor being fetched.

        ``waiting`` is entered while another page's fetch is under way.
        """
        # A fetch for any page first; if its answer does not serve, one for the like of ours.
        ways = (wanted.url, wanted)
        for way in ways:
            while (coming := self._coming.get(way)) is not None:
                with waiting():
                    spoke_for_others = await asyncio.shield(coming)
                if spoke_for_others:
                    break
            if (kept := self._find(wanted)) is not None:
                return kept, True
        coming, spoke_for_others = asyncio.get_running_loop().create_future(), False
        ours = [way for way in ways if way not in self._coming]
        self._coming.update(dict.fromkeys(ours, coming))
        try:
            answer = await fetch()
            spoke_for_others = _speaks_for_others(answer)
            if answer.reuse is not None:
                self._keep(wanted, answer, answer.reuse)
            return answer, False
        finally:
            for way in ours:
                del self._coming[way]
            coming.set_result(spoke_for_others)

    def _find(self, wanted: CacheQuery) -> Subresource | None:
        now = self._clock()
        for site in (None, wanted.site):
            for by_origin in (False, True):
                key = _key(wanted, by_origin=by_origin, site=site)
                found = self._kept.get(key)
                if found is not None and now < found[1]:
                    self._kept.move_to_end(key)
                    return found[0]
        return None

    def _keep(self, wanted: CacheQuery, answer: Subresource, reuse: Reuse) -> None:
        key = _key(wanted, by_origin=reuse.by_origin, site=wanted.site if reuse.own_site else None)
        before = self._kept.pop(key, None)
        if before is not None:
            self._bytes -= _size(key, before[0])
        if _size(key, answer) > self._max_bytes:
            return
        self._kept[key] = answer, self._clock() + reuse.seconds
        self._bytes += _size(key, answer)
        while self._bytes > self._max_bytes:
            oldest, (evicted, _) = self._kept.popitem(last=False)
            self._bytes -= _size(oldest, evicted)


def _speaks_for_others(answer: Subresource) -> bool:
    """Whether those of other sites who waited for it know by it that they have to ask for themselves.

    After a failure, and after an answer for one site, they do not: one of them asks, and the others wait for that.
    """
    return answer.status < 400 and not (answer.reuse is not None and answer.reuse.own_site)


def _key(wanted: CacheQuery, *, by_origin: bool, site: str | None) -> _Key:
    return wanted.url, by_origin, wanted.origin if by_origin else None, site


def _size(key: _Key, answer: Subresource) -> int:
    fields = sum(len(name) + len(value) for name, value in answer.headers.items())
    return len(answer.body) + fields + len(key[0]) + _ENTRY_BYTES
