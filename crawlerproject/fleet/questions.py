"""What all workers of a crawl share, and how it is asked for: many things at once, while the event loop goes on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, ParamSpec, Protocol, TypeVar

from crawlerproject.errors import FetchError, StorageError
from crawlerproject.frontier.passage import Lease
from crawlerproject.rules.fleet_shares import QuotaRequest, Share
from crawlerproject.rules.politeness.address_turns import Claim
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.stores.protocols import NearText, Text

logger = logging.getLogger(__name__)

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


# After a failure the next question waits so long (ours).
_AGAIN_SECONDS = 0.25
# Between two questions. A busy worker asks about some ten addresses with each, at a tenth of what ten questions cost;
# one that asks seldom does not wait.
_GAP_SECONDS = 0.02


class ReservationEnds(Protocol):
    """Is called with the answer to each reservation."""

    def granted(self, lease: Lease, error: FetchError | None) -> None:
        """The address is reserved for the lease."""

    def refused(self, lease: Lease, wait_seconds: float, *, gives_way: bool) -> None:
        """Another worker has the turn at the address; try again after this time.

        ``gives_way``: that is true of the lease's domain alone.
        """

    def quick_waits(self, lease: Lease) -> bool:
        """Whether a quick domain waits for the lease's address in this worker's line."""


class IpReservations:
    """A request waits until its IP address is reserved for it in the whole crawl.

    All that come up between two calls go with the second.
    """

    def __init__(
        self,
        reserve: Callable[[Sequence[Claim], Sequence[Claim]], Awaitable[list[float]]],
        ends: ReservationEnds,
        failed: Callable[[StorageError], None],
    ) -> None:
        """``reserve``: as ``Coordinator.reserve``; ``failed`` is called when it fails."""
        self._reserve = reserve
        self._ends, self._failed = ends, failed
        self._not_before = 0.0  # monotonic
        self._wanted: list[tuple[Lease, FetchError | None]] = []
        self._rested: list[Claim] = []
        self._questions = Questions(self._once, lambda: bool(self._wanted or self._rested))
        self._number = 0

    @property
    def waiting(self) -> int:
        """Leases that wait for an answer."""
        return len(self._wanted) + self._questions.busy

    def want(self, lease: Lease, error: FetchError | None = None) -> None:
        """Reserve the lease's address, sometime soon."""
        self._number += 1
        lease.mark = str(self._number)
        self._wanted.append((lease, error))
        self._questions.start()

    def rest(self, lease: Lease) -> None:
        """The lease has ended: its address rests, then any worker may ask it."""
        if lease.mark:
            self._rested.append(self._claim(lease))
            lease.mark = ""
            self._questions.start()

    def _claim(self, lease: Lease) -> Claim:
        domain, quick_waits = bounded_domain(lease.host.name), self._ends.quick_waits(lease)
        return Claim(lease.address, lease.mark, domain, quick_waits, lease.took_seconds)

    def close(self) -> None:
        """Ask no more; what is reserved falls free by itself."""
        self._questions.cancel()

    async def _once(self) -> None:
        if (gap := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(gap)
        self._not_before = time.monotonic() + _GAP_SECONDS
        wanted, self._wanted = self._wanted, []
        rested, self._rested = self._rested, []
        claims = [self._claim(lease) for lease, _ in wanted]
        if not (claims or rested):
            return
        try:
            waits = await self._reserve(claims, rested)
        except Exception as error:  # whatever it is: leases without an answer would keep their hosts for the whole run
            if isinstance(error, StorageError):
                self._failed(error)
            else:
                logger.exception("%s not reserved, to be tried again", counted(len(wanted), "address", "addresses"))
            # What may be reserved without our knowing is given back, so that nothing waits until it falls free.
            self._rested = [*rested, *claims, *self._rested]
            self._not_before = time.monotonic() + _AGAIN_SECONDS
            waits = [_AGAIN_SECONDS] * len(wanted)
        for (lease, failure), wait in zip(wanted, waits, strict=True):
            if wait:
                lease.mark = ""
                self._ends.refused(lease, abs(wait), gives_way=wait < 0)
            else:
                self._ends.granted(lease, failure)
