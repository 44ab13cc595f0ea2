"""``scrapy recover`` of a crawl whose hosts have moved between folders: what is archived in another is not lost."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from crawlerproject.config.crawl_file import CrawlFile, write_crawl_file
from crawlerproject.fleet.repartition import journal
from crawlerproject.fleet.repartition.repartition import move
from crawlerproject.recovery.rebuild import damage_of
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_dir import CrawlDir, write_facts
from crawlerproject.stores.crawl_folders import ALONE, FleetPlan, read_plan
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks.frontier_folder import finish
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore
from tests.commands.running import crawl, scrapy
from tests.commands.test_verify import spoil, warc_of
from tests.web.running import IDENTITY

WORKERS = ["worker-1", "worker-2"]
SETTINGS = [part for name, value in IDENTITY.items() for part in ("-s", f"{name}={value}")]


def shared_out(folder: CrawlDir) -> tuple[list[str], FleetPlan]:
    """A crawl whose archive is in its own folder and whose hosts two workers have; its URLs."""
    urls = crawl(folder)
    write_crawl_file(folder, CrawlFile("http://h0.example.com/", "any"))
    with closing(RocksStore(folder.frontier)) as store:
        store.apply(Changes(facts=[("clean", b"1")]))
    plan = move(folder, WORKERS, lambda _: None)
    for worker in plan.folders(folder):
        write_facts(worker.run, {"started": 1.0})
    return urls, plan


def waiting(folder: CrawlDir, plan: FleetPlan) -> set[str]:
    """What waits at its holder."""
    found: set[str] = set()
    for worker in plan.workers:
        with FrontierView(CrawlDir(folder / worker).frontier) as view:
            hosts = [*view.hosts_with_work()]
            assert all(plan.holder(host) == worker for host in hosts)
            found |= {row.url for host in hosts for row in view.queue(host)}
    return found


def test_what_another_folder_has_is_not_lost(tmp_path: Path) -> None:
    """All is well: nothing is asked for again. A bad byte: what it took, and nothing else, waits at its holder."""
    folder = CrawlDir(tmp_path / "crawl")
    urls, plan = shared_out(folder)

    well = scrapy("recover", str(folder))
    found_well = waiting(folder, plan)
    spoil(warc_of(folder), 0.5)
    mended = scrapy("recover", str(folder))
    part = scrapy("recover", str(folder / "worker-1"))

    assert well.returncode == mended.returncode == 0, well.stdout + mended.stdout + mended.stderr
    assert found_well == set()
    assert len(waiting(folder, plan)) == 1 and waiting(folder, plan) < set(urls)
    assert "20 good captures in 1 WARC file" in well.stdout
    assert "19 good captures in 1 WARC file" in mended.stdout
    assert part.returncode == 2
    assert f"scrapy recover {folder} mends all of it" in part.stderr


def test_a_worker_that_lost_its_frontier(tmp_path: Path) -> None:
    """It is made again for one process, from the archives of all; the next fleet has it shared out."""
    folder = CrawlDir(tmp_path / "crawl")
    urls, plan = shared_out(folder)
    holder = CrawlDir(folder / plan.holder("h0.example.com"))
    (holder.frontier / "CURRENT").unlink()
    (holder.frontier / "CURRENT").write_text("nonsense\n")

    done = scrapy("recover", str(folder), *SETTINGS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "One process has all of it now" in done.stdout
    assert read_plan(folder) == FleetPlan((ALONE,), (0,) * plan.partitions)
    assert damage_of(folder, lambda _: None) == ""
    assert len(list(folder.glob("worker-*/frontier.damaged-*"))) == 2
    with FrontierView(folder.frontier) as view:
        assert {record.url for _, record in view.pages()} == set(urls)
    again = move(folder, WORKERS, lambda _: None)
    with FrontierView(CrawlDir(folder / again.holder("h0.example.com")).frontier) as view:
        assert all(view.page(parse(url).key) is not None for url in urls)


def test_one_that_ended_at_its_end_is_put_in_place(tmp_path: Path) -> None:
    """The new frontier was whole: who starts next has it, even in the middle of a move."""
    folder = CrawlDir(tmp_path / "crawl")
    _, plan = shared_out(folder)
    with closing(RocksStore(folder.frontier_unfinished)) as store:
        store.apply(Changes(facts=[("clean", b"0"), ("made", b"again")]))
    finish(folder)
    after = FleetPlan(("worker-1",), (0,) * plan.partitions)
    journal.begin(folder, journal.PlanChange(plan, after, ())).close()

    assert move(folder, [ALONE], lambda _: None).alone

    assert not journal.under_way(folder)
    with FrontierView(folder.frontier) as view:
        assert view.fact("made") == b"again"
    assert len(list(folder.glob("worker-*/frontier.damaged-*"))) == 2
