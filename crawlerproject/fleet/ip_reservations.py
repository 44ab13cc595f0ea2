"""IP addresses shared with other workers: a request waits until its address is reserved for it in the whole crawl."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from crawlerproject.errors import FetchError, StorageError
from crawlerproject.fleet.local.supervisor_link import ADDRESSES, SupervisorLink
from crawlerproject.fleet.questions import Questions, asked
from crawlerproject.frontier.passage import Lease
from crawlerproject.rules.politeness.address_turns import Claim
from crawlerproject.rules.url.domains import bounded_domain

if TYPE_CHECKING:
    from crawlerproject.fleet.redis.fleet_worker import Fleet

logger = logging.getLogger(__name__)

# After a failure an address is asked for again after so long at least (ours).
_AGAIN_SECONDS = 0.25
LOCAL_GAP_SECONDS = 0.02
"""Between two questions to a supervisor. A busy worker asks about some ten addresses with each, at a tenth of what ten
questions cost; one that asks seldom does not wait."""

Waiting = tuple[Lease, FetchError | None]


Reserve = Callable[[Sequence[Lease], Sequence[Claim], Sequence[Claim]], Awaitable[list[float]]]
"""Claims the addresses of leases and gives others back: for each lease what ``AddressTurns.ask`` says.
Raises StorageError."""


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


def in_redis(fleet: Fleet, *, hold_seconds: float, rest_seconds: float) -> Reserve:
    """Those over Redis. A worker that dies holds an address for ``hold_seconds``: no request takes longer."""
    hold_ms, rest_ms = int(hold_seconds * 1000), int(rest_seconds * 1000)

    async def reserve(leases: Sequence[Lease], wanted: Sequence[Claim], rested: Sequence[Claim]) -> list[float]:
        return await asked(fleet.fleet.addresses, wanted, rested, hold_ms, rest_ms)

    return reserve


def of_supervisor(link: SupervisorLink) -> Reserve:
    """Those of a local fleet, which a worker holds for as long as its connection lives."""

    async def reserve(leases: Sequence[Lease], wanted: Sequence[Claim], rested: Sequence[Claim]) -> list[float]:
        named = [(each.address, each.domain, each.quick_waits) for each in wanted]
        given_back = [(each.address, each.quick_waits, each.took_seconds) for each in rested]
        waits: list[float] = await link.ask(ADDRESSES, named, given_back)
        return waits

    return reserve


class IpReservations:
    """Batches requests: all that come up between two calls go with the second."""

    def __init__(
        self,
        reserve: Reserve,
        ends: ReservationEnds,
        failed: Callable[[StorageError], None],
        *,
        rest_seconds: float,
        worker: str = "",
        gap_seconds: float = 0.0,
    ) -> None:
        """``gap_seconds`` between two calls."""
        self._reserve, self._worker = reserve, worker
        self._again_seconds = max(rest_seconds, _AGAIN_SECONDS)
        self._ends, self._failed = ends, failed
        self._gap_seconds = gap_seconds
        self._called_at = 0.0  # monotonic
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
        lease.mark = f"{self._worker}:{self._number}"
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
        if (gap := self._called_at + self._gap_seconds - time.monotonic()) > 0:
            await asyncio.sleep(gap)
        wanted, self._wanted = self._wanted, []
        rested, self._rested = self._rested, []
        self._called_at = time.monotonic()
        try:
            leases = [lease for lease, _ in wanted]
            waits = await self._reserve(leases, [self._claim(lease) for lease in leases], rested)
        except Exception as error:  # whatever it is: leases without an answer would keep their hosts for the whole run
            if isinstance(error, StorageError):
                self._failed(error)
            else:
                logger.exception("%d addresses cannot be reserved; they are tried again", len(wanted))
            waits = [self._again_seconds] * len(wanted)  # unknown owner: wait and ask again
        for (lease, failure), wait in zip(wanted, waits, strict=True):
            if wait:
                lease.mark = ""
                self._ends.refused(lease, abs(wait), gives_way=wait < 0)
            else:
                self._ends.granted(lease, failure)
