"""What a crawl is bound by, from the load it reports."""

from __future__ import annotations

import pytest

from crawlerproject.rules.bound import Load, bound_by

QUIET = Load("", 0.1, 0.0, 0, 1000, 0, 0, 0)


@pytest.mark.parametrize(
    ("load", "what"),
    [
        (QUIET._replace(paused="no room", cpu_share=1.0), "disk"),
        (QUIET._replace(cpu_share=0.97, waiting=5000), "cpu"),
        (QUIET._replace(lag_seconds=0.4, waiting=5000), "cpu"),
        (QUIET._replace(in_flight=990, ready=200), "leases"),
        (QUIET._replace(in_flight=3, waiting=400), "politeness"),
        (QUIET._replace(in_flight=300, waiting=40), "network"),
        (QUIET._replace(waiting=1), "politeness"),
        (QUIET._replace(resting=7), "rests"),
        (QUIET, "nothing"),
    ],
)
def test_the_bottleneck(load: Load, what: str) -> None:
    """One load, one word."""
    assert bound_by(load).what == what
    assert bound_by(load).text
