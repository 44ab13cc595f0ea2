"""docs/settings.md says what the table of settings has: the script that writes it finds nothing to write."""

from __future__ import annotations

import difflib

import pytest

from crawlerproject.config.settings_table import SETTINGS, Kind, Setting
from tests.scripts.loading import loaded


def test_the_page_is_current() -> None:
    """After a change of the table ``python scripts/settings_doc.py`` is run."""
    script = loaded("settings_doc")
    there = script.PAGE.read_text(encoding="utf-8")

    made = script.current(there)

    assert list(difflib.unified_diff(there.splitlines(), made.splitlines(), "docs/settings.md", "made", n=0)) == []
    assert script.main(["--check"]) == 0


def test_a_setting_without_a_paragraph_is_no_page() -> None:
    """Nor is a paragraph without its setting."""
    script = loaded("settings_doc")
    page = script.PAGE.read_text(encoding="utf-8")

    with pytest.raises(SystemExit, match=r"differ in RENDER$"):
        script.current(page.replace("### RENDER\n", ""))
    with pytest.raises(SystemExit, match=r"differ in OF_NOTHING$"):
        script.current(f"{page.partition('## Names of earlier')[0]}\n### OF_NOTHING\nDefault: `1`\n\nNothing.\n")


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        (SETTINGS["HOST_MAX_FAILURES"], "Default: `5` · at least 1"),
        (SETTINGS["RENDER_SANDBOX"], 'Default: `"auto"` · one of `auto`, `required`'),
        (SETTINGS["WATCH_PORT"], "Default: `0` · from 0 to 65,535"),
        (SETTINGS["COMMIT_SECONDS"], "Default: `1.0` · above 0"),
        (SETTINGS["FRONTIER_MAX_REST_SECONDS"], "Default: `3600` · earlier: `FRONTIER_PATIENCE_SECONDS`"),
        (Setting(Kind.WHOLE, 100_000), "Default: `100_000`"),
    ],
)
def test_facts(setting: Setting, line: str) -> None:
    """Default, bounds where there are any, words, earlier names."""
    assert loaded("settings_doc").facts("ANY", setting) == line
