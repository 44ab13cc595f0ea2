"""What a suite is, how its cases are judged, and the table of all suites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

SHOWN_FAULTS = 20
"""Of one suite (ours): more than that is one cause."""


class Case(NamedTuple):
    """One input, and what each side makes of it; equal values are the same verdict."""

    name: str  # stable: the known differences name it
    ours: object
    theirs: object


class Suite(NamedTuple):
    """Cases of one source. ``cases`` gets the folder in which the pinned sources lie unpacked."""

    name: str
    source: str  # package, standard or file that the expectations come from
    cases: Callable[[Path], Iterable[Case]]
    known: Mapping[str, str] = {}  # pattern of case names (as in a shell): why ours differs by choice
    offline: bool = False  # needs nothing that is downloaded: runs in `make test` too


@dataclass(slots=True)
class Outcome:
    """One suite after its run."""

    suite: Suite
    same: int = 0
    by_choice: dict[str, int] = field(default_factory=dict)  # pattern of ``known``: cases
    faults: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many there were; a known difference that no case shows is none."""
        return self.same + sum(self.by_choice.values()) + sum(not fault.startswith(_STALE) for fault in self.faults)


_STALE = "no case differs as "


def run(suite: Suite, sources: Path) -> Outcome:
    """Judge each case. A difference without a reason is a fault, and so is a reason without a difference."""
    outcome = Outcome(suite)
    for case in suite.cases(sources):
        if case.ours == case.theirs:
            outcome.same += 1
        elif (pattern := _known(suite, case.name)) is not None:
            outcome.by_choice[pattern] = outcome.by_choice.get(pattern, 0) + 1
        else:
            outcome.faults.append(f"{case.name}: ours {_short(case.ours)}, theirs {_short(case.theirs)}")
    unused = [pattern for pattern in suite.known if pattern not in outcome.by_choice]
    outcome.faults += [f"{_STALE}{pattern!r}: take it off the known differences" for pattern in unused]
    if not outcome.cases:
        outcome.faults.append("the suite has no cases")
    return outcome


def report(outcomes: Iterable[Outcome]) -> Iterable[str]:
    """Lines: the table, the reasons of what differs by choice, the faults."""
    rows: list[tuple[str, ...]] = [("suite", "cases", "same", "by choice", "by fault")]
    details = []
    for outcome in outcomes:
        name, by_choice, faults = outcome.suite.name, outcome.by_choice, outcome.faults
        rows.append((name, *(f"{n:,}" for n in (outcome.cases, outcome.same, sum(by_choice.values()), len(faults)))))
        for reason in dict.fromkeys(outcome.suite.known.values()):
            count = sum(by_choice.get(at, 0) for at, why in outcome.suite.known.items() if why == reason)
            details.append(f"{name}: {count:,} by choice, {reason}")
        details += [f"{name}: FAULT {fault}" for fault in faults[:SHOWN_FAULTS]]
        if len(faults) > SHOWN_FAULTS:
            details.append(f"{name}: {len(faults) - SHOWN_FAULTS:,} more faults")
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield " | ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
    yield ""
    yield from details


def unpacked(sources: Path, package: str) -> Path:
    """The folder of a package's pinned source. Raises FileNotFoundError when it is not there."""
    for folder in sorted(sources.iterdir()):
        if folder.is_dir() and folder.name.rpartition("-")[0].lower() == package.lower():
            return folder
    raise FileNotFoundError(f"{sources} has no {package}: is it in requirements-conformance-sources.txt?")


def _known(suite: Suite, name: str) -> str | None:
    return next((pattern for pattern in suite.known if fnmatchcase(name, pattern)), None)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
