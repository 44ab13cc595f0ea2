"""Tests that run in processes which are forked off the one that has collected them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.web.running import PROJECT

_FILE = """
import os, pathlib, warnings, pytest

@pytest.fixture(scope="module")
def process(tmp_path_factory):
    with pathlib.Path("{notes}").open("a") as notes:
        print(__name__, os.getpid(), tmp_path_factory.getbasetemp(), os.environ["PYTEST_XDIST_WORKER"], file=notes)
    return os.getpid()

def test_passes(process):
    warnings.warn("a word of {name}")

def test_fails(process):
    print("said by {name}")
    assert {fails} is False

def test_dies(process):
    {fails} and os._exit(3)

def test_behind(process):
    assert process == os.getpid()
"""


def test_files_are_run_side_by_side_and_no_result_is_lost(tmp_path: Path) -> None:
    """A failure has its output, one that dies is a failure, what is behind it runs, warnings arrive once."""
    notes = tmp_path / "notes"
    for name in ("first", "second", "third"):
        text = _FILE.format(notes=notes, name=name, fails=name == "first")
        (tmp_path / f"test_{name}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.forked_workers", "--forks", "2", str(tmp_path)]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "2 failed, 10 passed, 3 warnings" in ended.stdout
    assert "said by first" in ended.stdout
    assert "said by second" not in ended.stdout
    assert "The process that ran this test has died." in ended.stdout
    begun = [line.split() for line in notes.read_text().splitlines()]
    assert sorted(line[0] for line in begun) == ["test_first", "test_first", "test_second", "test_third"]
    assert len({line[1] for line in begun}) == 3  # two at once, and one for that which died
    assert {(Path(line[2]).name, line[3]) for line in begun} == {("fork0", "gw0"), ("fork1", "gw1")}
