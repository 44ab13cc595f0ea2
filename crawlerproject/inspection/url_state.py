"""An answer about one URL: where it stands, why, and the facts behind; for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from crawlerproject.rules.printable import LATEST, human_seconds, moment


class State(StrEnum):
    """Where a URL stands."""

    NEVER_SEEN = "never-seen"
    REFUSED = "refused"
    WAITING = "waiting"
    RETRY = "retry"  # tried, failed, waits for another try
    LEASED = "leased"
    DONE = "done"  # a server answered
    FAILED = "failed"  # asked for, no usable answer, given up


class Fact(str):
    """A fact as a person reads it, with the values that programs get in its place."""

    __slots__ = ("values",)
    values: dict[str, Any]

    def __new__(cls, text: str, /, **values: Any) -> Fact:
        """``values``: names to numbers, ISO 8601 times, words or lists of these."""
        fact = super().__new__(cls, text)
        fact.values = values
        return fact


def moment_fact(name: str, epoch_seconds: float) -> Fact:
    """A moment, for programs under ``name`` as ISO 8601 in UTC; null for none, and for one that no calendar has."""
    return Fact(moment(epoch_seconds), **{name: iso_moment(epoch_seconds)})


def iso_moment(epoch_seconds: float) -> str | None:
    """``2026-01-31T12:00:00.250Z``, as the request log has it but for microseconds."""
    if not 0 < epoch_seconds < LATEST:
        return None
    return datetime.fromtimestamp(epoch_seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def for_programs(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts with the values of each ``Fact`` in its place."""
    plain: dict[str, Any] = {}
    for name, value in facts.items():
        plain |= value.values if isinstance(value, Fact) else {name: value}
    return plain


@dataclass(slots=True)
class UrlState:
    """The answer about one URL; ``facts`` in the order in which they are read."""

    url: str
    state: State
    reason: str = ""  # a Reason's word; "" when there is nothing to excuse
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {"url": self.url, "state": str(self.state), "reason": self.reason or None, **for_programs(self.facts)}


def sentences(answer: UrlState) -> list[str]:
    """The answer for a person: the verdict first, one fact a line after it."""
    lines = [answer.url, f"  {answer.state}" + (f" ({answer.reason})" if answer.reason else "")]
    for name, value in answer.facts.items():
        if value is None or value == "" or name == "before_it":
            continue
        text = human_seconds(value) if name.endswith("_seconds") else str(value)
        lines.append(f"  {name.removesuffix('_seconds').replace('_', ' ')}: {text}")
    return lines
