"""LOG_LINES=json: one object a line, whatever is logged, and nothing of it that the ordinary log would not say."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings
from scrapy.utils.log import configure_logging, get_scrapy_root_handler

from crawlerproject.json_log import JsonFormatter, formatter_of, is_journal, take_log
from crawlerproject.reasons import Reason
from crawlerproject.terminal import GuardedRecord, has_panel
from tests.web import zygote
from tests.web.running import PROJECT


def said(record: logging.LogRecord, formatter: logging.Formatter | None = None) -> dict[str, Any]:
    """The object that a record becomes, in one line."""
    line = (formatter or JsonFormatter()).format(record)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def record(text: str, *arguments: object, **more: object) -> logging.LogRecord:
    """A warning of ours at a known moment, with what ``extra=`` brings."""
    made = GuardedRecord("crawlerproject.a", logging.WARNING, "a.py", 1, text, arguments, None)
    made.created, made.process = 1_700_000_000.1239, 12
    made.__dict__.update(more)
    return made


def test_a_line_has_its_time_and_what_it_is_about() -> None:
    """UTC to the millisecond; the context that is there and nothing else that a caller may have added."""
    line = said(record("%s rests", "a.test", host="a.test", reason=Reason.TRAP, secret="x", spider=SimpleNamespace()))

    assert line == {
        "time": "2023-11-14T22:13:20.123Z", "level": "WARNING", "logger": "crawlerproject.a",
        "message": "a.test rests", "pid": 12, "host": "a.test", "reason": "trap",
    }  # fmt: skip


def test_an_error_has_its_traceback_as_a_field() -> None:
    """With its newlines, as it would be printed."""
    try:
        raise ValueError("http://me:hunter2@a.test/ \x1b[2J")
    except ValueError as error:
        made = GuardedRecord("other", logging.ERROR, "a.py", 1, "it\nfailed", (), (type(error), error, None))
    line = said(made)

    assert line["traceback"] == "ValueError: http://me:***@a.test/ \x1b[2J"
    assert "\x1b" not in JsonFormatter().format(made)  # escaped, as JSON does
    assert line["message"] == "it\n  failed"


def test_passwords_are_left_out_of_every_field() -> None:
    """Also of a record that was made before our own records took their place."""
    made = logging.LogRecord("a", logging.INFO, "a.py", 1, "http://me:hunter2@a.test/", (), None)
    made.url = "redis://:hunter2@a.test/0"
    line = said(made)

    assert (line["message"], line["url"]) == ("http://me:***@a.test/", "redis://:***@a.test/0")


def test_what_no_encoding_can_hold_is_escaped() -> None:
    """Half of a surrogate pair in a URL breaks no line."""
    assert said(record("%s", "a", url="http://a.test/\udc80"))["url"] == "http://a.test/\udc80"


def test_arguments_that_are_not_those_of_the_text_break_no_line() -> None:
    """A log call that is wrong; Python's own way is a traceback on standard error."""
    assert said(record("%d of %s", "two"))["message"] == "%d of %s ('two',)"


@pytest.mark.parametrize(
    ("level", "begins"),
    [("CRITICAL", "<2>{"), ("ERROR", "<3>{"), ("WARNING", "<4>{"), ("INFO", "<6>{"), ("DEBUG", "<7>{")],
)
def test_journald_is_given_the_priority(level: str, begins: str) -> None:
    """sd-daemon(3): the levels of syslog."""
    made = record("a")
    made.levelno = logging.getLevelNamesMapping()[level]

    assert JsonFormatter(journal=True).format(made).startswith(begins)


def test_the_journal_is_known_by_its_file(tmp_path: Path) -> None:
    """JOURNAL_STREAM is inherited: it says nothing of a stream that went elsewhere since (systemd.exec(5))."""
    with (tmp_path / "journal").open("w") as journal, (tmp_path / "file").open("w") as file:
        found = os.fstat(journal.fileno())
        environment = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}

        assert is_journal(journal, environment)
        assert not is_journal(file, environment)
        assert not is_journal(journal, {})
        assert not is_journal(io.StringIO(), environment)


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The process's log, given back as it was."""
    handlers, level = list(logging.root.handlers), logging.root.level
    yield logging.root
    for handler in set(logging.root.handlers) - set(handlers):
        handler.close()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def settings(path: Path, **more: object) -> Settings:
    """Of a crawl whose log is JSON in a file."""
    return Settings({"LOG_LINES": "json", "LOG_FILE": str(path), "LOG_LEVEL": "INFO", **more})


@pytest.mark.parametrize("append", [True, False])
def test_it_takes_the_place_of_scrapys_handler(root: logging.Logger, tmp_path: Path, append: bool) -> None:
    """One line a record, at whatever time settings say so; again with others, as a spider may set a level."""
    (tmp_path / "log").write_text('{"message": "of an earlier start"}\n')
    first = settings(tmp_path / "log", LOG_FILE_APPEND=append)
    configure_logging(first)
    take_log(first)
    logging.getLogger("crawlerproject.a").info("one")
    configure_logging(first)
    logging.getLogger("crawlerproject.a").info("still")
    take_log(settings(tmp_path / "log", LOG_FILE_APPEND=append, LOG_LEVEL="ERROR", LOG_SHORT_NAMES=True))
    logging.getLogger("crawlerproject.a").info("two")
    logging.getLogger("scrapy.core.engine").error("three", extra={"worker": "w1"})

    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["message"] for line in lines] == ["of an earlier start"] * append + ["one", "still", "three"]
    assert (lines[-1]["logger"], lines[-1]["worker"]) == ("scrapy", "w1")
    assert get_scrapy_root_handler() not in root.handlers


def test_text_and_a_programs_own_log_stay(root: logging.Logger, tmp_path: Path) -> None:
    """Without LOG_LINES=json, and where Scrapy's handler was switched off, nothing is put in place."""
    before = list(root.handlers)
    take_log(settings(tmp_path / "log", LOG_LINES="text"))
    take_log(settings(tmp_path / "log", LOG_INSTALL_ROOT_HANDLER=False))
    assert root.handlers == before

    quiet = Settings({"LOG_LINES": "json", "LOG_ENABLED": False})
    take_log(quiet)
    assert isinstance(root.handlers[-1], logging.NullHandler)


def test_a_refusal_in_a_log_file_is_a_line_like_the_others(tmp_path: Path) -> None:
    """JSON where the log is; Scrapy's format where it is not. A program's log has no panel."""
    assert isinstance(formatter_of(settings(tmp_path / "log")), JsonFormatter)
    assert formatter_of(Settings({"LOG_LINES": "text"}))._fmt == Settings()["LOG_FORMAT"]
    assert not has_panel(Settings({"LOG_LINES": "json"}))


_BEGIN = """
import logging, os, subprocess, sys
from scrapy.settings import Settings
from crawlerproject.json_log import take_process
take_process(Settings({"LOG_LINES": "json", "LOG_LEVEL": "INFO"}))
"""


def run(program: str) -> tuple[int, list[dict[str, Any]]]:
    """Its status, and every line that it said."""
    command = [sys.executable, "-c", _BEGIN + program]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines()]


def test_what_knows_of_no_log_is_heard() -> None:
    """A program, a library in C, a print, and a line that never ends; in their order, each a warning."""
    status, lines = run(
        """
subprocess.run(["sh", "-c", "echo error while loading shared libraries >&2"])
os.write(2, b"terminate called\\n\\xff\\n")
print("printed", file=sys.stderr, flush=True)
os.write(2, b"x" * 25_000)
"""
    )
    said = [line["message"] for line in lines]
    assert status == 0
    assert said[:4] == ["error while loading shared libraries", "terminate called", "\\xff", "printed"]
    assert [len(text) for text in said[4:]] == [10_000, 10_000, 5_000]
    assert {(line["level"], line["logger"]) for line in lines} == {("WARNING", "crawlerproject.standard_error")}


def test_an_error_that_ends_the_process_is_one_line() -> None:
    """With its traceback as a field."""
    status, lines = run("logging.getLogger('a').info('before')\nraise ValueError('odd')")
    assert status == 1
    assert [(line["level"], line["message"]) for line in lines] == [
        ("INFO", "before"),
        ("CRITICAL", "The process ends by an error of its own."),
    ]
    assert lines[1]["traceback"].endswith("ValueError: odd")


def test_a_handler_of_others_does_not_hear_itself() -> None:
    """Its line is one of ours, once."""
    status, lines = run(
        "logging.root.addHandler(logging.StreamHandler())\n"
        "os.write(2, b'foreign\\n')\nlogging.getLogger('a').error('own')"
    )
    assert status == 0
    assert sorted((line["logger"], line["message"]) for line in lines) == [
        ("a", "own"),
        ("crawlerproject.standard_error", "foreign"),
        ("crawlerproject.standard_error", "own"),
    ]


def test_what_is_left_behind_does_not_hold_the_end() -> None:
    """A program that outlives the crawl has its standard error still."""
    began = time.monotonic()
    status, lines = run("subprocess.Popen(['sleep', '20'], stdout=-3)\nos.write(2, b'last\\n')")
    assert status == 0
    assert [line["message"] for line in lines] == ["last"]
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("begin", [("crawl", "web"), ("fleet", "--workers", "2")])
def test_a_refusal_is_a_line_like_the_others(begin: tuple[str, ...], tmp_path: Path) -> None:
    """So are the warnings of a supervisor's check, whose workers do not repeat them; without a word of usage."""
    (tmp_path / "seeds").write_text("http://a.test/\nnonsense URL\n")
    given = ["-a", f"seeds={tmp_path / 'seeds'}", "-s", f"CRAWL_DIR={tmp_path / 'crawl'}", "-s", "LOG_LINES=json"]
    command = [sys.executable, "-m", "scrapy", *begin, *given, "-s", "CRAWLER_CONTACT=a@b.test"]
    refused = zygote.run([*command, "-s", "NEVERCRAWL_FILE=/no/list"])
    unheard = zygote.run([*command, "-s", "LOG_LEVEL=CRITICAL", "-s", "NEVERCRAWL_FILE=/no/list"])
    wrong = zygote.run([*command, "-s", "LOG_LEVEL=LOUD"])

    lines = [json.loads(line) for line in refused.stderr.splitlines()]
    assert refused.returncode == 2
    *warnings, error = lines
    assert [(line["level"], "line 2: invalid-url" in line["message"]) for line in warnings] == (
        [("WARNING", True)] if "fleet" in begin else []
    )
    assert error["level"] == "ERROR"
    assert error["message"].startswith("The crawl does not start: NEVERCRAWL_FILE /no/list cannot be read")
    assert len(unheard.stderr.splitlines()) == 1
    assert json.loads(unheard.stderr)["message"] == error["message"]
    assert (wrong.returncode, "LOG_LEVEL is 'LOUD'" in wrong.stderr, "Traceback" in wrong.stderr) == (2, True, False)
