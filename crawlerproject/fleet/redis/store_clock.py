"""A worker's clock beside that of its store: read again and again, steered to it, not relied on when far from it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from crawlerproject.errors import LeaseLost, StorageError
from crawlerproject.runtime.clock import SteeredClock, since_boot
from crawlerproject.stores.redis.membership import Epoch

logger = logging.getLogger(__name__)

# Between two readings: a quartz drifts by some 3 ms in that time.
READ_SECONDS = 60.0
# A machine's clock that differs more from the store's is worth a warning.
_MACHINE_SECONDS = 2.0


class StoreClock:
    """``check`` may run in a thread, once at a time."""

    def __init__(
        self,
        ask: Callable[[], Epoch],
        clock: SteeredClock,
        *,
        most_apart_seconds: float,
        patience_seconds: float,
        boot: Callable[[], float] = since_boot,
    ) -> None:
        """``ask`` the store for its time; after ``patience_seconds`` too far apart the worker is to join again."""
        self._ask = ask
        self._clock = clock
        self._most_apart_seconds = most_apart_seconds
        self._patience_seconds = patience_seconds
        self._boot = boot
        self._read_at = float("-inf")  # since boot
        self._apart_since: float | None = None
        self._warned = False

    def begin(self) -> Epoch:
        """The store's time, as the worker joins. StorageError."""
        self._read_at, self._apart_since = self._boot(), None
        return self._ask()

    def reported(self, store_now: float, asked: float, answered: float) -> None:
        """A report was answered with the store's time; when it went and when its answer came, by our clock.

        When the two cannot be the same the clock is read at once, however lately that was done.
        """
        most = self._most_apart_seconds
        if not asked - most <= store_now <= answered + most:
            self._read_at = float("-inf")
        apart = time.time() - store_now
        if abs(apart) > _MACHINE_SECONDS and not self._warned:
            self._warned = True
            logger.warning(
                "This machine's clock is %.1f s %s the store's; the store's counts.",
                abs(apart),
                "ahead of" if apart > 0 else "behind",
            )

    @property
    def due(self) -> bool:
        """Whether it is time to read the store's clock."""
        return self._boot() - self._read_at >= READ_SECONDS

    def check(self) -> None:
        """Read the store's clock and steer ours. Raises StorageError while the two are too far apart, LeaseLost when
        they have been for too long.
        """
        found, now = self._ask(), self._boot()
        apart = self._clock.apart(found.seconds)
        if abs(apart) - found.doubt_seconds > self._most_apart_seconds:
            self._read_at = float("-inf")
            reason = f"this machine's clock and the store's have come {abs(apart):.3g} s apart"
            if self._apart_since is None:
                self._apart_since = now
            if now - self._apart_since >= self._patience_seconds:
                raise LeaseLost(reason)
            raise StorageError(reason)
        self._read_at, self._apart_since = now, None
        if abs(apart) > found.doubt_seconds:
            self._clock.steer(found.seconds, READ_SECONDS)

    @property
    def trusted(self) -> bool:
        """Whether the two were near each other at the last reading."""
        return self._apart_since is None
