"""Paces of single hosts: whose line counts, what it changes, and which lines are no lines."""

from __future__ import annotations

import pytest

from crawlerproject.rules.politeness.host_overrides import HostPaces
from crawlerproject.rules.politeness.pace import PRESETS, PacePreset, delay_seconds

BASE = PRESETS["default"]
LINES = """
# ours
slow.example.org   delay_seconds=20   # agreed by mail
*.example.org      min_seconds=8
own.test:8080      delay_seconds=0.1
fast.test          multiplier=2 min_seconds=1 max_seconds=3
""".splitlines()


@pytest.mark.parametrize(
    ("host", "preset"),
    [
        ("slow.example.org", PacePreset(0, 0, 20, 20, 20)),
        ("example.org", BASE._replace(min_seconds=8)),
        ("a.b.example.org:81", BASE._replace(min_seconds=8)),
        ("notexample.org", BASE),
        ("own.test:8080", PacePreset(0, 0, 0.1, 0.1, 0.1)),
        ("own.test", BASE),
        ("fast.test:81", BASE._replace(multiplier=2, min_seconds=1, max_seconds=3)),
        ("localhost", BASE),
    ],
)
def test_the_most_specific_line_counts(host: str, preset: PacePreset) -> None:
    """A host key before a name, a name before its domains, everyone else as the preset says."""
    paces, problems = HostPaces.parse(LINES)

    assert problems == []
    assert len(paces) == 4
    assert paces.preset(host, BASE) == preset


def test_robots_remains_a_floor() -> None:
    """What the operator sets never goes below what the owner asks for."""
    paces, _ = HostPaces.parse(["own.test delay_seconds=1"])

    assert delay_seconds(paces.preset("own.test", BASE), (0.1,), 30) == 30


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("http://a.test/ delay_seconds=1", "is no host"),
        ("* delay_seconds=1", "is no host"),
        ("a.*.test delay_seconds=1", "is no host"),
        ("a.test", "names no number"),
        ("a.test delay=1", "has 'delay'"),
        ("a.test delay_seconds=soon", "a number of 0 or more"),
        ("a.test delay_seconds=-1", "a number of 0 or more"),
        ("a.test delay_seconds=5 min_seconds=1", "would make idle"),
    ],
)
def test_bad_lines_are_reported_by_number(line: str, why: str) -> None:
    """The line's number and what is wrong with it; the others hold."""
    paces, (problem,) = HostPaces.parse(["b.test delay_seconds=2", "", line])

    assert len(paces) == 1
    assert problem.line == 3
    assert why in problem.why
