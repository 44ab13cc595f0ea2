"""``scrapy state migrate``: what would be done, done for a crawl and for all its workers, and the way back."""

import json
import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir, read_facts, take_lock, write_facts
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT
from crawlerproject.stores.rocks.rocks_tables import open_to_write
from tests.commands.crawled import scrapy
from tests.crawls.test_old_folders import FOLDERS, VERSIONS

_TABLES = ("", "queue", "seen", "pages", "hosts", "robots", "fingerprints", "payloads")


@pytest.fixture
def old(tmp_path: Path) -> CrawlDir:
    """A folder that the first release left, with a tail among its files."""
    shutil.unpack_archive(FOLDERS / f"{VERSIONS[0]}.tar.xz", tmp_path)
    crawl = CrawlDir(tmp_path / VERSIONS[0])
    (crawl.warc / "a.warc.gz.open.0.torn").write_bytes(b"a tail")
    os.close(take_lock(crawl))  # the lock's file is made, and what is secret closed, by whatever comes first
    return crawl


def files(crawl: CrawlDir) -> dict[str, tuple[bytes, int]]:
    """Every file, and when it was written."""
    found = (path for path in sorted(crawl.rglob("*")) if path.is_file())
    return {str(path.relative_to(crawl)): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


def rows(crawl: CrawlDir) -> dict[str, dict[bytes, bytes]]:
    """Everything in its frontier, but how its last process ended."""
    with closing(open_to_write(crawl.frontier)) as store:
        return {
            table: {key: row for key, row in store.rows(table) if (table, key) != ("", CLEAN_FACT.encode())}
            for table in _TABLES
        }


def test_the_check_changes_nothing(old: CrawlDir) -> None:
    """It says what would be done (test_read_only.py has the other commands that read an old folder)."""
    before = files(old)

    said = scrapy("state", "migrate", "--check", folder=old)

    assert said.returncode == 0, said.stderr
    assert "written by version 1.4.0 or earlier" in said.stdout
    assert "layout 1 to 2" in said.stdout
    assert "1 file to move, 6 B" in said.stdout
    assert "scrapy state backup DIR" in said.stdout
    assert files(old) == before


def test_there_and_back(old: CrawlDir, tmp_path: Path) -> None:
    """A migrated folder, put back from its backup, says and holds what it did before."""
    kept = tmp_path / "kept"
    assert scrapy("state", "backup", str(kept), folder=old).returncode == 0
    archive = {path.name: path.read_bytes() for path in old.closed_warcs()}
    crawl_file = old.crawl_file.read_bytes() if old.crawl_file.exists() else b""

    done = scrapy("state", "migrate", folder=old)
    again = scrapy("state", "migrate", "--check", folder=old)
    migrated = read_facts(old.formats)
    back = scrapy("state", "restore", str(kept), folder=old)

    assert "1 file moved" in done.stdout, done.stderr
    assert "Nothing is to be migrated." in again.stdout
    assert (old.torn / "a.warc.gz.open.0.torn").read_bytes() == b"a tail"
    assert migrated == {"layout": 2}
    assert back.returncode == 0, back.stderr
    assert not old.formats.exists()
    assert rows(old) == rows(CrawlDir(kept))
    assert {path.name: path.read_bytes() for path in old.closed_warcs()} == archive
    assert (old.crawl_file.read_bytes() if old.crawl_file.exists() else b"") == crawl_file


def test_all_workers_folders_are_migrated(tmp_path: Path) -> None:
    """Each by itself; a crawl that runs, or one that is not there, is refused, and left as it is."""
    crawl = CrawlDir(tmp_path / "crawl")
    workers = [CrawlDir(crawl / name) for name in ("worker-1", "worker-2")]
    for worker in workers:
        worker.warc.mkdir(parents=True)
        (worker.warc / "a.warc.gz.open.0.torn").write_bytes(b"a tail")
        write_facts(worker.run, {})
    lock = take_lock(workers[1])
    try:
        refused = scrapy("state", "migrate", folder=crawl)
    finally:
        os.close(lock)
    missing = scrapy("state", "migrate", folder=tmp_path / "none")

    done = scrapy("state", "migrate", folder=crawl)

    assert (refused.returncode, "is in use by a running crawl" in refused.stderr) == (2, True)
    assert (missing.returncode, (tmp_path / "none").exists()) == (2, False)
    assert done.returncode == 0, done.stderr
    for worker in workers:
        assert json.loads(worker.formats.read_bytes()) == {"layout": 2}
        assert [path.parent.name for path in worker.rglob("*.torn")] == ["torn"]
