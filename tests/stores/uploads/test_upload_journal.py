"""What of a folder is sent, and what waits."""

from __future__ import annotations

from pathlib import Path

from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.uploads.upload_journal import groups


def test_a_day_that_is_not_over_waits_for_the_end(tmp_path: Path) -> None:
    """A pack of copies of robots.txt that an older version has left is a file that passes."""
    folder = CrawlDir(tmp_path / "crawl")
    folder.log.mkdir(parents=True)
    (folder.log / "requests-2026-11-24.jsonl").write_text("{}\n")
    staged = folder.upload_staged / "log"
    staged.mkdir(parents=True)
    (staged / "robots-20261124T010203000Z.tar.gz").write_bytes(b"packed")

    during = [source for group in groups(folder, ended=False) for source in group.sources]
    after = [source for group in groups(folder, ended=True) for source in group.sources]

    assert [(source.passing, source.name) for source in during] == [(True, "log/robots-20261124T010203000Z.tar.gz")]
    assert [source.name for source in after if source.plain] == ["log/requests-2026-11-24.jsonl.gz"]
