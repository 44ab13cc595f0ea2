"""The frame of `make conformance`: what counts as a fault, and that its suites without downloads agree."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.conformance.__main__ import SOURCES, suites
from benchmarks.conformance.suite import Case, Suite, report, run


def cases(_: Path) -> Iterator[Case]:
    """One the same, two that differ."""
    yield Case("same", 1, 1)
    yield Case("encoding/klingon", "", "qapla'")
    yield Case("broken", ["a"], ["b"])


def test_a_difference_without_a_reason_is_a_fault() -> None:
    """One with a reason is counted by it."""
    outcome = run(Suite("small", "ours", cases, {"encoding/*": "no such encoding on the web"}), SOURCES)

    assert (outcome.cases, outcome.same, outcome.by_choice) == (3, 1, {"encoding/*": 1})
    assert outcome.faults == ["broken: ours ['a'], theirs ['b']"]
    lines = list(report([outcome]))
    assert [cell.strip() for cell in lines[1].split("|")] == ["small", "3", "1", "1", "1"]
    assert "small: 1 by choice, no such encoding on the web" in lines
    assert "small: FAULT broken: ours ['a'], theirs ['b']" in lines


def test_a_reason_without_a_difference_is_a_fault() -> None:
    """The list of known differences stays true, and a suite that found nothing to compare is not one."""
    outcome = run(Suite("small", "ours", cases, {"*": "all", "gone": "mended since"}), SOURCES)

    assert outcome.faults == ["no case differs as 'gone': take it off the known differences"]
    assert outcome.cases == 3
    assert run(Suite("empty", "ours", lambda _: [], {}), SOURCES).faults == ["the suite has no cases"]


def test_suites_without_downloads() -> None:
    """Those run with the tests."""
    for suite in suites([]):
        if suite.offline:
            assert run(suite, SOURCES).faults == []
