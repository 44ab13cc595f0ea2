"""A crawl that is searched while it runs: whatever is killed, archive, tables and index agree."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.web.running import PROJECT


@pytest.mark.long_attack
@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_crawled_is_found_once_whatever_is_killed(workers: int) -> None:
    """The crawl, alone or a fleet that gains a worker, and both that follow it, once each; WARC files roll."""
    trial = [sys.executable, "-m", "benchmarks.follow_kills", "--pages", "400", "--hosts", "60", "--kills", "1"]
    shape = ["--workers", str(workers), "--warc-bytes", "700000", "--longest", "200"]
    done = subprocess.run([*trial, *shape], cwd=PROJECT, capture_output=True, text=True, check=False, timeout=280)

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "archive, tables and index agree" in done.stdout
