"""The browser that is found: the cheapest of those that a machine has, or the one that is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlerproject.config.chromium import find_chromium
from crawlerproject.errors import OperatorError

PLACES = (
    *("bin/chromium-headless-shell", "bin/chromium", "bin/google-chrome"),
    "fetched/chromium_headless_shell-9/chrome-headless-shell-linux64/chrome-headless-shell",
    *("fetched/chromium_headless_shell-8/chrome-linux/headless_shell", "fetched/chromium-9/chrome-linux64/chrome"),
)


@pytest.fixture(autouse=True)
def _no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "fetched"))


@pytest.mark.parametrize("first", range(len(PLACES)))
def test_a_headless_shell_comes_before_a_whole_browser(tmp_path: Path, first: int) -> None:
    """On PATH, then where Playwright keeps its own."""
    for place in PLACES[first:]:
        program = tmp_path / place
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch(0o755)

    assert find_chromium("") == str(tmp_path / PLACES[first])


def test_a_machine_may_have_none(tmp_path: Path) -> None:
    """The one that is set has to be a program."""
    assert find_chromium("") is None
    with pytest.raises(OperatorError, match="is no program"):
        find_chromium(str(tmp_path))
