"""Sizes of what a crawl keeps: looked at apart, once a minute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.watch.store_sizes import LOOK_SECONDS, StoreSizes, sizes


def test_files_of_all_depths_count(tmp_path: Path) -> None:
    """What is not there has no bytes; a link counts as itself."""
    folder = CrawlDir(tmp_path)
    for path, size in ((folder.warc / "a.warc.gz", 10), (folder.parquet / "a" / "b.parquet", 5)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a" * size)
    (folder.warc / "link").symlink_to("/nowhere")

    assert sizes(folder) == {"frontier": 0, "warc": 10 + len("/nowhere"), "index": 5, "log": 0}


def test_the_crawl_does_not_wait_for_a_look(tmp_path: Path) -> None:
    """What is asked for meanwhile is the last whole look."""
    work: list[Callable[[], None]] = []
    seen = StoreSizes(CrawlDir(tmp_path), work.append)

    assert seen.now(100.0) == {}
    work.pop()()
    assert seen.now(100.0 + LOOK_SECONDS / 2)["warc"] == 0
    assert work == []
    seen.now(100.0 + LOOK_SECONDS)
    assert len(work) == 1
