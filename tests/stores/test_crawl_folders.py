"""Which folders one crawl has files in."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir, write_facts
from crawlerproject.stores.crawl_folders import alone, folders_of, shared_out, write_plan


@pytest.fixture
def crawl(tmp_path: Path) -> CrawlDir:
    """A crawl's folder, with a crawl's in it."""
    started(CrawlDir(tmp_path / "below"))
    (tmp_path / "control").mkdir()
    return CrawlDir(tmp_path)


def started(folder: CrawlDir) -> None:
    """A crawl, or a worker, was started here."""
    folder.log.mkdir(parents=True)
    write_facts(folder.run, {"started": 1.0})


def names(crawl: CrawlDir) -> list[str]:
    """Of the folders."""
    return [str(folder.relative_to(crawl)) for folder in folders_of(crawl)]


def test_another_crawl_below_that_of_one_process_is_another(crawl: CrawlDir) -> None:
    """Unless it is a worker's folder, of a crawl that is in Redis now."""
    started(crawl)
    assert names(crawl) == ["."]
    write_facts(CrawlDir(crawl / "below").worker, {"worker": "below"})
    assert names(crawl) == [".", "below"]


def test_a_folder_with_workers_folders_alone_is_theirs(crawl: CrawlDir) -> None:
    """As that of a fleet in Redis; one in which nothing ever began has itself."""
    assert names(crawl) == ["below"]
    assert names(CrawlDir(crawl / "control")) == ["."]


def test_of_a_fleet_on_this_machine_former_workers_count_as_well(crawl: CrawlDir) -> None:
    """Also when the crawl is one process again; a worker that is planned and has no folder does not."""
    started(crawl)
    (crawl / "worker-1").mkdir()
    write_plan(crawl, shared_out(alone(4), ["worker-1", "worker-2"]))
    assert names(crawl) == [".", "below", "worker-1"]
    write_plan(crawl, alone(4))
    started(CrawlDir(crawl / "worker-1"))
    assert names(crawl) == [".", "below", "worker-1"]
