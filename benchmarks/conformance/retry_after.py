"""urllib3's tests of Retry-After: seconds, dates, and what is neither."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.conformance.suite import Case, Suite, unpacked
from crawlerproject.rules.politeness.pauses import retry_after_seconds

_NOW = datetime(2019, 6, 3, 11, tzinfo=UTC).timestamp()  # as urllib3's tests have it
_CAP_SECONDS = 21_600.0  # urllib3's own
_TESTS = ("test_parse_retry_after", "test_parse_retry_after_invalid", "test_respect_retry_after_header_sleep")


def _cases(sources: Path) -> Iterator[Case]:
    tests = ast.parse((unpacked(sources, "urllib3") / "test/test_retry.py").read_bytes())
    for test in ast.walk(tests):
        if not isinstance(test, ast.FunctionDef) or test.name not in _TESTS:
            continue
        parametrize = test.decorator_list[0]
        assert isinstance(parametrize, ast.Call)
        for row in ast.literal_eval(parametrize.args[1]):
            header, *heeded, expected = row if isinstance(row, tuple) else (row, None)
            if heeded != [False]:  # ours always is
                ours = retry_after_seconds(header, _NOW, _CAP_SECONDS)
                yield Case(f"{test.name} {header}", ours or None, expected or None)


SUITES = (
    Suite(
        "urllib3's Retry-After",
        "urllib3 2.8.0, test/test_retry.py",
        _cases,
        {
            "*_invalid 1.0": "parts of a second are written, and meant",
        },
    ),
)
