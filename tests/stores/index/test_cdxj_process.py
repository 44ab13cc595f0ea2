"""The process that makes a WARC's indexes: it fails in a sentence, and ends when the crawl does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.stores.index.cdxj import finish_apart
from tests.stores.archive.test_warc_writer import add, files
from tests.web.running import PROJECT
from tests.web.waiting import wait_until

URL = "http://a.test/"


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    """A closed WARC with one capture, and no index."""
    made = files(tmp_path / "warc")
    add(made, URL)
    name = made.close()
    assert name is not None
    return tmp_path / "warc" / name


def test_both_indexes(warc: Path, tmp_path: Path) -> None:
    """The CDXJ and the Parquet part are there when it has ended, and nothing was odd."""
    assert finish_apart(warc, tmp_path / "index", (tmp_path / "parquet", "a crawl")) == []

    stem = warc.name.removesuffix(".warc.gz")
    assert URL.encode() in (tmp_path / "index" / f"{stem}.cdxj").read_bytes()
    assert [path.stem for path in (tmp_path / "parquet").rglob("subset=warc/*.parquet")] == [stem]


def test_a_failure_is_a_sentence(tmp_path: Path) -> None:
    """Not the process's traceback."""
    with pytest.raises(StorageError, match="No such file"):
        finish_apart(tmp_path / "missing.warc.gz", tmp_path / "index", None)


def test_it_ends_with_the_crawl(tmp_path: Path) -> None:
    """Whatever it is at: here it waits for a file that nobody writes."""
    os.mkfifo(tmp_path / "endless.warc.gz")
    command = [sys.executable, "-m", "crawlerproject.stores.index.cdxj", str(tmp_path / "endless.warc.gz")]
    with subprocess.Popen([*command, str(tmp_path / "index")], cwd=PROJECT, stdin=subprocess.PIPE) as process:
        wait_until((tmp_path / "index").exists)
        assert process.poll() is None
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 1
