"""What a crawl begins with beside its seeds: pages to visit again, messages that were not read."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawlerproject.crawl.start.bootstrap import queue_revisits, read_messages
from crawlerproject.frontier.assembly import revisit_policy
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.learned.revisit_queue import RevisitPolicy, by_depth
from crawlerproject.frontier.messages import Links, pack
from crawlerproject.items import AnswerHeaders
from crawlerproject.rules.revisits.history import History
from crawlerproject.rules.row_kinds import FLAG_RECRAWL
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks.store import LETTERS_FACT
from tests.crawl.sessions import HOST, Bench, page_of, requests_of, settings_of

DAY = 86_400.0


@pytest.fixture
def known(tmp_path: Path) -> Bench:
    """A crawl that has fetched three pages, a hundred days ago."""
    bench = Bench(tmp_path)
    bench.add(*(f"{HOST}/{number}" for number in range(3)))
    for number in range(3):
        lease = bench.page_lease()
        bench.session.pages.finish(
            page_of(lease, bench.now, body=b"%d" % number, headers=AnswerHeaders(etag=f'"{number}"'))
        )
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
    message = pack(Links([DiscoveredUrl(parse(f"{HOST}/told"), 1, "L", HOST, 10)]))
    letters = orjson.dumps([orjson.loads(message)])
    bench.store.apply(Changes(facts=[(LETTERS_FACT, b"4"), (f"{LETTERS_FACT}/2", letters)]))
    read_messages(bench.store, bench.frontier, bench.now)
    bench.commit()

    assert bench.frontier.hosts.waiting_urls == 1
    assert bench.store.fact(f"{LETTERS_FACT}/2") == b""
