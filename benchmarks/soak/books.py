"""What a soak remembers on disk, so that the same command goes on: plan, rounds, events, samples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

DAYS_APART = 3
"""Between two rounds, by the crawl's clock: ten rounds are a month."""
DAY_SECONDS = 86_400


@dataclass(slots=True)
class Round:
    """One visit of the whole web. Real epoch seconds; the crawl's clock is ``ahead_seconds`` later."""

    generation: int
    ahead_seconds: int
    began: float
    ended: float = 0.0  # 0: it has not
    whole: bool = False  # it came to its end by itself

    @property
    def day(self) -> int:
        """The crawl's day on which it began, counted from the epoch."""
        return int(self.began + self.ahead_seconds) // DAY_SECONDS


@dataclass(slots=True)
class Books:
    """A soak's folder. What is in ``plan.json`` does not change once the soak has begun."""

    folder: Path
    plan: dict[str, int]  # hosts, port, cut_port, workers, seed
    rounds: list[Round] = field(default_factory=list)

    @classmethod
    def open(cls, folder: Path, plan: dict[str, int]) -> Books:
        """Of a folder that may hold a soak already, whose plan counts then."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "plan.json"
        if not path.exists():
            path.write_text(json.dumps(plan))
        rounds = folder / "rounds.json"
        known = json.loads(rounds.read_text()) if rounds.exists() else []
        return cls(folder, json.loads(path.read_text()), [Round(**each) for each in known])

    @property
    def crawl(self) -> Path:
        """CRAWL_DIR."""
        return self.folder / "crawl"

    def save(self) -> None:
        """After a change of the rounds."""
        part = self.folder / "rounds.json.part"
        part.write_text(json.dumps([asdict(each) for each in self.rounds]))
        part.replace(self.folder / "rounds.json")

    def begin_round(self, now: float, midnight_after: float) -> Round:
        """The round that goes on, or the next one: by its clock the day ends after so many seconds."""
        if self.rounds and not self.rounds[-1].ended:
            return self.rounds[-1]
        generation = len(self.rounds)
        last = self.rounds[-1].day if self.rounds else int(now) // DAY_SECONDS - DAYS_APART
        begins = (last + DAYS_APART + 1) * DAY_SECONDS - midnight_after
        self.rounds.append(Round(generation, int(begins - now), now))
        self.save()
        return self.rounds[-1]

    def note(self, name: str, fields: dict[str, Any]) -> None:
        """A line more in NAME.jsonl."""
        with (self.folder / f"{name}.jsonl").open("a") as lines:
            lines.write(json.dumps(fields) + "\n")

    def noted(self, name: str) -> Iterator[dict[str, Any]]:
        """All lines of NAME.jsonl."""
        path = self.folder / f"{name}.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # torn, since this program was killed as well
