"""IP addresses shared with other workers: a request waits until its address is reserved for it in the whole crawl."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from crawlerproject.errors import FetchError, StorageError
from crawlerproject.fleet.questions import Questions
from crawlerproject.frontier.passage import Lease
from crawlerproject.rules.politeness.address_turns import Claim
from crawlerproject.rules.url.domains import bounded_domain

logger = logging.getLogger(__name__)

# After a failure the next question waits so long (ours).
_AGAIN_SECONDS = 0.25
# Between two questions. A busy worker asks about some ten addresses with each, at a tenth of what ten questions cost;
# one that asks seldom does not wait.
_GAP_SECONDS = 0.02

Waiting = tuple[Lease, FetchError | None]


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
    """Batches requests: all that come up between two calls go with the second."""

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
        self._wanted: list[Waiting] = []
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
                logger.exception("%d addresses cannot be reserved; they are tried again", len(wanted))
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
