"""A frontier is read to its end before it is trusted: whatever a disk did to it is found, and said with its cure."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from crawlerproject.errors import FrontierDamaged
from crawlerproject.recovery.rebuild import damage_of
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT, open_frontier
from crawlerproject.stores.rocks.rocks_store import RocksStore

ROWS = 5_000


def fill(folder: Path) -> None:
    """A frontier of which one table is large enough for many blocks on the disk."""
    chance = Random(1)
    store = RocksStore(folder / "frontier")
    for start in range(0, ROWS, 500):
        numbers = range(start + 1, start + 501)
        rows = [QueuedPage("a.test", chance.randbytes(24), f"http://a.test/{n}", 1, n, 0, "", "") for n in numbers]
        store.apply(Changes(queued=rows))
    for table in (store._tables.queue, store._tables.seen, store._tables.database):
        table.flush()
    store.close()


def largest(folder: Path) -> Path:
    """The file with the queue in it."""
    return max((folder / "frontier").glob("*.sst"), key=lambda path: path.stat().st_size)


def spoil_block(folder: Path) -> None:
    """Some bytes in the middle of a file."""
    with largest(folder).open("r+b") as file:
        file.seek(largest(folder).stat().st_size // 3)
        file.write(b"no rows")


def spoil_manifest(folder: Path) -> None:
    """Zeros where the manifest was."""
    for path in (folder / "frontier").glob("MANIFEST-*"):
        path.write_bytes(bytes(100))


def without_manifest(folder: Path) -> None:
    """The manifest is gone."""
    for path in (folder / "frontier").glob("MANIFEST-*"):
        path.unlink()


DAMAGES: dict[str, Callable[[Path], None]] = {
    "torn table": lambda folder: os.truncate(largest(folder), largest(folder).stat().st_size // 2),
    "missing table": lambda folder: largest(folder).unlink(),
    "bad block": spoil_block,
    "bad manifest": spoil_manifest,
    "missing manifest": without_manifest,
    "missing CURRENT": lambda folder: (folder / "frontier" / "CURRENT").unlink(),
}


def nothing(count: int) -> None:
    """No progress."""


def test_a_whole_frontier(tmp_path: Path) -> None:
    """Nothing is wrong with it, and its bytes were counted."""
    fill(tmp_path)
    read: list[int] = []

    assert damage_of(CrawlDir(tmp_path), read.append) == ""
    assert sum(read) > ROWS * 50


@pytest.mark.parametrize("what", DAMAGES)
def test_every_damage_is_found(tmp_path: Path, what: str) -> None:
    """Also one that leaves the frontier open to be opened."""
    fill(tmp_path)
    DAMAGES[what](tmp_path)

    said = damage_of(CrawlDir(tmp_path), nothing)

    assert said.startswith("There is no frontier in" if what == "missing CURRENT" else "The frontier in"), said
    assert "scrapy recover" not in said


def test_a_row_that_is_none(tmp_path: Path) -> None:
    """A state of a host that no version wrote."""
    store = RocksStore(tmp_path / "frontier")
    store.apply(Changes(hosts=[("a.test", b"\x04none")]))
    store.close()

    assert "is damaged (a row is malformed" in damage_of(CrawlDir(tmp_path), nothing)


@pytest.mark.parametrize("what", sorted(DAMAGES.keys() - {"bad block", "missing CURRENT"}))
def test_a_start_names_the_cure(tmp_path: Path, what: str) -> None:
    """In its one sentence."""
    fill(tmp_path)
    DAMAGES[what](tmp_path)

    with pytest.raises(FrontierDamaged, match=f"scrapy recover {tmp_path} makes it again"):
        RocksStore(tmp_path / "frontier")


def test_what_cannot_be_read_is_no_end(tmp_path: Path) -> None:
    """RocksDB's iterators end at a bad block as at the last row: URLs behind it must not count as done."""
    fill(tmp_path)
    spoil_block(tmp_path)
    store = RocksStore(tmp_path / "frontier")

    with pytest.raises(FrontierDamaged, match="scrapy recover"):
        store.head("a.test", ROWS)
    store.close()


def test_a_frontier_that_knows_of_no_crawl(tmp_path: Path) -> None:
    """RocksDB opens a manifest that was cut short as an earlier one, at times without a table: none begins on it."""
    fill(tmp_path)
    (tmp_path / "warc").mkdir()
    (tmp_path / "warc" / "x.warc.gz").touch()

    assert damage_of(CrawlDir(tmp_path), nothing).endswith("(it knows nothing of the crawl whose archive is beside it)")
    with pytest.raises(FrontierDamaged, match=f"scrapy recover {tmp_path} makes it again"):
        open_frontier(CrawlDir(tmp_path))

    store = RocksStore(tmp_path / "frontier")
    store.apply(Changes(facts=[(CLEAN_FACT, b"0")]))
    store.close()
    assert damage_of(CrawlDir(tmp_path), nothing) == ""
    open_frontier(CrawlDir(tmp_path)).close()
