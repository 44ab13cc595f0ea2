"""What ``polite-crawler`` says of itself: one name, one version, every command of ours with an example."""

from __future__ import annotations

import re
import sys
from importlib import metadata

import pytest

from crawlerproject import __version__
from crawlerproject.__main__ import main
from crawlerproject.command_list import GROUPS, commands, overview, renamed


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """By the program."""
    monkeypatch.setattr(sys, "argv", ["polite-crawler", *arguments])
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "crawlerproject.settings")
    main()
    return capsys.readouterr().out


def test_the_version_names_both(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ours, and Scrapy's, in one line."""
    line = f"polite-crawler {__version__} (Scrapy {metadata.version('Scrapy')})\n"
    assert said(monkeypatch, capsys, "--version") == line


@pytest.mark.parametrize("arguments", [(), ("-h",), ("--help",), ("help",)])
def test_help_lists_our_commands(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However it is asked for."""
    assert said(monkeypatch, capsys, *arguments) == overview() + "\n"


def test_each_command_is_there_once_with_its_example() -> None:
    """In a group, or below the others; the example is typed as the program is called."""
    lines = overview().splitlines()
    found = [(match[1], lines[at + 1]) for at, line in enumerate(lines) if (match := re.match(r"  ([\w-]+) ", line))]

    assert sorted(name for name, _ in found) == sorted(commands())
    assert {name for names in GROUPS.values() for name in names} <= commands()
    assert [name for name, example in found if not example.strip().startswith(f"polite-crawler {name}")] == []


def test_a_commands_help_names_the_program() -> None:
    """Our commands are renamed in a sentence, the word Scrapy is not."""
    assert renamed("scrapy why URL, then scrapy shell") == "polite-crawler why URL, then polite-crawler shell"
    assert renamed("as scrapy does; scrapy startproject") == "as scrapy does; scrapy startproject"
