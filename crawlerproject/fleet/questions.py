"""What all workers of a crawl share, and how it is asked for: many things at once, while the event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, ParamSpec, Protocol, TypeVar

from crawlerproject.errors import StorageError
from crawlerproject.rules.fleet_shares import QuotaRequest, Share
from crawlerproject.rules.politeness.address_turns import Claim
from crawlerproject.stores.protocols import NearText, Text

# Where answers take longer the next question does not wait for one: a page has at most this to wait beside the way.
_APART_SECONDS = 0.02
# Of one kind, as many as are begun in a sixth of a second: as far as a Redis may be.
_MOST_UNDER_WAY = 8
# Of all kinds; a thread is made when all there are wait for answers.
_THREADS = 32

P = ParamSpec("P")
T = TypeVar("T")


class Coordinator(Protocol):
    """One worker's way to the supervisor of a local fleet, or to Redis. StorageError: it cannot be known what was done.

    What was asked in vain may be asked again.
    """

    async def reserve(self, wanted: Sequence[Claim], rested: Sequence[Claim]) -> list[float]:
        """Give addresses back, then reserve others: of each wanted one what ``AddressTurns.ask`` says."""

    async def shares(self, claims: Sequence[QuotaRequest]) -> list[Share]:
        """Say how much is spent of sums, give back, and be granted some more of those that are wanted."""

    async def texts(self, added: Sequence[Text], values: Sequence[int], bits: int) -> list[list[NearText]]:
        """Add texts, then for each value what is within ``bits`` of it (three at most), nearest first."""


class Questions:
    """For one event loop. A question takes what has come up since the last: once that is answered, or takes long."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, None]], more: Callable[[], bool]) -> None:
        """``ask`` while there is ``more`` to be asked. What it takes it takes soon after it is called."""
        self._ask, self._more = ask, more
        self._task: asyncio.Task[None] | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Whether one is under way."""
        return bool(self._task or self._under_way)

    def start(self) -> None:
        """There is more."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def cancel(self) -> None:
        """Ask no more, and take no answer."""
        for task in [*self._under_way, *([self._task] if self._task is not None else [])]:
            task.cancel()

    async def _run(self) -> None:
        try:
            while self._more():
                asked = asyncio.get_running_loop().create_task(self._ask())
                self._under_way.add(asked)
                asked.add_done_callback(self._under_way.discard)
                await asyncio.wait([asked], timeout=_APART_SECONDS)
                while len(self._under_way) >= _MOST_UNDER_WAY:
                    await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._task = None


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, "questions")


async def asked(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What ``function`` returns, in a thread: those of ``asyncio.to_thread`` are for disks, three or four a core."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), lambda: function(*arguments, **named))


# A page that has no answer by then asks by itself, as without this (ours).
_PATIENCE_SECONDS = 2.0
GATHER_SECONDS = 0.01
"""Before each question about pages: at 450 pages a second four or five share one, which costs as much as one's."""
AT_A_TIME = 256
"""Pages in one question."""

Waiting = tuple[bytes, "asyncio.Future[None]"]


class ContentAhead:
    """First captures of payloads, for the pages that are compared with them. For one event loop."""

    def __init__(self, fetch: Callable[[Sequence[bytes]], None]) -> None:
        """``fetch`` is called in a thread, and may raise StorageError."""
        self._fetch = fetch
        self._waiting: list[Waiting] = []
        self._questions = Questions(self._once, lambda: bool(self._waiting))

    async def __call__(self, digest: bytes) -> None:
        """Until the first capture of the payload with this sha1 is at hand, or Redis does not say."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((digest, future))
        self._questions.start()
        await asyncio.wait([future], timeout=_PATIENCE_SECONDS)

    async def _once(self) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        some, self._waiting = self._waiting[:AT_A_TIME], self._waiting[AT_A_TIME:]
        try:
            await asked(self._fetch, [digest for digest, _ in some])
        except StorageError:
            pass  # the commit that fails likewise says so; such pages are compared with what is known here
        finally:
            for _, future in some:
                future.set_result(None)
