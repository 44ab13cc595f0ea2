"""Folders that no frontier can be opened in: one sentence each, and nothing is changed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores import row_codec
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks import rocks_tables as rocks_options
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import open_to_read


@pytest.mark.parametrize(("step", "words"), [(1, "a newer version"), (-1, "an older version")])
def test_a_store_of_another_version_is_refused(tmp_path: Path, step: int, words: str) -> None:
    """By its format number; the folder is let go again."""
    other = RocksStore(tmp_path)
    other.apply(Changes(facts=[(row_codec.FORMAT_FACT, b"%d" % (row_codec.FORMAT + step))]))
    other.close()
    for _ in range(2):
        with pytest.raises(OperatorError, match=words):
            RocksStore(tmp_path)


def test_a_store_with_unknown_tables_is_refused(tmp_path: Path) -> None:
    """A table that only a newer version can have made."""
    newer = RocksStore(tmp_path)
    newer._tables.database.create_column_family("later", rocks_options.database_options())
    newer.close()
    with pytest.raises(OperatorError, match="newer version"):
        RocksStore(tmp_path)


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_the_operators(tmp_path: Path, where: str) -> None:
    """A file is in the way: one sentence with the folder's name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match=r"crawl folder .*file.* cannot be written"):
        RocksStore(tmp_path / where)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_the_operators(tmp_path: Path) -> None:
    """No right to write there."""
    tmp_path.chmod(0o500)
    with pytest.raises(OperatorError, match="cannot be written"):
        RocksStore(tmp_path)


def test_no_place_for_temporary_files_is_the_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frontier is read by links in a folder of its own."""
    RocksStore(tmp_path / "frontier").close()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(OperatorError, match="none"):
        open_to_read(tmp_path / "frontier", tries=2)


def test_a_damaged_store_is_the_operators(tmp_path: Path) -> None:
    """A broken manifest is said in one sentence, not in a traceback."""
    RocksStore(tmp_path).close()
    for manifest in tmp_path.glob("MANIFEST-*"):
        manifest.write_bytes(b"\xff" * 100)
    with pytest.raises(OperatorError, match="damaged"):
        RocksStore(tmp_path)
