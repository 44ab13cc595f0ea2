"""Workers and a supervisor that are killed at any moment lose no message and have none read twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fleet.local.mail_kills import LINKS, ROUNDS

ROOT = Path(__file__).resolve().parents[3]


def test_kill_9_of_any_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    """Real processes, sockets and databases: all links and every redirected robots.txt are in the queues once."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.fleet.local.mail_kills", tmp_path / "crawl", "12", "7"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    each = f"{ROUNDS * LINKS} {ROUNDS * LINKS} {ROUNDS} {{1}} 0"
    assert (run.stderr, run.stdout.splitlines()) == ("", [f"worker-1 {each}", f"worker-2 {each}"])
