"""kill -9 at random moments: nothing lost, nothing twice, nothing torn, no host hurried (benchmarks has a long one)."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.kill_loop.__main__ import compare


def test_a_killed_crawl_equals_an_undisturbed_one(tmp_path: Path) -> None:
    """Five kills in a crawl of the synthetic web."""
    given = argparse.Namespace(
        kills=5, web="small", pages=None, pace=0.15, longest=3.0, recover=False, seed=7, keep=None
    )

    verdict = compare(tmp_path, given)

    assert verdict.faults == []
