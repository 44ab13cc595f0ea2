"""The Parquet index: whole parts, at the right place, equal to the WARC whoever made them."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.index_rows import COLUMNS
from crawlerproject.stores.index.index_files import CdxjFiles, ParquetFiles
from crawlerproject.stores.index.parquet_tables import SCHEMA, read_part
from tests.stores.archive.test_archive import add, files

URLS = [f"https://{host}.example.com/{path}" for host in ("b", "a") for path in ("z", "é", "", "robots.txt")]


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, CdxjFiles, ParquetFiles]:
    """A closed WARC whose index was made when it was closed."""
    parquet = ParquetFiles(tmp_path / "index" / "parquet", "small")
    index = CdxjFiles(tmp_path / "index", parquet)
    warc = files(tmp_path / "warc", index=index)
    for url in URLS:
        add(warc, url, index)
    name = warc.close()
    assert name is not None
    return tmp_path / "warc" / name, index, parquet


def duplicates(parquet: ParquetFiles) -> dict[str, list[dict[str, object]]]:
    """Every part's rows, by its path below the folder."""
    return {
        str(path.relative_to(parquet.folder)): read_part(path).to_pylist() for path in parquet.folder.rglob("*.parquet")
    }


def test_parts_are_where_hive_looks(written: tuple[Path, CdxjFiles, ParquetFiles]) -> None:
    """One part a subset, named after the WARC, sorted by key, with the columns in their order and types."""
    warc, _, parquet = written
    stem = warc.name.removesuffix(".warc.gz")

    found = duplicates(parquet)

    assert set(found) == {f"crawl=small/subset={subset}/{stem}.parquet" for subset in ("warc", "robotstxt")}
    pages = found[f"crawl=small/subset=warc/{stem}.parquet"]
    keys = [str(row["url_surtkey"]) for row in pages]
    assert keys == sorted(keys)
    assert sum(len(rows) for rows in found.values()) == len(URLS)
    for path in parquet.parts_of(warc.name):
        assert pq.read_schema(path).remove_metadata() == SCHEMA
    assert SCHEMA.names == [name for name, _, _ in COLUMNS]


def test_rebuilt_from_the_warc_alone(written: tuple[Path, CdxjFiles, ParquetFiles]) -> None:
    """The same parts and the same lines, when all that is left is the WARC; a part that has no rows any more goes."""
    warc, index, parquet = written
    before, lines = duplicates(parquet), index.path(warc.name).read_bytes()
    stale = parquet.folder / "crawl=small" / "subset=crawldiagnostics" / parquet.parts_of(warc.name)[0].name
    stale.parent.mkdir()
    stale.write_bytes(b"")
    for path in (*parquet.parts_of(warc.name), index.path(warc.name)):
        if path != stale:
            path.unlink()

    assert index.rebuild(warc) == []

    assert duplicates(parquet) == before
    assert index.path(warc.name).read_bytes() == lines


def test_a_crash_between_the_two_is_mended(written: tuple[Path, CdxjFiles, ParquetFiles]) -> None:
    """The CDXJ file is written last, so a start that finds none writes the Parquet parts again as well."""
    warc, index, parquet = written
    before = duplicates(parquet)
    index.path(warc.name).unlink()
    parts = parquet.parts_of(warc.name)
    parts[0].write_bytes(b"PAR1 torn")
    parts[1].unlink()

    index.catch_up(warc.parent)

    assert duplicates(parquet) == before
    assert index.path(warc.name).exists()


def test_a_torn_part_is_said(written: tuple[Path, CdxjFiles, ParquetFiles]) -> None:
    """What is no Parquet file is an error with the file's name."""
    warc, _, parquet = written
    path = parquet.parts_of(warc.name)[0]
    path.write_bytes(b"nothing")

    with pytest.raises(StorageError, match=path.name):
        read_part(path)


def test_too_large_for_the_columns(written: tuple[Path, CdxjFiles, ParquetFiles]) -> None:
    """An offset beyond 32 bits is refused with a sentence, not with an overflow."""
    from tests.rules.archive.test_index_rows import row

    _, _, parquet = written
    with pytest.raises(StorageError, match="2 GiB"):
        parquet.build("x.warc.gz", None, [row("http://a.example/", offset=2**31)])


def test_a_part_is_read_without_threads(written: tuple[Path, CdxjFiles, ParquetFiles]) -> None:
    """One of Arrow's that still has our file when Python ends would end the process by abort(), once in many runs."""
    _, _, parquet = written
    part = next(parquet.folder.rglob("*.parquet"))
    code = f"""
import os
from pathlib import Path
from crawlerproject.stores.index.parquet_tables import read_part
before = len(os.listdir("/proc/self/task"))
assert read_part(Path({str(part)!r})).num_rows
assert len(os.listdir("/proc/self/task")) == before
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)
