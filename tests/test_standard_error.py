"""LOG_LINES=json: what others write on standard error is a line of the log, in a real process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.web import zygote
from tests.web.running import PROJECT

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
    """So are the warnings of the check before the start; without a word of how to use the command."""
    (tmp_path / "seeds").write_text("http://a.test/\nnonsense URL\n")
    given = ["-a", f"seeds={tmp_path / 'seeds'}", "-s", f"CRAWL_DIR={tmp_path / 'crawl'}", "-s", "LOG_LINES=json"]
    command = [sys.executable, "-m", "scrapy", *begin, *given, "-s", "CRAWLER_CONTACT=a@b.test"]
    refused = zygote.run([*command, "-s", "NEVERCRAWL_FILE=/no/list"])
    unheard = zygote.run([*command, "-s", "LOG_LEVEL=CRITICAL", "-s", "NEVERCRAWL_FILE=/no/list"])
    wrong = zygote.run([*command, "-s", "LOG_LEVEL=LOUD"])

    lines = [json.loads(line) for line in refused.stderr.splitlines()]
    assert refused.returncode == 2
    assert [line["level"] for line in lines] == ["WARNING", "ERROR"]
    assert "line 2: invalid-url" in lines[0]["message"]
    assert lines[1]["message"].startswith("The crawl does not start: NEVERCRAWL_FILE /no/list cannot be read")
    assert len(unheard.stderr.splitlines()) == 1
    assert json.loads(unheard.stderr)["message"] == lines[1]["message"]
    assert (wrong.returncode, "LOG_LEVEL is 'LOUD'" in wrong.stderr, "Traceback" in wrong.stderr) == (2, True, False)
