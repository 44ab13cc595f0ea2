"""Backups of crawls that change while they are made."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores.backup import making
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import ALONE, alone, shared_out, write_plan
from crawlerproject.stores.rocks.rocks_store import RocksStore


def test_other_workers_since_the_plan_was_read_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup without the frontiers of some would look whole."""
    crawl, target = CrawlDir(tmp_path / "crawl"), tmp_path / "backup"
    crawl.mkdir()
    with closing(RocksStore(crawl.frontier)):
        pass
    keep_small = making._keep_small

    def divided_meanwhile(source: CrawlDir, into: CrawlDir) -> None:
        keep_small(source, into)
        write_plan(crawl, shared_out(alone(4), ["worker-1", "worker-2"]))

    with monkeypatch.context() as patched:
        patched.setattr(making, "_keep_small", divided_meanwhile)
        with pytest.raises(OperatorError, match="Other workers have begun"):
            making.back_up(crawl, target, 1.0)
    assert list(tmp_path.iterdir()) == [crawl]

    crawl.fleet_plan.unlink()
    assert [each.name for each in making.back_up(crawl, target, 1.0)] == [ALONE]
