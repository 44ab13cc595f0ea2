"""The table of attacks: what it says, and that a broken bound fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import ledger
from tests.web.running import PROJECT

ATTACKS = """
import pytest
from tests.hostile.ledger import pays


@pytest.mark.parametrize("asked", [3, 7])
def test_holds(asked):
    pays("a flood", "the victim", asked, "requests", at_most=8)


def test_breaks():
    pays("a flood", "the neighbour", 0.5, "of its pages", at_least=0.9)
"""


def test_one_table_from_all_workers(tmp_path: Path) -> None:
    """A line for each attack and payer with the figure nearest to its bound; the broken one fails the run."""
    (tmp_path / "test_attacks.py").write_text(ATTACKS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "tests.hostile.ledger", "--import-mode=importlib"]

    done = subprocess.run(
        [*command, "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1, done.stdout
    assert "| a flood | the victim | 7 requests | at most 8 |" in done.stdout
    assert "| a flood | the neighbour | 0.50 of its pages | at least 0.90 **broken** |" in done.stdout
    assert "2 of 3 bounds hold" in done.stdout


def test_a_bound_that_does_not_hold_fails() -> None:
    """Beyond either kind; at the bound it holds."""
    ledger.pays("an attack", "a site", 5, "requests", at_most=5)
    ledger.pays("an attack", "a site", 5, "requests", at_least=5)
    with pytest.raises(AssertionError, match="a site pays 6 requests, at most 5"):
        ledger.pays("an attack", "a site", 6, "requests", at_most=5)
    with pytest.raises(AssertionError, match="at least 5"):
        ledger.pays("an attack", "a site", 4, "requests", at_least=5)
    ledger._rows.clear()  # no attacks
