"""What ``make audit`` makes of pip-audit's reports: it never passes silence for good news, and never fails for it."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from tests.web.running import PROJECT

SCRIPT = runpy.run_path(str(PROJECT / "scripts" / "audit.py"))
VULN = {"id": "PYSEC-2019-133", "fix_versions": ["1.24.2"], "aliases": ["CVE-2019-11324"], "description": ""}
# As pip-audit 2.10.1 prints it with --format json.
BAD: dict[str, Any] = {"dependencies": [{"name": "urllib3", "version": "1.24.1", "vulns": [VULN]}], "fixes": []}
GOOD: dict[str, Any] = {
    "dependencies": [
        {"name": "scrapy", "version": "2.19.0", "vulns": []},
        {"name": "ours", "skip_reason": "Dependency not found on PyPI"},
    ],
    "fixes": [],
}
LINE = "urllib3 1.24.1: PYSEC-2019-133, CVE-2019-11324; mended in 1.24.2"


def test_an_advisory_is_named_and_fails() -> None:
    """With the version that mends it."""
    assert SCRIPT["verdict"](BAD, BAD) == ([LINE], 1)


def test_none_is_said_with_what_was_not_judged() -> None:
    """How many pins were asked about."""
    said = SCRIPT["verdict"](BAD, GOOD)

    assert said == (["No advisory of 1 pins.", "Not judged: ours: Dependency not found on PyPI"], 0)


def test_what_cannot_be_reached_is_no_failure_and_no_good_news() -> None:
    """Neither a tool without data nor a registry without advisories."""
    for canary, report in ((None, GOOD), (BAD, None), (None, None), (GOOD, GOOD)):
        said = SCRIPT["verdict"](canary, report)
        assert said.status == 0
        assert said.lines[0].startswith("Nothing is known: ")


def test_a_program_that_prints_no_report_has_none(tmp_path: Path) -> None:
    """As pip-audit without a network, which ends with a traceback; and one that is not there."""
    program = tmp_path / "pip-audit"
    program.write_text("#!/bin/sh\necho 'requests.exceptions.ConnectionError' >&2\nexit 1\n")
    program.chmod(0o755)

    assert SCRIPT["audited"](program, tmp_path / "pins.txt") is None
    assert SCRIPT["audited"](tmp_path / "nothing", tmp_path / "pins.txt") is None


def test_the_lock_is_what_is_audited(tmp_path: Path) -> None:
    """The report is the program's."""
    program = tmp_path / "pip-audit"
    program.write_text('#!/bin/sh\necho "{\\"dependencies\\": [{\\"name\\": \\"$2\\"}]}"\nexit 1\n')
    program.chmod(0o755)

    assert SCRIPT["audited"](program, Path("requirements.lock")) == {"dependencies": [{"name": "requirements.lock"}]}
