"""Whose hosts are whose: all of them ours in a crawl of one process, those of our partitions in a fleet."""

from __future__ import annotations

from typing import Protocol

from crawlerproject.frontier.messages import Message
from crawlerproject.stores.protocols import Changes, FrontierStore

_UNSURE_FACT = "unsure-until"


class HostOwnership(Protocol):
    """What the frontier asks about a host that a page may name."""

    doubt_seconds: float
    """By how much the clock of whoever stored a host's state may have been behind ours."""

    def mine(self, host: str) -> bool:
        """Whether this worker decides about the host now."""

    def may_ask(self, host: str) -> bool:
        """Whether an answer will surely come before anyone else may ask the host."""

    def crowded(self) -> bool:
        """Whether so much is decided and not yet stored that no more should be before the next beat."""

    def unsure_until(self, host: str) -> float:
        """Before this moment (epoch seconds) someone may have asked the host without a trace; 0: nobody has."""

    def send(self, host: str, message: Message) -> None:
        """Tell whoever decides about the host; it arrives once this commit's beat counts, maybe twice."""


class SoleOwner:
    """The only process of its crawl."""

    doubt_seconds = 0.0

    def __init__(self, unsure_until: float = 0.0) -> None:
        self._unsure_until = unsure_until

    def mine(self, host: str) -> bool:
        """All hosts are ours."""
        return True

    def may_ask(self, host: str) -> bool:
        """Nobody else asks."""
        return True

    def crowded(self) -> bool:
        """What is decided is stored at once."""
        return False

    def unsure_until(self, host: str) -> float:
        """The start, when the run before did not end in good order."""
        return self._unsure_until

    def send(self, host: str, message: Message) -> None:
        """There is nobody else."""
        raise AssertionError(f"nobody else decides about {host}")


def unsure_until(store: FrontierStore, started_at: float, *, clean_start: bool) -> float:
    """Until then an earlier process may have asked any host without a trace in the store; 0.0 when none has.

    Kept, since a clean start may follow soon after an unclean one.
    """
    if clean_start:
        return min(float(store.fact(_UNSURE_FACT) or 0.0), started_at)  # the clock may have been set back since
    store.apply(Changes(facts=[(_UNSURE_FACT, repr(started_at).encode())]))
    return started_at
