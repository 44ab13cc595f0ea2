"""Whose hosts are whose: all of them ours in a crawl of one process, those of our partitions in a fleet."""

from __future__ import annotations

from typing import Protocol

from crawlerproject.frontier.messages import Message
from crawlerproject.stores.protocols import Changes, FrontierStore

_UNSURE_FACT = "unsure-until"


class HostOwnership(Protocol):
    """What the frontier asks about a host that a page may name."""

    doubt_seconds: float
    """By how much the clock of the process that stored a host's state may have been behind ours."""

    def mine(self, host: str) -> bool:
        """Whether this worker decides about the host now."""

    def may_ask(self, host: str) -> bool:
        """Whether an answer will surely come before another worker may ask the host."""

    def crowded(self) -> bool:
        """Whether so much is decided and not stored that deciding more must wait for the next write."""

    def unsure_until(self, host: str) -> float:
        """Before this moment (epoch seconds) the host may have been asked without a trace; 0: it was not."""

    def send(self, host: str, message: Message) -> None:
        """Write to the worker that decides about the host; it arrives after this commit, maybe twice."""

    def add_messages(self, changes: Changes) -> None:
        """Put what is written to other workers, and not on its way by itself, into the changes of the next commit."""


class SoleOwner:
    """The only process of its crawl."""

    doubt_seconds = 0.0

    def __init__(self, unsure_until: float = 0.0) -> None:
        self._unsure_until = unsure_until

    def mine(self, host: str) -> bool:
        """All hosts are ours."""
        return True

    def may_ask(self, host: str) -> bool:
        """There is no other worker."""
        return True

    def crowded(self) -> bool:
        """What is decided is stored at once."""
        return False

    def unsure_until(self, host: str) -> float:
        """The start, when the run before did not end in good order."""
        return self._unsure_until

    def send(self, host: str, message: Message) -> None:
        """There is no other worker to write to."""
        raise AssertionError(f"no other worker decides about {host}")

    def add_messages(self, changes: Changes) -> None:
        """There are none."""


def unsure_until(store: FrontierStore, started_at: float, *, clean_start: bool) -> float:
    """Until then an earlier process may have asked any host without a trace in the store; 0.0 when none has.

    Kept, since a clean start may follow soon after an unclean one.
    """
    if clean_start:
        return min(float(store.fact(_UNSURE_FACT) or 0.0), started_at)  # the clock may have been set back since
    store.apply(Changes(facts=[(_UNSURE_FACT, repr(started_at).encode())]))
    return started_at
