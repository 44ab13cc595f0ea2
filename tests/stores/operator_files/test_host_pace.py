"""The file of host paces while a crawl runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crawlerproject.rules.politeness.pauses import PRESETS
from crawlerproject.stores.operator_files.watched_lists import HostPaceFile

BASE = PRESETS["default"]


def test_a_change_holds_after_the_reload_interval(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Bad lines are named; what changes is taken up, and a file that vanishes changes nothing."""
    path = tmp_path / "paces.txt"
    path.write_text("a.test delay_seconds=9\na.test hurry\n")
    paces = HostPaceFile(path, 60)

    assert paces.preset("a.test", BASE, 0).min_seconds == 9
    assert "line 2 is skipped: 'a.test hurry' has 'hurry'" in caplog.text

    path.write_text("a.test delay_seconds=30\n")
    os.utime(path, ns=(1, 1))
    assert paces.preset("a.test", BASE, 59).min_seconds == 9
    assert paces.preset("a.test", BASE, 60).min_seconds == 30

    path.unlink()
    assert paces.preset("a.test", BASE, 121).min_seconds == 30
    assert "cannot be read" in caplog.text


def test_without_a_file_the_preset_holds() -> None:
    """No path, no look."""
    assert HostPaceFile("").preset("a.test", BASE, 0) is BASE
