"""A crawl that is killed, becomes several workers', and is one process's again: the web notices nothing."""

from __future__ import annotations

from pathlib import Path

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fleet.repartition.repartition import move
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import ALONE, FleetPlan, read_plan
from crawlerproject.stores.rocks.rocks_store import FrontierView
from tests.crawls.operator.spoken_to import chain, crawling, log_of
from tests.hostile.arena import arena
from tests.web.judge import read_captures
from tests.web.waiting import wait_until

HOSTS = [f"{name}.test" for name in ("one", "two", "three", "four", "five", "six")]
PAGES = 25


def committed(crawl: CrawlDir) -> int:
    """Pages that a crawl which has just begun has committed."""
    try:
        with FrontierView(crawl.frontier, tries=1) as view:
            return sum(1 for _ in view.pages())
    except (OperatorError, StorageError):
        return 0


def known(crawl: CrawlDir, plan: FleetPlan) -> set[tuple[str, str]]:
    """Every page, and every host with work, in the frontier of its holder."""
    found: set[tuple[str, str]] = set()
    for worker in plan.workers:
        with FrontierView(CrawlDir(crawl / worker).frontier) as view:
            here = {("page", record.url) for _, record in view.pages()}
            here |= {("waits", row.url) for host in view.hosts_with_work() for row in view.queue(host)}
            assert {url.split("/")[2].partition(":")[0] in HOSTS for _, url in here} <= {True}
            assert all(plan.holder(url.split("/")[2]) == worker for _, url in here)
            assert not found & here
            found |= here
            assert view.fact("warc") == b"" or worker not in ("", "worker-1")
    return found


def test_every_page_once_whoever_held_it(tmp_path: Path) -> None:
    """Killed in the middle, moved to two and to three workers, taken back: each page asked for and archived once."""
    with arena(tmp_path) as web:
        seeds = ",".join(chain(web, name, PAGES) for name in HOSTS)
        crawl = CrawlDir(web.folder / "crawl")
        with crawling(web, "-a", f"seeds={seeds}") as process:
            wait_until(lambda: committed(crawl) >= len(HOSTS), "some pages", seconds=60)
            process.kill()
        assert len(crawl.open_warcs()) == 1
        said: list[str] = []
        two = move(crawl, ["worker-1", "worker-2"], said.append)
        assert crawl.open_warcs() == []  # what it archived stays there, whole
        assert len(crawl.closed_warcs()) == 1
        before = known(crawl, two)
        assert {what for what, _ in before} == {"page", "waits"}
        three = move(crawl, [*two.workers, "worker-3"], said.append)
        assert known(crawl, three) == before
        for worker in three.workers:  # each rests its hosts once: the process that had them died
            with FrontierView(CrawlDir(crawl / worker).frontier) as view:
                assert view.fact("clean") == b"0"
        with crawling(web) as process:
            assert process.wait() == 0, log_of(web)[-3000:]
        captures = read_captures(crawl.warc)
        assert read_plan(crawl) == FleetPlan((ALONE,), (0,) * three.partitions)

    assert "Partitions move: 3 workers held them, one process will" in log_of(web)
    pages = {url: sum(found.values()) for url, found in captures.items() if not url.endswith("robots.txt")}
    assert pages == {web.url(host, f"/{at or ''}"): 1 for host in HOSTS for at in range(PAGES)}
    assert not list(crawl.glob("worker-*/frontier*"))
