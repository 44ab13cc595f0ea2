"""What ``polite-crawler`` says of itself: one name, one version, every command of ours with an example."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata

import pytest

from crawlerproject import __version__
from crawlerproject.__main__ import main
from crawlerproject.command_list import GROUPS, commands, overview, renamed
from crawlerproject.errors import OperatorError
from crawlerproject.terminal import GuardedRecord, refusal, say
from tests.web.running import PROJECT


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


@pytest.mark.parametrize(
    ("started", "named"),
    [
        ("/usr/bin/polite-crawler", "polite-crawler"),
        ("/lib/crawlerproject/__main__.py", "polite-crawler"),
        ("/usr/bin/scrapy", "scrapy"),
        ("/lib/scrapy/__main__.py", "scrapy"),
    ],
)
def test_errors_name_the_program_that_was_started(
    started: str, named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refusals, lines on standard error and our log; what goes to standard output may be a site's text."""
    monkeypatch.setattr(sys, "argv", [started, "status"])
    advice, typed = "scrapy recover DIR mends it.", f"{named} recover DIR mends it."

    say(advice)
    say(advice, error=True)

    assert tuple(capsys.readouterr()) == (f"{advice}\n", f"{typed}\n")
    assert str(refusal(OperatorError(advice))) == typed
    assert GuardedRecord("crawlerproject.x", 20, "", 1, advice, (), None).getMessage() == typed
    assert GuardedRecord("scrapy.x", 20, "", 1, advice, (), None).getMessage() == advice


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """``polite-crawler | head`` ends quietly."""
    mine, theirs = os.pipe()
    os.close(mine)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "crawlerproject"], cwd=PROJECT, stdout=theirs, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(theirs)

    assert (ended.returncode, ended.stderr) == (0, b"")
