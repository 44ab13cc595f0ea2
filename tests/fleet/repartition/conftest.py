"""Folders for databases that are opened and closed often."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir

MEMORY = Path("/dev/shm")
# A frontier refuses to be written with a tenth of this free.
ROOM_BYTES = 1 << 30


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[CrawlDir]:
    """A crawl's folder, in memory where there is room: a database is synced a dozen times from opening to closing."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM_BYTES:
        yield CrawlDir(tmp_path)
        return
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="moves-") as folder:
        yield CrawlDir(folder)
