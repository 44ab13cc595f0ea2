"""The process that reads large pages, when its crawl is gone: it ends without a word."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from crawlerproject.reading.reading_process import HEAD

_SECONDS = 60.0
_BROKEN = pickle.dumps(None)  # no job: what comes of it is an answer all the same


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="between two jobs"),
        pytest.param(HEAD.pack(100, 100)[:3], id="within a head"),
        pytest.param(HEAD.pack(len(_BROKEN), 100) + _BROKEN + b"x", id="within a body"),
        pytest.param(HEAD.pack(len(_BROKEN), 0) + _BROKEN, id="before the answer"),
    ],
)
def test_a_crawl_that_was_killed(sent: bytes) -> None:
    """Its pipes are closed, wherever it was."""
    command = [sys.executable, "-m", "crawlerproject.reading.reading_process", str(4 << 30), "10"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(sent)
        process.stdin.close()
        said = process.stderr.read()

        assert (process.wait(_SECONDS), said) == (0, b"")
