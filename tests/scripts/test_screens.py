"""The screens of docs/running.md: made by a script, on a terminal of 80 columns and 24 lines, and still true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scripts.loading import loaded

ROOT = Path(__file__).resolve().parents[2]


SCRIPT = loaded("screens")
SCENES = {scene.name: scene for scene in SCRIPT.scenes()}
#: Their screens have the same words in each run; the others are as far as a crawl had come.
STEADY = ("A seed that is refused, one that does not resolve",)


def stable(screen: str) -> list[str]:
    """The words of a screen without what changes from run to run: times and other numbers, which reader there is."""
    screen = re.sub(r"(Page reader:).*", r"\1", screen)
    words = re.sub(r"again\s+in(\s+[\d.]+\s+(d|h|min|s)\b)+", "again", screen)
    return re.sub(r"[\d,.]+", "0", words).split()


def documented() -> dict[str, list[str]]:
    """The screens in the page: what is typed, then what was shown."""
    page = SCRIPT.PAGE.read_text("utf-8").partition(SCRIPT.BEGIN)[2].partition(SCRIPT.END)[0]
    found = re.findall(r"^\*\*(.+?)\.\*\* .*?\n\n```\n(.*?)\n```", page, flags=re.DOTALL | re.MULTILINE)
    return {name: screen.splitlines() for name, screen in found}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project, and the synthetic web at a port of its own."""
    with SCRIPT.prepared(tmp_path_factory.mktemp("screens"), port=0) as folder:
        yield folder


@pytest.mark.parametrize("name", STEADY)
def test_the_page_shows_what_the_script_makes(name: str, home: Path) -> None:
    """But for times and numbers, word for word."""
    screen = SCRIPT.take(SCENES[name], home)

    assert stable(screen) == stable("\n".join(documented()[name][1:]))


def test_a_pause_is_the_first_line_of_the_panel(home: Path) -> None:
    """On a real terminal: the panel is whole, says why, and nothing of Scrapy's own stands above it."""
    screen = SCRIPT.take(SCENES["Paused"], home)

    assert SCRIPT.panel_of(screen).startswith("PAUSED: ")
    panel = screen.splitlines()[-len(SCRIPT.panel_of(screen).splitlines()) - 2 :]
    assert all(len(line) == SCRIPT.COLUMNS for line in panel)
    assert all(line.startswith("│") and line.endswith("│") for line in panel[1:-1])
    for words in ("Enabled", "Overridden", "Versions", "Spider opened", "scrapy."):
        assert words not in screen


def test_every_screen_of_the_page_fits() -> None:
    """All of its scenes are there, each within 80 x 24 and the line that was typed."""
    screens = documented()

    assert list(screens) == [scene.name for scene in SCENES.values() if scene.in_page]
    for name, lines in screens.items():
        assert len(lines) <= SCRIPT.LINES + 1, name
        assert max(map(len, lines[1:])) <= SCRIPT.COLUMNS, name
        assert lines[0].startswith("$ scrapy crawl web "), name
    assert any("politeness allows" in line for line in screens["First run"])


def test_the_marks_stay_when_screens_are_replaced() -> None:
    """What stands around them is left as it is."""
    page = f"before\n{SCRIPT.BEGIN}\nold\n{SCRIPT.END}\nafter\n"

    assert SCRIPT.with_screens(page, ["new"]) == f"before\n{SCRIPT.BEGIN}\n\nnew\n\n{SCRIPT.END}\nafter\n"
