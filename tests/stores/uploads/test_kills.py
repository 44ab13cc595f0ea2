"""A few of the deaths that ``benchmarks.upload_kills`` has uploads die."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.upload_kills import run
from tests.stores.uploads.s3_servers import SERVER


@pytest.mark.skipif(not SERVER.exists(), reason="make test makes .venv-tools")
def test_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """``kill -9`` in the middle, twice; the run after them goes on."""
    found = run(2, 1, tmp_path, files=1)
    assert found.problems == []
    assert found.kills == 2
    assert found.sent_bytes < 2 * found.wanted_bytes
