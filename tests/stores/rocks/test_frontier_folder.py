"""Which folder is whose: a crawl of a folder is not begun on what Redis shares out, nor the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.repartition.repartition import move
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import ALONE
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT, open_frontier, open_journaled
from tests.commands.crawled import scrapy
from tests.stores.journaled_crawls import journals, take
from tests.stores.redis_servers import RedisServer, redis_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One server for the module."""
    with redis_server(tmp_path_factory.mktemp("redis"), "--appendfsync", "no") as started:
        yield started


@pytest.fixture
def crawl(tmp_path: Path, server: RedisServer) -> CrawlDir:
    """The folder of a crawl over Redis, with that of its worker in it."""
    worker = CrawlDir(tmp_path / "crawl" / "w1")
    worker.make()
    worker.run.write_text("{}")
    worker.worker.write_text("{}")
    with closing(open_journaled(worker, journals(server.url), rejoins=False)) as store:
        take(store)
        store.apply(Changes(facts=[(CLEAN_FACT, b"1")]))
    return CrawlDir(worker.parent)


def test_what_redis_shares_out_is_no_folders_crawl(crawl: CrawlDir, server: RedisServer) -> None:
    """A process alone, local workers, a copy and a backup are refused before anything is touched."""
    worker = CrawlDir(crawl / "w1")
    before = sorted(crawl.rglob("*"))
    for folder in (crawl, worker):
        for workers in ((ALONE,), ("worker-1", "worker-2")):
            with pytest.raises(OperatorError, match="Redis shares out the crawl of"):
                move(folder, workers, print)
        with pytest.raises(OperatorError, match="Redis shares out the crawl of"):
            open_frontier(folder)
        for arguments in (("backup", f"{crawl}.backup", "-s", f"CRAWL_DIR={folder}"), ("copy", folder, server.url)):
            refused = scrapy("state", *map(str, arguments))
            assert (refused.returncode, "Redis shares out the crawl of" in refused.stderr) == (2, True), refused.stderr
    assert [path for path in sorted(crawl.rglob("*")) if path.parent.name != "frontier"] == [
        path for path in before if path.parent.name != "frontier"
    ]


def test_redis_does_not_share_out_a_folders_crawl(tmp_path: Path, server: RedisServer) -> None:
    """A worker is not started on the frontier of one process, or of a worker of another kind."""
    folder = CrawlDir(tmp_path / "crawl" / "w1")
    folder.make()
    with closing(open_frontier(folder)) as store:
        store.apply(Changes(facts=[(CLEAN_FACT, b"1")]))

    with pytest.raises(OperatorError, match="is not shared out by Redis"):
        open_journaled(folder, journals(server.url), rejoins=False)
    with closing(open_frontier(folder)) as store:
        assert store.fact(CLEAN_FACT) == b"1"


def test_one_workers_part_is_no_crawl(tmp_path: Path) -> None:
    """A process alone, a copy and a backup want the folder of the whole crawl."""
    whole = CrawlDir(tmp_path / "crawl")
    whole.make()
    move(whole, ("worker-1", "worker-2"), print)
    folder = CrawlDir(whole / "worker-1")
    folder.make()
    open_frontier(folder).close()

    for command in (
        ("state", "backup", f"{whole}.backup"),
        ("crawl", "web", "-a", "seeds=http://a.test/", "-s", "CRAWLER_CONTACT=a@b.example"),
    ):
        refused = scrapy(*command, "-s", f"CRAWL_DIR={folder}")
        assert (refused.returncode, "is the folder of one worker" in refused.stderr) == (2, True), refused.stderr
