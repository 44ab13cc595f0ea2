"""The pauses that hosts were left alone, and whether they were as long as promised."""

from __future__ import annotations

from typing import NamedTuple

ROUNDING_SECONDS = 0.001
"""Two clocks are read around a request, and times are written in microseconds: less is rounding, not haste."""


class Pause(NamedTuple):
    """The time from an answer's end to the next request to the same host, or to the same IP address."""

    name: str  # without a port: the ports of one name are one host and share its pace
    ended_at: float  # epoch seconds
    started_at: float  # epoch seconds
    promised_seconds: float

    @property
    def kept_seconds(self) -> float:
        """The real pause; negative when the request before was still in flight."""
        return round(self.started_at - self.ended_at, 6)

    @property
    def margin_seconds(self) -> float:
        """How much longer than promised."""
        return round(self.kept_seconds - self.promised_seconds, 6)

    @property
    def too_short(self) -> bool:
        """Whether the promise was broken."""
        return self.margin_seconds < -ROUNDING_SECONDS


class LastAnswers:
    """When the last answer of each host, or of each address, had ended."""

    def __init__(self) -> None:
        self.ends: dict[str, float] = {}

    def ask(self, name: str, end: float) -> float | None:
        """Take the next request, in the order of starts, and when it ends; when the one before it had ended."""
        before = self.ends.get(name)
        self.ends[name] = end if before is None else max(before, end)
        return before
