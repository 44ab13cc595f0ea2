"""What the operator's commands share: texts, one sentence where something is wrong, the crawl named, progress."""

from __future__ import annotations

import argparse
import errno
import os
import time
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
from scrapy.cmdline import ScrapyArgumentParser
from scrapy.commands import ScrapyHelpFormatter
from scrapy.settings import Settings

import crawlerproject.commands
from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.operator_command import (
    Bytes,
    OperatorCommand,
    named_archives,
    one_argument,
    one_sentence,
    waited_for,
)

COMMANDS = sorted(path.stem for path in Path(crawlerproject.commands.__path__[0]).glob("*.py"))


def ours() -> list[tuple[str, OperatorCommand]]:
    """Every command of ours with its name; those that adapt Scrapy's own are others."""
    modules = ((name, import_module(f"crawlerproject.commands.{name}")) for name in COMMANDS if name != "__init__")
    found = ((name, getattr(module, "Command", None)) for name, module in modules)
    return [(name, kind()) for name, kind in found if isinstance(kind, type) and issubclass(kind, OperatorCommand)]


def raised(error: Exception) -> Callable[[], None]:
    """Something that goes wrong."""

    def fail() -> None:
        raise error

    return fail


def test_an_interrupt_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """And the status that a shell gives it."""
    with pytest.raises(SystemExit) as ended, one_sentence():
        raise KeyboardInterrupt

    assert ended.value.code == 130
    assert capsys.readouterr().err == "Stopped; what is done stays, and the same command does the rest.\n"


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_help_has_no_headings_but_those_of_its_sections(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a line of an option's words is broken: Scrapy underlines each that ends in a colon."""
    monkeypatch.setenv("COLUMNS", width)
    found = set()
    for name in COMMANDS:
        if kind := getattr(import_module(f"crawlerproject.commands.{name}"), "Command", None):
            command = kind()
            command.settings = Settings()
            parser = ScrapyArgumentParser(formatter_class=ScrapyHelpFormatter, conflict_handler="resolve")
            command.add_options(parser)
            lines = parser.format_help().splitlines()
            found |= {above for above, line in pairwise(lines) if line and not line.strip("=-")}

    assert found == {"Usage", "Options", "Global Options"}


@pytest.mark.parametrize(("name", "command"), ours())
def test_every_command_describes_itself(name: str, command: OperatorCommand) -> None:
    """One line for the list, and an example that can be typed."""
    assert command.short_desc()
    assert not command.short_desc().endswith(".")
    about, _, example = command.long_desc().partition("Example: ")
    assert about.endswith(". ")
    assert example.startswith(f"scrapy {name}")
    assert command.requires_project
    assert not command.requires_crawler_process
    assert command.default_settings["LOG_ENABLED"] is False


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OperatorError("There is no crawl."), "There is no crawl."),
        (StorageError("the disk is full"), "the disk is full"),
        (OSError(errno.EACCES, "Permission denied", "x.warc.gz"), "x.warc.gz: Permission denied"),
        (
            OSError(errno.ENOSPC, "No room"),
            "A disk is full (No room); make room on it, and give the same command again.",
        ),
        (
            OSError(errno.ENOSPC, "No room", "x.warc.gz"),
            "The disk of x.warc.gz is full (No room); make room on it, and give the same command again.",
        ),
        (OSError("torn"), "torn"),
        (OperatorError("a\x1b[31m\nb"), "a\\x1b[31m\\nb"),
    ],
)
def test_what_is_wrong_is_one_sentence(error: Exception, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard errors, with exit status 2, and nothing in it acts on the terminal."""
    with pytest.raises(SystemExit) as ended, one_sentence():
        raised(error)()
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", f"{sentence}\n")


def test_our_own_errors_are_not_hidden() -> None:
    """A bug has its traceback."""
    with pytest.raises(KeyError), one_sentence():
        raised(KeyError("x"))()


def test_a_reader_that_has_seen_enough_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``| head`` does."""
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(SystemExit) as ended, one_sentence():
        raised(BrokenPipeError())()
    assert ended.value.code == 0


def test_a_command_answers(capsys: pytest.CaptureFixture[str]) -> None:
    """``run`` is Scrapy's, ``answer`` ours."""

    class Asked(OperatorCommand):
        arguments, summary, details = "[FOLDER]", "Ask", "Ask. Example: scrapy asked"

        def answer(self, args: list[str], opts: argparse.Namespace) -> None:
            print(args)
            raise OperatorError("Enough.")

    command = Asked()
    assert (command.syntax(), command.short_desc(), command.long_desc()) == ("[FOLDER]", "Ask", Asked.details)
    with pytest.raises(SystemExit):
        command.run(["a"], argparse.Namespace())
    assert capsys.readouterr() == ("['a']\n", "Enough.\n")


@pytest.mark.parametrize("args", [[], ["a", "b"]])
def test_one_argument_and_no_other(args: list[str]) -> None:
    """An example says what was meant."""
    with pytest.raises(OperatorError, match=r"^Give a host, for example: scrapy hosts example\.org$"):
        one_argument(args, "a host", "scrapy hosts example.org")
    assert one_argument(["a"], "a host", "") == "a"


SETTINGS = {"STATE_URL": "rocksdb:"}


def test_the_folder_is_the_argument_or_crawl_dir(tmp_path: Path) -> None:
    """And it must hold an archive."""
    given = Settings({**SETTINGS, "CRAWL_DIR": str(tmp_path)})
    with pytest.raises(OperatorError, match=r"holds no crawl: there is no WARC file in .*/warc"):
        named_archives([], given)
    (tmp_path / "warc").mkdir()
    (tmp_path / "warc" / "a.warc.gz.open").touch()
    elsewhere = Settings({**SETTINGS, "CRAWL_DIR": ""})
    assert named_archives([], given) == named_archives([str(tmp_path)], elsewhere) == (tmp_path, [tmp_path], ())
    with pytest.raises(OperatorError, match=r"There is no folder .*nowhere; name a crawl's folder, or set CRAWL_DIR"):
        named_archives([str(tmp_path / "nowhere")], given)


def test_waiting_ends_when_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at once, and again until then."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    assert waited_for(lambda: True, 15.0) == 0.0
    assert waited_for(lambda: now[0] >= 3.0, 15.0) == pytest.approx(3.0, abs=0.2)


def test_waiting_ends_when_patience_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller looks once more."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    assert waited_for(lambda: False, 15.0) == pytest.approx(15.0, abs=0.2)


def test_progress_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Where no terminal shows a bar: on standard errors, every ten seconds."""
    files = [tmp_path / name for name in ("one", "two")]
    for file in files:
        file.write_bytes(bytes(1500))
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Bytes("Reading", files) as progress:
        assert os.getpriority(os.PRIO_PROCESS, 0) >= 10  # a crawl that runs comes first
        for now[0] in (1.0, 11.0, 12.0, 22.0):
            progress.advance(1000)
    _, said = capsys.readouterr()
    assert said.splitlines() == [
        "Reading: 2,000 of 3,000 bytes, 181 B/s, left: 5.5 s",
        "Reading: 4,000 of 4,000 bytes, 181 B/s, left: 0.0 s",
    ]
