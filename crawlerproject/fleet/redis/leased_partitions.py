"""The partitions that a worker over Redis holds: which hosts are its own, and until when it may ask them."""

from __future__ import annotations

from collections.abc import Callable

from crawlerproject.fleet.link_exchange import FleetHosts
from crawlerproject.frontier.other_workers import Message
from crawlerproject.runtime.clock import since_boot

# Workers' ideas of the store's time differ by no more, or by what their way to Redis takes (on one machine 1 ms).
LEAST_DOUBT_SECONDS = 0.025


class LeasedPartitions(FleetHosts):
    """Those of a worker over Redis. What is written goes with the next commit.

    Moments are seconds since boot where nothing else is said.
    """

    doubt_seconds = LEAST_DOUBT_SECONDS

    def __init__(self, partition: Callable[[str], int], answer_seconds: float) -> None:
        """``answer_seconds``: no request takes longer, so none is begun when its lease could end before it."""
        super().__init__(partition)
        self.leaving: set[int] = set()  # they are given back once nothing of them is unfinished
        self.sent = False  # a message to another worker, since this was last reset
        self._answer_seconds = answer_seconds
        self._unsure_until: dict[int, float] = {}  # by partition, epoch seconds; 0: none may have been asked
        self._valid_until: dict[int, float] = {}

    def __contains__(self, partition: int) -> bool:
        return partition in self._unsure_until

    def staying(self) -> list[int]:
        """Those that are not on their way to another worker."""
        return [partition for partition in self._unsure_until if partition not in self.leaving]

    def take(self, partition: int, valid_until: float, unsure_until: float) -> None:
        """A lease was granted; before ``unsure_until`` (epoch seconds) hosts may have been asked without a trace."""
        self._valid_until[partition] = valid_until
        self._unsure_until[partition] = unsure_until

    def renewed(self, valid_until: float) -> None:
        """All leases were renewed."""
        self._valid_until = dict.fromkeys(self._unsure_until, valid_until)

    def drop(self, partition: int) -> None:
        """A lease was given back."""
        self.leaving.discard(partition)
        del self._unsure_until[partition]
        self._valid_until.pop(partition, None)

    def all(self) -> list[int]:
        """Every partition that is held."""
        return list(self._unsure_until)

    # --- of hosts -------------------------------------------------------------------------------

    def mine(self, host: str) -> bool:
        """Whether this worker decides about the host now."""
        partition = self.partition(host)
        return partition in self._unsure_until and partition not in self.leaving

    def may_ask(self, host: str) -> bool:
        """Whether an answer will surely come before another worker may ask the host."""
        return self.mine(host) and self.ask_until(host) >= since_boot() + self._answer_seconds

    def ask_until(self, host: str) -> float:
        """Until when an answer must be complete."""
        return self._valid_until.get(self.partition(host), 0.0)

    def unsure_until(self, host: str) -> float:
        """Before then (epoch seconds) a former holder may have asked the host without a trace; 0: none has."""
        return self._unsure_until.get(self.partition(host), 0.0)

    def send_to(self, partition: int, message: Message) -> None:
        """Write to the worker that holds the partition (``TO_LISTENER``: that hubs reach), with the next batch."""
        self.sent = True
        super().send_to(partition, message)
