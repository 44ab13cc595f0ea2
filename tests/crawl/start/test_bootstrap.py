"""What a crawl begins with beside its seeds: pages to visit again, messages that were not read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawlerproject.crawl.start import bootstrap as loader
from crawlerproject.crawl.start.bootstrap import QueueLoader, queue_revisits, read_messages
from crawlerproject.errors import FrontierDamaged, StorageError
from crawlerproject.frontier.assembly import revisit_policy
from crawlerproject.frontier.learned.revisits import RevisitPolicy, by_depth
from crawlerproject.frontier.other_workers import Links, pack_message
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.revisits.history import History
from crawlerproject.rules.row_kinds import FLAG_RECRAWL
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks.rocks_store import UNREAD_FACT
from tests.crawl.sessions import HOST, Bench, page_of, requests_of, settings_of

DAY = 86_400.0


@pytest.fixture
def known(tmp_path: Path) -> Bench:
    """A crawl that has fetched three pages, a hundred days ago."""
    bench = Bench(tmp_path)
    bench.add(*(f"{HOST}/{number}" for number in range(3)))
    for number in range(3):
        lease = bench.page_lease()
        bench.session.pages.finish(page_of(lease, bench.now, body=b"%d" % number, etag=f'"{number}"'))
    bench.commit()
    bench.now += 100 * DAY
    return bench


def test_known_pages_are_queued_again(known: Bench) -> None:
    """Asked for if they changed."""
    assert queue_revisits(known.session, RevisitPolicy(None, DAY), known.now) == 3
    lease = known.page_lease()
    headers = [requests_of(known).request(lease, None).headers.get("If-None-Match") for _ in range(50)]

    assert lease.row.flags & FLAG_RECRAWL
    assert any(headers)


def test_no_more_than_the_budget(known: Bench) -> None:
    """Those first whose visit is worth most."""
    assert queue_revisits(known.session, RevisitPolicy(2, DAY), known.now) == 2
    assert known.frontier.hosts.waiting_urls == 2


def test_what_was_fetched_a_moment_ago_is_left_alone(known: Bench) -> None:
    """RECRAWL_RECENT_DAYS."""
    assert queue_revisits(known.session, RevisitPolicy(None, 200 * DAY), known.now) == 0


@pytest.mark.parametrize("state_url", ["rocksdb:", "redis://127.0.0.1:6379/0"])
def test_ranks_are_those_of_the_whole_crawl(tmp_path: Path, state_url: str) -> None:
    """``processed/`` in CRAWL_DIR, not in a worker's folder; without them pages count by their depth."""
    settings = settings_of(CRAWL_DIR=str(tmp_path), STATE_URL=state_url, FLEET_WORKER="w1", RECRAWL_RECENT_DAYS=3)
    assert revisit_policy(settings, 7) == RevisitPolicy(7, 3 * DAY, by_depth)
    ranked = CrawlDir(tmp_path).ranked_pages
    ranked.parent.mkdir(parents=True)
    table = pa.table({"url": [f"{HOST}/"], "weight": [4.0], "less_important": [0.99]})
    pq.write_table(table, ranked)

    assert revisit_policy(settings, 7).importance(f"{HOST}/", History(visits=1)).weight == 4.0


def test_messages_of_a_fleet_that_was_copied_here_are_read(tmp_path: Path) -> None:
    """Each once: they are gone with the next commit."""
    bench = Bench(tmp_path)
    message = pack_message(Links([DiscoveredUrl(parse(f"{HOST}/told"), 1, "L", HOST, 10)]))
    letters = orjson.dumps([orjson.loads(message)])
    bench.store.apply(Changes(facts=[(UNREAD_FACT, b"4"), (f"{UNREAD_FACT}/2", letters)]))
    read_messages(bench.store, bench.frontier, bench.now)
    bench.commit()

    assert bench.frontier.hosts.waiting_urls == 1
    assert bench.store.fact(f"{UNREAD_FACT}/2") == b""


class Frontier:
    """With so many parts to be taken up; ``errors`` come after the first."""

    def __init__(self, parts: int, *errors: Exception) -> None:
        self.parts = parts
        self.errors = list(errors)
        self.first = True

    def begin_loading(self) -> None:
        """The first call."""

    def load_some(self, count: int) -> bool:
        """One part."""
        if self.errors and not self.first:
            raise self.errors.pop(0)
        self.first = False
        self.parts -= 1
        return self.parts > 0


class Engine:
    """Notes why it ends."""

    ended = ""

    def stop(self, reason: str) -> None:
        """For a reason."""
        self.ended = reason

    def stop_for_damage(self, error: FrontierDamaged) -> None:
        """For one that is known."""
        self.ended = "damage"


def load(frontier: Frontier, until: Callable[[list[str]], bool], seconds: float = 2.0) -> tuple[list[str], Engine]:
    """What is called, in order."""
    engine, called = Engine(), list[str]()

    async def run() -> None:
        loaded_by: Any = engine
        of: Any = frontier
        QueueLoader(loaded_by, of, lambda: called.append("wake"), lambda: called.append("done")).begin()
        end = asyncio.get_running_loop().time() + seconds
        while not until(called) and not engine.ended and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.001)

    asyncio.run(run())
    return called, engine


def test_it_is_done_when_the_last_is_taken_up() -> None:
    """Meanwhile the engine is woken: the first are fetched from."""
    called, engine = load(Frontier(4), lambda called: called.count("wake") == 3)

    assert called == ["wake", "wake", "done", "wake"]
    assert engine.ended == ""


def test_a_small_frontier_is_taken_up_at_once() -> None:
    """Before the start is over."""
    assert load(Frontier(1), bool)[0] == ["done"]


def test_without_room_it_goes_on_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl pauses for that by itself."""
    monkeypatch.setattr(loader, "_AGAIN_SECONDS", 0.01)
    called, engine = load(Frontier(2, StorageError("no room")), lambda called: "done" in called)

    assert called[0] == "done"
    assert engine.ended == ""


@pytest.mark.parametrize(
    ("error", "reason"), [(FrontierDamaged("broken"), "damage"), (ValueError("a fault"), "loading_failed")]
)
def test_what_cannot_be_read_ends_the_crawl(error: Exception, reason: str) -> None:
    """Without the rest it would never be over."""
    called, engine = load(Frontier(2, error), lambda called: False)

    assert engine.ended == reason
    assert "done" not in called
