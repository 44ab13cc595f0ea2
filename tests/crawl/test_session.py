"""A session is built whole from what an earlier one left, and replaced whole when another worker has its work."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.crawl import session as sessions
from crawlerproject.crawl.roles.single_process import SingleProcess
from crawlerproject.crawl.running_crawl import Crawl
from crawlerproject.errors import NameTaken, OperatorError, StorageError
from crawlerproject.extensions.commit_loop import check_room
from crawlerproject.stores.operator_files.control import change_pauses
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT
from tests.crawl.sessions import HOST, Bench, FullStore, Stats, page_of, settings_of, spider_of


def test_whether_the_last_run_ended_in_good_order(tmp_path: Path) -> None:
    """Nothing before the first start, "0" while one runs, "1" after its end."""
    store = FullStore()
    assert store.fact(CLEAN_FACT) is None
    bench = Bench(tmp_path, store=store)
    assert store.fact(CLEAN_FACT) == b"0"
    bench.close()
    assert store.fact(CLEAN_FACT) == b"1"


def test_a_start_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    """Queue, pages, totals and the open file's end."""
    bench = Bench(tmp_path)
    bench.add(f"{HOST}/one", f"{HOST}/two")
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now))
    bench.close()
    again = bench.again()

    assert again.session.resumed.continued
    assert again.session.totals.now().pages == 1
    assert again.run.tallies.pages == 0
    assert again.page_lease().row.url == f"{HOST}/two"


def test_after_a_crash_what_was_not_committed_is_fetched_again(tmp_path: Path) -> None:
    """The archive is cut back to the last commit, and the page waits as before."""
    bench = Bench(tmp_path / "first")
    bench.add(f"{HOST}/one", f"{HOST}/two")
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now))
    bench.commit()
    state = bench.session.archive.warc.state()
    second = page_of(bench.page_lease(), bench.now, body=b"never committed")
    bench.session.pages.finish(second)
    again = bench.crash(tmp_path / "second")

    assert again.session.archive.warc.state() == state
    assert again.page_lease().row.url == second.lease.row.url


def test_what_found_no_room_is_tried_at_the_end(tmp_path: Path) -> None:
    """StorageError when there still is none; the next start then recovers."""
    bench = Bench(tmp_path)
    bench.store.full = "no room"
    with pytest.raises(StorageError):
        bench.close()

    assert bench.store.fact(CLEAN_FACT) == b"0"


class Opened(Crawl):
    """A crawl whose folder is real and whose store is in memory."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **given: Any) -> None:
        self.stores: list[FullStore] = []
        self.fail: Exception | None = None
        monkeypatch.setattr(sessions, "role_of", lambda *given: self._role())
        settings = settings_of(CRAWL_DIR=str(folder), **given)
        spider = spider_of(settings)
        stats: Any = Stats()
        spider.crawler.stats = stats
        super().__init__(spider.crawler, spider)

    def _role(self) -> SingleProcess:
        if self.fail is not None:
            raise self.fail
        self.stores.append(FullStore())
        return SingleProcess(self.stores[-1])  # type: ignore[arg-type]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """A crawl in a folder."""
    return Opened(tmp_path / "crawl", monkeypatch)


def test_a_session_is_replaced_as_one(opened: Opened) -> None:
    """Store, frontier, archive and all that learns are new; clock, counters and folder stay."""
    before, run = opened.session, opened.run
    run.tallies.pages = 7
    run.lose("a partition was taken")
    opened.rejoin()
    after = opened.session

    assert opened.run is run
    assert (run.lost, run.tallies.pages) == ("", 7)
    assert all(getattr(before, name) is not getattr(after, name) for name in ("role", "frontier", "archive", "commits"))
    assert after.models.renders is after.frontier.renders
    assert after.totals.now().pages == 0  # what was not committed is another worker's
    opened.close()


@pytest.mark.parametrize(
    ("error", "raised"), [(NameTaken("taken"), NameTaken), (OperatorError("Redis is away"), StorageError)]
)
def test_a_session_that_cannot_begin_is_tried_again(opened: Opened, error: Exception, raised: type[Exception]) -> None:
    """But for a name that another process goes by."""
    opened.run.lose("why")
    opened.fail = error
    with pytest.raises(raised):
        opened.rejoin()
    assert opened.run.lost == "why"

    opened.fail = None
    opened.rejoin()
    assert opened.run.lost == ""


def test_a_session_that_fails_half_way_closes_its_store(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the next try would find it locked."""
    closed: list[FullStore] = []

    def close(store: FullStore) -> None:
        closed.append(store)

    monkeypatch.setattr(FullStore, "close", close)

    def fail(*given: object, continued: bool) -> Any:
        raise OperatorError("not this one")

    monkeypatch.setattr(sessions, "resume", fail)
    with pytest.raises(StorageError):
        opened.rejoin()

    assert closed == opened.stores


def test_a_crawls_end_is_its_only_one(opened: Opened) -> None:
    """The folder is free afterwards; a second close changes nothing."""
    opened.close()
    opened.close()

    assert opened.stores[0].fact(CLEAN_FACT) == b"1"


def test_a_crawl_that_lost_its_work_commits_nothing_at_its_end(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    """The next start recovers it."""
    opened.run.lose("a partition was taken")
    opened.close()

    assert opened.stores[0].fact(CLEAN_FACT) == b"0"
    assert any("could not be closed cleanly" in message for message in caplog.messages)


def test_a_full_disk_pauses_until_there_is_room(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """DISK_MIN_FREE_BYTES; True once, when the pause is over and what waited has been written."""
    usage = type("Usage", (), {"free": 10})
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda folder: usage)
        assert check_room(opened) is False
        assert "10 bytes free" in opened.run.paused
    opened.stores[0].full = "still no room"
    monkeypatch.setattr(opened.session.frontier.admission, "add_again", lambda now: opened.stores[0].sync())
    assert check_room(opened) is False
    assert opened.run.paused == "still no room"

    opened.stores[0].full = ""
    assert check_room(opened) is True
    assert check_room(opened) is False
    assert opened.run.paused == ""


def test_what_was_paused_before_the_start_is_paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again in the next session."""
    folder = tmp_path / "crawl"
    before = Opened(folder, monkeypatch)
    before.close()
    before.unlock()
    change_pauses(folder, lambda pauses: pauses.hosts.update({"a.test": "since noon"}))
    opened = Opened(folder, monkeypatch)
    assert opened.session.frontier.hosts.suspensions.pause_of("a.test") is not None
    opened.rejoin()

    assert opened.run.pauses.hosts == {"a.test": "since noon"}
    assert opened.session.frontier.hosts.suspensions.pause_of("a.test") is not None


def test_how_it_stands(opened: Opened) -> None:
    """What the panel, the log and the status file show."""
    opened.run.pause("no room")

    progress = opened.progress()
    assert (progress.paused, progress.queued_urls, progress.pages) == ("no room", 0, 0)
