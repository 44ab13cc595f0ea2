"""What is said of one URL: where it stands, why, and the facts behind; for programs and for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from crawlerproject.frontier.progress import human_seconds


class State(StrEnum):
    """Where a URL stands."""

    NEVER_SEEN = "never-seen"
    REFUSED = "refused"
    WAITING = "waiting"
    RETRY = "retry"  # tried, failed, waits for another try
    LEASED = "leased"
    DONE = "done"  # a server answered
    FAILED = "failed"  # asked for, no usable answer, given up


@dataclass(slots=True)
class Answer:
    """What is said of one URL; ``facts`` in the order in which they are read."""

    url: str
    state: State
    reason: str = ""  # a Reason's word; "" when there is nothing to excuse
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {"url": self.url, "state": str(self.state), "reason": self.reason or None, **self.facts}


def sentences(answer: Answer) -> list[str]:
    """The answer for a person: the verdict first, one fact a line after it."""
    lines = [answer.url, f"  {answer.state}" + (f" ({answer.reason})" if answer.reason else "")]
    for name, value in answer.facts.items():
        if value is None or value == "" or name == "before_it":
            continue
        text = human_seconds(value) if name.endswith("_seconds") else str(value)
        lines.append(f"  {name.removesuffix('_seconds').replace('_', ' ')}: {text}")
    return lines
